package rbac

import (
	"maps"
	"slices"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Roles are the rules of a ClusterRole, and of a Role in the namespace of the inventories.
type Roles struct {
	Cluster, Inventories []rbac.PolicyRule
}

// Grants are permissions that do not follow from the kinds alone.
type Grants struct {
	// Escalate are the names of the placed roles by their resource, and Bind those of the
	// roles that placed bindings refer to. An API server lets nobody grant permissions that
	// they lack, unless they have the verb of that name on the role.
	Escalate, Bind map[string]map[string]bool
	// Defined are the resources that placed CustomResourceDefinitions define. A
	// definition is deleted only if none of its objects are left.
	Defined map[schema.GroupResource]bool
	// ListAll grants the reading of lists of all kinds. A Namespace is deleted only if
	// nothing is in it that gitfleet did not put there.
	ListAll bool
}

// optional are permissions that gitfleet uses if it has them: for the properties of the
// cluster, the reasons for which pods do not start, autoscalers that own replicas, and
// kinds whose definition is gone.
var optional = []Permission{
	{Verb: "get", Path: "/version"},
	{Verb: "list", Resource: "nodes"},
	{Verb: "list", Resource: "pods"},
	{Verb: "list", Group: "autoscaling", Resource: "horizontalpodautoscalers"},
	{Verb: "get", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
}

// Everything are the rules of an administrator.
func Everything() Roles {
	return Roles{Cluster: []rbac.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	}}
}

// Roles returns rules that grant what the content requires, in a namespace that exists, and
// what gitfleet uses beyond that. Objects may be in any namespace, since namespaces come and
// go with commits; only the inventories are restricted to theirs. Equal arguments give equal
// rules.
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

// escalations permits the placed roles and bindings to grant what the account lacks.
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

// rulesOf returns rules that grant permissions: one for all resources of a group with the
// same verbs.
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
