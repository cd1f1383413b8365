package rbac

import (
	"cmp"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Resources maps kinds to their resources. The resource of a missing kind is the plural of its
// name.
type Resources map[schema.GroupVersionKind]schema.GroupResource

// Of returns the resource of a kind.
func (r Resources) Of(gvk schema.GroupVersionKind) schema.GroupResource {
	if known, ok := r[gvk]; ok {
		return known
	}
	return schema.GroupResource{Group: gvk.Group, Resource: api.Plural(gvk.Kind)}
}

// Define adds the kinds that a CustomResourceDefinition defines, and returns their resource.
// It reports false for any other object.
func (r Resources) Define(o *unstructured.Unstructured) (schema.GroupResource, bool) {
	if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return schema.GroupResource{}, false
	}
	text := func(path ...string) string { s, _, _ := unstructured.NestedString(o.Object, path...); return s }
	defined := schema.GroupResource{Group: text("spec", "group"), Resource: text("spec", "names", "plural")}
	field, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "versions")
	versions, _ := field.([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if name, ok := version["name"].(string); ok {
			r[schema.GroupVersionKind{Group: defined.Group, Version: name, Kind: text("spec", "names", "kind")}] = defined
		}
	}
	return defined, true
}

// Collect adds the permissions that applying an object needs to the content and to the grants.
func Collect(o *unstructured.Unstructured, resources Resources, c *Content, g *Grants) {
	gvk := o.GroupVersionKind()
	resource := resources.Of(gvk)
	c.Add(resource, o.GetNamespace())
	if defined, ok := resources.Define(o); ok {
		if g.Defined == nil {
			g.Defined = map[schema.GroupResource]bool{}
		}
		g.Defined[defined] = true
	}
	if gvk.Group != rbac.GroupName {
		return
	}
	switch gvk.Kind {
	case "ClusterRole", "Role":
		grant(&g.Escalate, resource.Resource, o.GetName())
	case "ClusterRoleBinding", "RoleBinding":
		ref, _, _ := unstructured.NestedStringMap(o.Object, "roleRef")
		role := resources.Of(schema.GroupVersionKind{Group: rbac.GroupName, Version: gvk.Version, Kind: cmp.Or(ref["kind"], "Role")})
		grant(&g.Bind, role.Resource, ref["name"])
	}
}

func grant(to *map[string]map[string]bool, resource, name string) {
	if *to == nil {
		*to = map[string]map[string]bool{}
	}
	if (*to)[resource] == nil {
		(*to)[resource] = map[string]bool{}
	}
	(*to)[resource][name] = true
}
