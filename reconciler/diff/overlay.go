package diff

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// overlay returns member as it would be after a forced apply of manifest. It replaces a dry run
// if the server cannot be asked or refuses the request.
//
// Maps are merged. Fields that only gitfleet owns and the manifest no longer sets are removed.
// Lists are merged by the keys under which their owners are recorded, or by the keys that
// Kubernetes uses for lists of that name. Other lists are compared by position and must have
// the same length. A selector that is owned as a whole is replaced as a whole.
//
// There is no schema, so that a default cannot be told from a change: fields that the manifest
// does not set never differ, not even in a list or map that is owned as a whole. Built-in kinds
// do not store empty values, so that an empty value that member lacks is no difference there.
// Another spelling of a quantity is no difference either.
func overlay(manifest, member map[string]any, o owned, builtIn bool) map[string]any {
	return overlayPosition{builtIn: builtIn}.object(manifest, member, o).(map[string]any)
}

// typedFields are the fields of built-in kinds for which the schema of everything below is
// known, which is not so for data.
var typedFields = map[string]bool{"spec": true, "webhooks": true}

// An overlayPosition is a position in the object.
type overlayPosition struct {
	key     string // key of the nearest map above
	parent  string // key of the map above that
	builtIn bool   // the object is of a built-in kind
	lenient bool   // within a field that does not store empty values
}

// descend returns the position of a field.
func (w overlayPosition) descend(key string) overlayPosition {
	return overlayPosition{
		key: key, parent: w.key, builtIn: w.builtIn,
		lenient: w.lenient || w.builtIn && w.key == "" && typedFields[key],
	}
}

func (w overlayPosition) value(want, have any, o owned) any {
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

func (w overlayPosition) object(want, have map[string]any, o owned) any {
	if o.atomic && strings.HasSuffix(strings.ToLower(w.key), "selector") {
		return want
	}
	result := o.remainderOfFields(have)
	for key, field := range want {
		below := w.descend(key)
		if there, ok := have[key]; ok {
			result[key] = below.value(field, there, o.descend(name(key)))
		} else if !below.dropsEmpty(field) {
			result[key] = field
		}
	}
	return result
}

func (w overlayPosition) list(want, have []any, o owned) any {
	for _, m := range w.candidates(o) {
		if result, ok := w.merged(want, have, m, o); ok {
			return result
		}
	}
	return w.byPosition(want, have, o)
}

// candidates returns the ways in which a list may be merged. The first one that its items allow
// is used.
func (w overlayPosition) candidates(o owned) []merging {
	if m := o.merging(); m.set || m.keys != nil {
		return []merging{m}
	}
	if o.atomic {
		return nil
	}
	return listKeys[w.key]
}

// merged merges two lists by key or by value.
func (w overlayPosition) merged(want, have []any, m merging, o owned) (result []any, ok bool) {
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
			result = append(result, w.value(want[p.want], item, o.descend(e)))
		case !o.onlyOurs(e):
			result = append(result, o.descend(e).remainder(item))
		}
	}
	return result, true
}

func (w overlayPosition) byPosition(want, have []any, o owned) []any {
	result, m := slices.Clone(want), o.merging()
	for i := range min(len(want), len(have)) {
		result[i] = w.value(want[i], have[i], o.descend(m.element(i, have[i])))
	}
	return result
}

// dropsEmpty reports whether a value is empty and would not be stored at this position.
func (w overlayPosition) dropsEmpty(want any) bool {
	switch v := want.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0 && keyValueFields[w.key]
	default:
		return w.lenient && (v == "" || v == false || v == int64(0))
	}
}

// sameQuantity reports whether the values of a field are equal quantities.
func (w overlayPosition) sameQuantity(want, have any) bool {
	if !quantities[w.parent] && !quantity[w.key] {
		return false
	}
	a, errA := api.ParseQuantity(Text(want))
	b, errB := api.ParseQuantity(Text(have))
	return errA == nil && errB == nil && a.Cmp(b) == 0
}

// quantities are fields with maps of quantities, and quantity those with a single one.
var (
	quantities = map[string]bool{
		"capacity": true, "default": true, "defaultRequest": true, "hard": true, "limits": true,
		"max": true, "maxLimitRequestRatio": true, "min": true, "overhead": true, "podFixed": true, "requests": true,
	}
	quantity = map[string]bool{"averageValue": true, "divisor": true, "sizeLimit": true}
)

// builtIn reports whether an object's kind is built into Kubernetes.
func builtIn(o *unstructured.Unstructured) bool {
	return typedGroups[o.GroupVersionKind().Group]
}

var typedGroups = map[string]bool{
	"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true,
	"admissionregistration.k8s.io": true, "networking.k8s.io": true,
	"scheduling.k8s.io": true, "storage.k8s.io": true,
}
