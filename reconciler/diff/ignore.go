package diff

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gitfleet/gitfleet/placement/api"
)

// uncompared are the fields of every object that say nothing about what the
// hub wants.
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

// domains mark the labels and annotations that Kubernetes, KubeFleet and we
// ourselves write. A key belongs to them if it contains one, wherever.
var domains = []string{"kubernetes.io/", "k8s.io/", "kubernetes-fleet.io/", "gitfleet.dev/"}

// cleaned returns a copy of an object with what is compared. Labels and
// annotations are always there, so that a single one shows by its own name.
func cleaned(o *unstructured.Unstructured) map[string]any {
	obj := plain(o.Object).(map[string]any)
	for _, path := range uncompared {
		unstructured.RemoveNestedField(obj, path...)
	}
	meta, ok := obj["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		obj["metadata"] = meta
	}
	for _, kind := range []string{"labels", "annotations"} {
		pairs, ok := meta[kind].(map[string]any)
		if !ok {
			pairs = map[string]any{}
			meta[kind] = pairs
		}
		for key := range pairs {
			if reserved(key) {
				delete(pairs, key)
			}
		}
	}
	return obj
}

func reserved(key string) bool {
	for _, d := range domains {
		if strings.Contains(key, d) {
			return true
		}
	}
	return false
}

// plain copies a JSON value so that equal values are equal in Go: fields that
// are null are as good as absent and left out, and whole numbers are int64
// however they were written.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, field := range v {
			if field != nil {
				m[key] = plain(field)
			}
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = plain(item)
		}
		return l
	case nil, string, bool, int64:
		return v
	case float64:
		if v == math.Trunc(v) && v >= math.MinInt64 && v < math.MaxInt64 {
			return int64(v)
		}
		return v
	case int:
		return int64(v)
	default:
		return decoded(v)
	}
}

// decoded makes a JSON value of what only a program can have put there.
func decoded(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return fmt.Sprint(v)
	}
	return plain(out)
}

// IgnoredFields returns the JSON pointers of an object's annotation
// gitfleet.dev/ignore-fields; see [api.Pointers].
func IgnoredFields(o *unstructured.Unstructured) ([]string, error) {
	pointers, err := api.Pointers(o.GetAnnotations()[api.IgnoreFieldsAnnotation])
	if err != nil {
		err = fmt.Errorf("annotation %s: %w", api.IgnoreFieldsAnnotation, err)
	}
	return pointers, err
}

// forget makes two values equal at a path, and leaves no empty parent behind
// where only one of them had it.
func forget(hub, member any, path []string) {
	key, rest := path[0], path[1:]
	switch h := hub.(type) {
	case map[string]any:
		m, _ := member.(map[string]any)
		if m != nil || member == nil {
			forgetField(h, m, key, rest)
		}
	case []any:
		m, _ := member.([]any)
		i, ok := index(key, min(len(h), len(m)))
		switch {
		case !ok:
		case len(rest) == 0:
			h[i] = m[i]
		default:
			forget(h[i], m[i], rest)
		}
	case nil:
		if m, ok := member.(map[string]any); ok {
			forgetField(nil, m, key, rest)
		}
	}
}

// forgetField is forget for two objects, of which one may be nil.
func forgetField(hub, member map[string]any, key string, rest []string) {
	if len(rest) == 0 {
		delete(hub, key)
		delete(member, key)
		return
	}
	h, inHub := hub[key]
	m, inMember := member[key]
	forget(h, m, rest)
	if !inMember && emptied(h) {
		delete(hub, key)
	}
	if !inHub && emptied(m) {
		delete(member, key)
	}
}

func emptied(v any) bool {
	m, ok := v.(map[string]any)
	return ok && len(m) == 0
}

// disregard removes from member the fields that are in the set and that hub
// does not have.
func disregard(hub, member any, set *fieldpath.Set) {
	set.Leaves().Iterate(func(path fieldpath.Path) { disregardPath(hub, member, path) })
}

func disregardPath(hub, member any, path fieldpath.Path) {
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
		disregardPath(h[key], m[key], path[1:])
		if _, inHub := h[key]; !inHub && emptied(m[key]) {
			delete(m, key)
		}
		return
	}
	if len(path) > 1 {
		disregardPath(element(hub, path[0]), element(member, path[0]), path[1:])
	}
}

// Ignored lists how hub and member differ where the object's own annotation asks
// to leave it alone. It is made without a dry run; see Options.
func Ignored(hub, member *unstructured.Unstructured) []api.PatchDetail {
	pointers, _ := IgnoredFields(hub)
	if member == nil || len(pointers) == 0 {
		return nil
	}
	all := hub.DeepCopy()
	notes := all.GetAnnotations()
	delete(notes, api.IgnoreFieldsAnnotation)
	all.SetAnnotations(notes)
	return slices.DeleteFunc(Compare(all, member, Options{Structural: true}), func(d api.PatchDetail) bool {
		return !slices.ContainsFunc(pointers, func(p string) bool { return d.Path == p || strings.HasPrefix(d.Path, p+"/") })
	})
}
