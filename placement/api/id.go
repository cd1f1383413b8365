package api

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A GroupKind is a kind without a version.
type GroupKind = schema.GroupKind

// An ID identifies an object, regardless of the version of its manifest. It is comparable, and
// the zero ID identifies nothing.
type ID struct {
	Group, Kind, Namespace, Name string
}

// IDOf returns the ID of an object.
func IDOf(o *unstructured.Unstructured) ID {
	gvk := o.GroupVersionKind()
	return ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// GroupKind returns the kind of the object.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// String returns Kind.group/namespace/name without the parts that are empty.
func (id ID) String() string {
	parts := []string{id.GroupKind().String()}
	if id.Namespace != "" {
		parts = append(parts, id.Namespace)
	}
	return strings.Join(append(parts, id.Name), "/")
}

// Compare orders IDs by group, kind, namespace and name.
func (id ID) Compare(o ID) int {
	switch { // most are of the same kind and namespace, and equal is told faster than less
	case id.Group != o.Group:
		return strings.Compare(id.Group, o.Group)
	case id.Kind != o.Kind:
		return strings.Compare(id.Kind, o.Kind)
	case id.Namespace != o.Namespace:
		return strings.Compare(id.Namespace, o.Namespace)
	default:
		return strings.Compare(id.Name, o.Name)
	}
}
