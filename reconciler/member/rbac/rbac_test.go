package rbac

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
)

// objects decodes a stream of manifests.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range strings.Split(text, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// permits reports whether rules grant a permission on an object of a name, as the RBAC
// authorizer of an API server decides.
func permits(rules []rbac.PolicyRule, p Permission, name string) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	return slices.ContainsFunc(rules, func(r rbac.PolicyRule) bool {
		if p.Path != "" {
			return has(r.Verbs, p.Verb) && has(r.NonResourceURLs, p.Path)
		}
		return has(r.Verbs, p.Verb) && has(r.APIGroups, p.Group) && has(r.Resources, p.Resource) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
	})
}

const placed = `apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: web}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: web}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oxen.example.com}
spec: {group: example.com, names: {kind: Ox, plural: oxen}, versions: [{name: v1, served: true}]}
---
apiVersion: example.com/v1
kind: Ox
metadata: {name: one, namespace: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewers, namespace: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
`

func collect(t *testing.T, text string) (Content, Grants) {
	t.Helper()
	var c Content
	var g Grants
	resources := Resources{}
	for _, o := range objects(t, text) {
		Collect(o, resources, &c, &g)
	}
	return c, g
}

// In every case the rules grant all permissions that the agent reviews, and none that were not
// requested.
func TestRolesGrantWhatIsRequired(t *testing.T) {
	c, g := collect(t, placed)
	roles := c.Roles(g)
	for _, releases := range []bool{true, false} {
		c.Releases, c.HasNamespace = releases, true
		for _, p := range c.Required() {
			if !permits(roles.Cluster, p, "") && !(p.Namespace == api.Namespace && permits(roles.Inventories, p, "")) {
				t.Errorf("not granted: %v", p)
			}
		}
	}
	for p, want := range map[Permission]bool{
		{Verb: "patch", Group: "example.com", Resource: "oxen"}:                                true,
		{Verb: "list", Resource: "nodes"}:                                                      true,
		{Verb: "get", Path: "/readyz"}:                                                         true,
		{Verb: "list", Resource: "secrets"}:                                                    false,
		{Verb: "patch", Resource: "configmaps"}:                                                false,
		{Verb: "create", Group: "apps", Resource: "statefulsets"}:                              false,
		{Verb: "escalate", Group: rbac.GroupName, Resource: "clusterroles"}:                    false,
		{Verb: "delete", Resource: "nodes"}:                                                    false,
		{Verb: "impersonate", Resource: "users"}:                                               false,
		{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: true,
	} {
		if got := permits(roles.Cluster, p, ""); got != want {
			t.Errorf("%v is granted: %t, want %t", p, got, want)
		}
	}
}

// Placed roles and bindings can be applied by name, and no others.
func TestRolesThatArePlacedMayGrant(t *testing.T) {
	c, g := collect(t, placed)
	roles := c.Roles(g)
	for _, test := range []struct {
		verb, resource, name string
		want                 bool
	}{
		{"escalate", "roles", "reader", true},
		{"escalate", "roles", "another", false},
		{"bind", "clusterroles", "view", true},
		{"bind", "clusterroles", "cluster-admin", false},
		{"bind", "roles", "reader", false},
	} {
		if got := permits(roles.Cluster, Permission{Verb: test.verb, Group: rbac.GroupName, Resource: test.resource}, test.name); got != test.want {
			t.Errorf("%s %s/%s is granted: %t, want %t", test.verb, test.resource, test.name, got, test.want)
		}
	}
}

// Lists of all kinds can be read only if that is requested.
func TestListAll(t *testing.T) {
	c, g := collect(t, placed)
	secrets := Permission{Verb: "list", Resource: "secrets"}
	if permits(c.Roles(g).Cluster, secrets, "") {
		t.Error("Secrets can be listed")
	}
	g.ListAll = true
	if !permits(c.Roles(g).Cluster, secrets, "") {
		t.Error("with ListAll Secrets cannot be listed")
	}
}

func TestEverything(t *testing.T) {
	for _, p := range []Permission{{Verb: "escalate", Group: rbac.GroupName, Resource: "clusterroles"}, {Verb: "get", Path: "/metrics"}} {
		if !permits(Everything().Cluster, p, "x") {
			t.Errorf("not granted: %v", p)
		}
	}
}

// The resource of a kind is the one in its definition, or the one on the cluster, or otherwise
// the plural of its name.
func TestResourcesOfKinds(t *testing.T) {
	resources := Resources{{Group: "a.example", Version: "v1", Kind: "Datum"}: {Group: "a.example", Resource: "data"}}
	for _, o := range objects(t, placed) {
		resources.Define(o)
	}
	got := map[string]schema.GroupResource{}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "a.example", Version: "v1", Kind: "Datum"}, {Group: "example.com", Version: "v1", Kind: "Ox"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, {Version: "v1", Kind: "Endpoints"},
		{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"},
	} {
		got[gvk.Kind] = resources.Of(gvk)
	}
	want := map[string]schema.GroupResource{
		"Datum": {Group: "a.example", Resource: "data"}, "Ox": {Group: "example.com", Resource: "oxen"},
		"Ingress": {Group: "networking.k8s.io", Resource: "ingresses"}, "Endpoints": {Resource: "endpoints"},
		"Gateway": {Group: "gateway.networking.k8s.io", Resource: "gateways"},
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
