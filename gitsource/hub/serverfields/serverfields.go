// Package serverfields finds in manifests what servers and controllers write, and what therefore has no place in Git.
//
// An object that was dumped from a cluster has such fields. Strip removes those that only a server sets; the other functions report what a
// controller owns.
package serverfields

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
)

// Fields that a server sets, or gitfleet sets on a member, do not belong in Git. They are
// removed, so that a dump and a hand-written manifest are the same object. Fields that users
// may set on purpose stay, such as clusterIP, nodePort and the selectors of a Job.
var (
	serverMetadata = []string{
		"creationTimestamp", "deletionTimestamp", "generation", "managedFields",
		"ownerReferences", "resourceVersion", "selfLink", "uid",
	}
	serverAnnotations = []string{
		"deployment.kubernetes.io/revision",
		"kubectl.kubernetes.io/last-applied-configuration",
		api.CommitAnnotation, api.PathAnnotation, api.PlacementAnnotation, api.SourceAnnotation,
	}
	serverLabels = []string{api.ManagedByLabel}
)

// Strip removes the fields that only a server sets. It warns once, at the first of them.
func Strip(r *document.Report, object map[string]any) {
	var first *document.FieldPath
	var names []string
	remove := func(from map[string]any, key string, at ...string) {
		value, there := from[key]
		if !there {
			return
		}
		delete(from, key)
		if isEmpty(value) {
			return
		}
		p := r.Field(at...).Child(key)
		names = append(names, strings.TrimPrefix(p.String(), r.Object.String()+"."))
		if first == nil {
			first = p
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	for _, key := range serverMetadata {
		remove(metadata, key, "metadata")
	}
	for _, m := range []struct {
		name string
		keys []string
	}{{"annotations", serverAnnotations}, {"labels", serverLabels}} {
		values, _ := metadata[m.name].(map[string]any)
		for _, key := range m.keys {
			remove(values, key, "metadata", m.name)
		}
		if values != nil && len(values) == 0 {
			delete(metadata, m.name)
		}
	}
	remove(object, "status")
	switch {
	case len(names) > 1:
		r.Warnf(first, "left out, since only a server or gitfleet fills it in: %s; remove it from the file", strings.Join(names, ", "))
	case len(names) == 1:
		r.Warnf(first, "left out, since only a server or gitfleet fills it in; remove it from the file")
	}
}

// isEmpty reports whether a status is null or {}, which kubectl create writes.
func isEmpty(v any) bool {
	m, isMap := v.(map[string]any)
	return v == nil || isMap && len(m) == 0
}

// WarnOfControllers warns of values in fields that belong to controllers of the clusters. Empty
// values and placeholders are usual there, and do no harm.
func WarnOfControllers(r *document.Report, object map[string]any) {
	controllers.Each(&unstructured.Unstructured{Object: object}, func(f *controllers.Field, path []string, value any) {
		if value == nil || f.IsPlaceholder(value) {
			return
		}
		r.Warnf(r.Object.Within(object, path), "belongs to %s, so the value in Git is not applied; %s", f.Owner, f.Fix)
	})
}

// CreatedByController reports objects that a controller has created, which end up in Git if
// somebody dumps them: they have owner references.
func CreatedByController(r *document.Report, gvk runtimeschema.GroupVersionKind, object map[string]any) bool {
	if gvk.Group != "apps" || gvk.Kind != "ReplicaSet" && gvk.Kind != "ControllerRevision" {
		return false
	}
	owners, _, _ := unstructured.NestedSlice(object, "metadata", "ownerReferences")
	if len(owners) == 0 {
		return false
	}
	r.Warnf(r.Field("metadata", "ownerReferences"), "left out: this %s was made by a controller, which makes it again on each member; remove it", gvk.Kind)
	return true
}
