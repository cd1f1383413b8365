package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gitfleet/gitfleet/placement/api"
)

// uncompared are the fields of every object that are not desired state.
var uncompared = [][]string{
	{"metadata", "name"},
	{"metadata", "namespace"},
	{"metadata", "generateName"},
	{"metadata", "finalizers"},
	{"metadata", "managedFields"},
	{"metadata", "ownerReferences"},
	{"metadata", "deletionTimestamp"},
	{"metadata", "deletionGracePeriodSeconds"},
	{"metadata", "generation"},
	{"metadata", "resourceVersion"},
	{"metadata", "selfLink"},
	{"metadata", "uid"},
	{"metadata", "creationTimestamp"},
	{"spec", "template", "metadata", "creationTimestamp"},
	{"spec", "jobTemplate", "spec", "template", "metadata", "creationTimestamp"},
	{"status"},
}

// domains identify the labels and annotations that Kubernetes, KubeFleet and gitfleet write:
// their keys contain one of these texts.
var domains = []string{"kubernetes.io/", "k8s.io/", "kubernetes-fleet.io/", "gitfleet.dev/"}

// comparable returns a copy of an object with the compared fields only. Labels and annotations
// are always present, so that each of them is listed with its own path.
func comparable(o *unstructured.Unstructured) map[string]any {
	obj := normalized(o.Object).(map[string]any)
	for _, path := range uncompared {
		unstructured.RemoveNestedField(obj, path...)
	}
	meta := mapIn(obj, "metadata")
	for _, kind := range []string{"labels", "annotations"} {
		maps.DeleteFunc(mapIn(meta, kind), func(key string, _ any) bool { return reserved(key) })
	}
	return obj
}

// mapIn returns the map in a field, which it adds if it is missing.
func mapIn(obj map[string]any, field string) map[string]any {
	m, ok := obj[field].(map[string]any)
	if !ok {
		m = map[string]any{}
		obj[field] = m
	}
	return m
}

func reserved(key string) bool {
	return slices.ContainsFunc(domains, func(d string) bool { return strings.Contains(key, d) })
}

// IgnoredFields returns the JSON pointers of an object's annotation
// gitfleet.dev/ignore-fields, for its content as Normalize returns it; see [api.Pointers].
func IgnoredFields(o *unstructured.Unstructured) ([]string, error) {
	pointers, err := api.Pointers(o.GetAnnotations()[api.IgnoreFieldsAnnotation])
	for i, p := range pointers {
		if key, written := strings.CutPrefix(p, "/stringData/"); written && isSecret(o.Object) {
			pointers[i] = "/data/" + key // as the server stores it
		}
	}
	if err != nil {
		err = fmt.Errorf("annotation %s: %w", api.IgnoreFieldsAnnotation, err)
	}
	return pointers, err
}

// removeOwned removes from member the fields in the set that hub does not have.
func removeOwned(hub, member any, set *fieldpath.Set) {
	set.Leaves().Iterate(func(path fieldpath.Path) { removeOwnedPath(hub, member, path) })
}

func removeOwnedPath(hub, member any, path fieldpath.Path) {
	m, ok := member.(map[string]any)
	h, _ := hub.(map[string]any)
	if ok && path[0].FieldName != nil {
		key := *path[0].FieldName
		if _, inHub := h[key]; inHub && len(path) == 1 {
			return
		}
		if len(path) == 1 {
			delete(m, key)
			return
		}
		removeOwnedPath(h[key], m[key], path[1:])
		if _, inHub := h[key]; !inHub && emptied(m[key]) {
			delete(m, key)
		}
		return
	}
	if len(path) > 1 {
		removeOwnedPath(element(hub, path[0]), element(member, path[0]), path[1:])
	}
}
