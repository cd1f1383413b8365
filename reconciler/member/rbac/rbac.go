// Package rbac derives the permissions that gitfleet needs on a member cluster from the kinds
// that are placed there.
//
// Content.Required lists the necessary permissions. The agent checks them with access reviews
// after a request was forbidden. Content.Roles returns RBAC rules that grant them, and also the
// permissions that are useful but not necessary.
package rbac

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Permission is a verb on a resource, in all namespaces or in one, or on a path.
type Permission struct {
	Verb, Group, Resource, Namespace, Path string
}

// Compare orders permissions so that those on the same resource in the same namespace are
// adjacent.
func Compare(a, b Permission) int {
	return cmp.Or(
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Verb, b.Verb),
	)
}

// objectsOf are the objects of a resource in a namespace; cluster-scoped if it is empty.
type objectsOf struct {
	schema.GroupResource
	namespace string
}

// Content is what gitfleet places, or has placed, on a cluster.
type Content struct {
	// objects are the resources of the objects, and their namespaces; see Add.
	objects map[objectsOf]bool
	// Releases says that objects may be released and left on the cluster.
	Releases bool
	// Unserved says that there are objects of a custom resource that the cluster does not
	// serve. Its CustomResourceDefinitions have to be read to find out whether the kind was
	// removed.
	Unserved bool
	// HasNamespace says that the namespace of the inventories exists.
	HasNamespace bool
}

// Add adds the resource of an object and its namespace, which may be empty.
func (c *Content) Add(r schema.GroupResource, namespace string) {
	if c.objects == nil {
		c.objects = map[objectsOf]bool{}
	}
	c.objects[objectsOf{r, namespace}] = true
}

// reads are the verbs to watch objects, in all namespaces, and writes those to apply them, in
// their own namespace.
var (
	reads  = []string{"get", "list", "watch"}
	writes = []string{"create", "delete", "patch"}
)

// Required returns the permissions that are necessary to apply, watch and delete the content,
// sorted by Compare and without duplicates.
func (c Content) Required() []Permission {
	core := func(verb, resource, namespace string) Permission {
		return Permission{Verb: verb, Resource: resource, Namespace: namespace}
	}
	required := []Permission{
		{Verb: "get", Path: "/readyz"},
		core("get", "namespaces", ""), core("list", "namespaces", ""), core("list", "configmaps", ""), core("watch", "configmaps", ""),
	}
	for _, verb := range []string{"create", "delete", "get", "patch"} {
		required = append(required, core(verb, "configmaps", api.Namespace))
	}
	if !c.HasNamespace {
		required = append(required, core("create", "namespaces", ""), core("patch", "namespaces", ""))
	}
	if c.Unserved {
		for _, verb := range []string{"get", "list"} {
			required = append(required, Permission{Verb: verb, Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"})
		}
	}
	verbs := writes
	if c.Releases {
		verbs = append(slices.Clone(writes), "update")
	}
	for o := range c.objects {
		for _, verb := range reads {
			required = append(required, Permission{Verb: verb, Group: o.Group, Resource: o.Resource})
		}
		for _, verb := range verbs {
			required = append(required, Permission{Verb: verb, Group: o.Group, Resource: o.Resource, Namespace: o.namespace})
		}
	}
	slices.SortFunc(required, Compare)
	return slices.Compact(required)
}

// Describe returns permissions as text, with one line for all verbs on a resource in one
// namespace.
func Describe(permissions []Permission) []string {
	sorted := slices.SortedFunc(slices.Values(permissions), Compare)
	var lines []string
	for _, same := range bySubject(sorted) {
		first := same[0]
		line := strings.Join(verbsOf(same), ", ") + " " + cmp.Or(first.Path, schema.GroupResource{Group: first.Group, Resource: first.Resource}.String())
		if first.Namespace != "" {
			line += " in namespace " + first.Namespace
		}
		lines = append(lines, line)
	}
	return lines
}

// bySubject groups sorted permissions that differ only in their verbs.
func bySubject(sorted []Permission) [][]Permission {
	subject := func(p Permission) Permission { p.Verb = ""; return p }
	var groups [][]Permission
	for len(sorted) > 0 {
		first := subject(sorted[0])
		n := slices.IndexFunc(sorted, func(p Permission) bool { return subject(p) != first })
		if n < 0 {
			n = len(sorted)
		}
		groups = append(groups, sorted[:n])
		sorted = sorted[n:]
	}
	return groups
}

func verbsOf(all []Permission) []string {
	verbs := make([]string, len(all))
	for i, p := range all {
		verbs[i] = p.Verb
	}
	return verbs
}
