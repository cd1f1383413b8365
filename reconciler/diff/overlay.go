package diff

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// overlay says what member would be if manifest were applied by force: a dry
// run without a server, for when there is none to ask, or it refuses to try.
//
// Maps are merged. What we alone own and the manifest no longer names goes.
// Lists are merged by the keys that the owners of member's fields are recorded
// under, or by those that Kubernetes uses for a list of that name; any other
// list is taken by position and must have the same length. A selector that is
// owned as a whole is replaced as a whole.
//
// It knows no schema, so it cannot tell a default from a change: what the
// manifest does not name never differs, not even in a list or map that is
// owned as a whole. Built-in kinds drop empty values when they are written, so
// an empty value that member lacks is no difference there, and neither is a
// quantity that is written in another way.
func overlay(manifest, member map[string]any, o owned, builtIn bool) map[string]any {
	return overlaying{builtIn: builtIn}.object(manifest, member, o).(map[string]any)
}

// typed are the parts of built-in kinds that are typed through and through,
// unlike data.
var typed = map[string]bool{"spec": true, "webhooks": true}

// overlaying is where we are.
type overlaying struct {
	key     string // of the nearest map above
	parent  string // of the one above that
	builtIn bool   // a kind of Kubernetes' own
	lenient bool   // in a part of one that drops what is empty
}

// below descends into a field.
func (w overlaying) below(key string) overlaying {
	return overlaying{
		key: key, parent: w.key, builtIn: w.builtIn,
		lenient: w.lenient || w.builtIn && w.key == "" && typed[key],
	}
}

func (w overlaying) value(want, have any, o owned) any {
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok {
			return w.object(want, have, o)
		}
	case []any:
		if have, ok := have.([]any); ok {
			return w.list(want, have, o)
		}
	default:
		if w.lenient && w.sameQuantity(want, have) {
			return have
		}
	}
	return want
}

func (w overlaying) object(want, have map[string]any, o owned) any {
	if o.atomic && strings.HasSuffix(strings.ToLower(w.key), "selector") {
		return want
	}
	result := o.restOfFields(have)
	for key, field := range want {
		below := w.below(key)
		if there, ok := have[key]; ok {
			result[key] = below.value(field, there, o.at(name(key)))
		} else if !below.vanishes(field) {
			result[key] = field
		}
	}
	return result
}

func (w overlaying) list(want, have []any, o owned) any {
	for _, m := range w.candidates(o) {
		if result, ok := w.merged(want, have, m, o); ok {
			return result
		}
	}
	return w.byPosition(want, have, o)
}

// candidates are the ways in which a list may be merged. The first that fits
// its items is the one.
func (w overlaying) candidates(o owned) []merging {
	if m := o.merging(); m.set || m.keys != nil {
		return []merging{m}
	}
	if o.atomic {
		return nil
	}
	return listKeys[w.key]
}

// merged merges two lists by key or by value.
func (w overlaying) merged(want, have []any, m merging, o owned) (result []any, ok bool) {
	wanted, ok := m.names(want)
	if !ok {
		return nil, false
	}
	there, ok := m.names(have)
	if !ok {
		return nil, false
	}
	for _, p := range interleave(there, wanted) {
		if p.have < 0 {
			result = append(result, want[p.want])
			continue
		}
		item := have[p.have]
		switch e := m.element(p.have, item); {
		case p.want >= 0:
			result = append(result, w.value(want[p.want], item, o.at(e)))
		case !o.onlyOurs(e):
			result = append(result, o.at(e).rest(item))
		}
	}
	return result, true
}

func (w overlaying) byPosition(want, have []any, o owned) []any {
	result, m := slices.Clone(want), o.merging()
	for i := range min(len(want), len(have)) {
		result[i] = w.value(want[i], have[i], o.at(m.element(i, have[i])))
	}
	return result
}

// vanishes reports whether a value is empty in a way that does not survive
// being written to this place.
func (w overlaying) vanishes(want any) bool {
	switch v := want.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0 && pairs[w.key]
	default:
		return w.lenient && (v == "" || v == false || v == int64(0))
	}
}

// pairs are the fields that are maps of any key. An empty map of them is not
// written, while an empty object such as emptyDir is.
var pairs = map[string]bool{
	"annotations": true, "binaryData": true, "data": true, "labels": true, "limits": true,
	"matchLabels": true, "nodeSelector": true, "parameters": true, "requests": true, "selector": true,
}

// sameQuantity reports whether a field that holds a quantity holds the same
// one.
func (w overlaying) sameQuantity(want, have any) bool {
	if !quantities[w.parent] && !quantity[w.key] {
		return false
	}
	a, errA := resource.ParseQuantity(text(want))
	b, errB := resource.ParseQuantity(text(have))
	return errA == nil && errB == nil && a.Cmp(b) == 0
}

// quantities are maps of quantities, quantity a single one.
var (
	quantities = map[string]bool{
		"capacity": true, "default": true, "defaultRequest": true, "hard": true, "limits": true,
		"max": true, "maxLimitRequestRatio": true, "min": true, "overhead": true, "podFixed": true, "requests": true,
	}
	quantity = map[string]bool{"averageValue": true, "divisor": true, "sizeLimit": true}
)

// builtIn reports whether an object is of a kind that is typed in Kubernetes'
// own API server.
func builtIn(o *unstructured.Unstructured) bool {
	return typedGroups[o.GroupVersionKind().Group]
}

var typedGroups = map[string]bool{
	"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true,
	"admissionregistration.k8s.io": true, "networking.k8s.io": true,
	"scheduling.k8s.io": true, "storage.k8s.io": true,
}

func name(key string) fieldpath.PathElement { return fieldpath.FieldNameElement(key) }
