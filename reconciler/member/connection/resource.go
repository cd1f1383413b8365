package connection

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Resource describes how the cluster serves a kind.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
}

// Path returns the URL path of an object of the resource.
func (r Resource) Path(id api.ID) []string {
	parts := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		parts = []string{"api", r.Version}
	}
	if r.Namespaced {
		parts = append(parts, "namespaces", id.Namespace)
	}
	return append(parts, r.Resource, id.Name)
}

// Collection returns the URL path of all objects of the resource.
func (r Resource) Collection() []string {
	if r.Group == "" {
		return []string{"api", r.Version, r.Resource}
	}
	return []string{"apis", r.Group, r.Version, r.Resource}
}
