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
func (r Resource) Path(id api.ID) []string { return append(r.collection(id), id.Name) }

// collection returns the URL path of the objects of the resource in the namespace of an object.
func (r Resource) collection(id api.ID) []string {
	path := r.version()
	if r.Namespaced {
		path = append(path, "namespaces", id.Namespace)
	}
	return append(path, r.Resource)
}

// Collection returns the URL path of all objects of the resource.
func (r Resource) Collection() []string { return append(r.version(), r.Resource) }

func (r Resource) version() []string {
	if r.Group == "" {
		return []string{"api", r.Version}
	}
	return []string{"apis", r.Group, r.Version}
}
