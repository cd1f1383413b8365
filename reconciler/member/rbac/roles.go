package rbac

import (
	"maps"
	"slices"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Roles are the rules of a ClusterRole, and those of a Role in the namespace of the
// inventories.
type Roles struct {
	Cluster, Inventories []rbac.PolicyRule
}

// Grants are permissions that do not follow from the kinds alone.
type Grants struct {
	// Escalate are the names of the placed roles by resource, and Bind those of the roles that
	// placed bindings refer to. An API server lets nobody grant permissions that they do not
	// have, unless they have the verb escalate or bind on the role.
	Escalate, Bind map[string]map[string]bool
	// Defined are the resources that placed CustomResourceDefinitions define. They must be
	// listed, since a definition is deleted only if it has no objects left.
	Defined map[schema.GroupResource]bool
	// ListAll grants listing objects of all kinds: a Namespace is deleted only if it has no
	// objects of others.
	ListAll bool
}

// optional are permissions that gitfleet uses if it has them: to read the properties of the
// cluster, the reasons why pods do not start, autoscalers that own replicas, definitions of kinds that
// are not served, and rules that make something immutable.
var optional = []Permission{
	{Verb: "get", Path: "/version"},
	{Verb: "list", Resource: "nodes"},
	{Verb: "list", Resource: "pods"},
	{Verb: "list", Resource: "events"},
	{Verb: "get", Resource: "persistentvolumeclaims"},
	{Verb: "list", Group: "autoscaling", Resource: "horizontalpodautoscalers"},
	{Verb: "get", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Verb: "get", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	{Verb: "get", Group: "apiregistration.k8s.io", Resource: "apiservices"},
}

// Everything returns the rules of an administrator.
func Everything() Roles {
	return Roles{Cluster: []rbac.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	}}
}

// Roles returns rules that grant the necessary and the useful permissions, in a namespace that
// exists. Objects may be in any namespace, since commits add and remove namespaces; only access
// to the inventories is restricted to their namespace. Equal arguments give equal rules.
func (c Content) Roles(g Grants) Roles {
	c.HasNamespace, c.Releases = true, true
	var everywhere, own []Permission
	for _, p := range append(c.Required(), optional...) {
		if p.Group == "" && p.Resource == "configmaps" && p.Namespace == api.Namespace {
			own = append(own, p)
			continue
		}
		p.Namespace = ""
		everywhere = append(everywhere, p)
	}
	for r := range g.Defined {
		everywhere = append(everywhere, Permission{Verb: "list", Group: r.Group, Resource: r.Resource})
	}
	if g.ListAll {
		everywhere = append(everywhere, Permission{Verb: "list", Group: "*", Resource: "*"})
	}
	return Roles{Cluster: append(rulesOf(everywhere), g.escalations()...), Inventories: rulesOf(own)}
}

// escalations returns rules that allow placed roles and bindings to grant permissions that the
// account does not have.
func (g Grants) escalations() []rbac.PolicyRule {
	var rules []rbac.PolicyRule
	for _, grant := range []struct {
		verb  string
		roles map[string]map[string]bool
	}{{"bind", g.Bind}, {"escalate", g.Escalate}} {
		for _, resource := range slices.Sorted(maps.Keys(grant.roles)) {
			rules = append(rules, rbac.PolicyRule{
				APIGroups: []string{rbac.GroupName}, Resources: []string{resource},
				ResourceNames: slices.Sorted(maps.Keys(grant.roles[resource])), Verbs: []string{grant.verb},
			})
		}
	}
	return rules
}

// rulesOf returns rules that grant permissions, one for all resources of a group with the same
// verbs.
func rulesOf(all []Permission) []rbac.PolicyRule {
	slices.SortFunc(all, Compare)
	var rules []rbac.PolicyRule
	for _, same := range bySubject(slices.Compact(all)) {
		p, verbs := same[0], verbsOf(same)
		rule := rbac.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.Resource}, Verbs: verbs}
		if p.Path != "" {
			rule = rbac.PolicyRule{NonResourceURLs: []string{p.Path}, Verbs: verbs}
		}
		i := slices.IndexFunc(rules, func(r rbac.PolicyRule) bool {
			return slices.Equal(r.APIGroups, rule.APIGroups) && slices.Equal(r.Verbs, rule.Verbs)
		})
		if i < 0 {
			rules = append(rules, rule)
			continue
		}
		rules[i].Resources = append(rules[i].Resources, rule.Resources...)
		rules[i].NonResourceURLs = append(rules[i].NonResourceURLs, rule.NonResourceURLs...)
	}
	return rules
}
