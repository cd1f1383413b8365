// Package listitem tells the items of a list in a manifest apart by what they are, and not by where they are.
//
// A JSON patch addresses items by their index, and so means another item once somebody adds one in front.
package listitem

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/gitfleet/gitfleet/placement/api"
)

// keys are the fields that identify items in the lists of Kubernetes, in the order in which they are tried.
var keys = []string{"name", "containerPort", "port", "mountPath", "devicePath", "ip", "host", "key", "topologyKey", "type", "uid"}

// Key returns the field that identifies the items of a list: all of them have it, with different values. It is empty
// if there is none; then the items can only be compared as a whole.
func Key(list []any) string {
	for _, key := range keys {
		values := map[any]bool{}
		for _, item := range list {
			value := asMap(item)[key]
			switch value.(type) {
			case string, int64, float64, int:
				values[value] = true
			}
		}
		if len(values) == len(list) && len(list) > 0 {
			return key
		}
	}
	return ""
}

// Identity returns the values of all fields that may identify an item; nil if it is no map or has none of them.
func Identity(item any) map[string]any {
	var out map[string]any
	for _, key := range append(slices.Clone(keys), "protocol") {
		switch value := asMap(item)[key]; value.(type) {
		case string, int64, float64, int:
			if out == nil {
				out = map[string]any{}
			}
			out[key] = value
		}
	}
	return out
}

func asMap(item any) map[string]any {
	m, _ := item.(map[string]any)
	return m
}

// Same reports whether two items would be merged: both have the first field of those that identify items, with the
// same value.
func Same(a, b any) bool {
	x, isMap := a.(map[string]any)
	y, ok := b.(map[string]any)
	if !isMap || !ok {
		return reflect.DeepEqual(a, b)
	}
	for _, key := range keys {
		if x[key] != nil && y[key] != nil {
			return fmt.Sprint(x[key]) == fmt.Sprint(y[key])
		}
	}
	return false
}

// A Step is an item that a JSON pointer passes on its way through an object.
type Step struct {
	// Path is the pointer of the item, List the list that has it, and Index its position there.
	Path  string
	List  []any
	Index int
}

// Steps returns the items that a JSON pointer passes in an object, from the outside to the inside. An index behind the
// last item is none.
func Steps(object any, pointer string) []Step {
	var out []Step
	at := ""
	for _, key := range api.SplitPointer(pointer) {
		at += "/" + api.EscapeKey(key)
		switch in := object.(type) {
		case map[string]any:
			object = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return out
			}
			out = append(out, Step{at, in, i})
			object = in[i]
		default:
			return out
		}
	}
	return out
}

// Test returns the pointer and the value that a JSON patch has to test so that it only changes this item: its key, or
// the whole item.
func (s Step) Test() (path string, value any) {
	if key := Key(s.List); key != "" {
		return s.Path + "/" + key, asMap(s.List[s.Index])[key]
	}
	return s.Path, s.List[s.Index]
}

// Identities are the identities of the items of a list, in order.
type Identities struct {
	// Key is the field that identifies the items; empty if they are compared as a whole.
	Key string
	// Values are the values of that field, or stand for the whole items.
	Values []string
}

// Of returns the identities of the items of a list.
func Of(list []any) Identities {
	out := Identities{Key: Key(list)}
	for _, item := range list {
		value := item
		if out.Key != "" {
			value = asMap(item)[out.Key]
		}
		text, isText := value.(string)
		if !isText || out.Key == "" {
			data, _ := json.Marshal(value)
			text = string(data)
		}
		out.Values = append(out.Values, text)
	}
	return out
}

// Moved describes that an index means another item in a later version of a list; it is empty if it does not. An item
// without a key counts as another one only if one of the two is elsewhere in the other version: otherwise it was edited.
func (before Identities) Moved(after Identities, index int) string {
	if index >= len(before.Values) || before.Key != after.Key {
		return ""
	}
	was, is := before.Values[index], ""
	to := slices.Index(after.Values, was)
	if index < len(after.Values) {
		is = after.Values[index]
		if is == was || before.Key == "" && to < 0 && !slices.Contains(before.Values, is) {
			return ""
		}
	}
	text, found := fmt.Sprintf("the item at index %d of the list is another one now", index), "the earlier one"
	if before.Key != "" {
		found = fmt.Sprintf("%q", was)
	}
	switch {
	case index >= len(after.Values):
		text = fmt.Sprintf("the list has no item at index %d any more", index)
	case before.Key != "":
		text = fmt.Sprintf("the item at index %d of the list has the %s %q now, and had %q", index, before.Key, is, was)
	}
	if to >= 0 {
		text += fmt.Sprintf("; %s is at index %d", found, to)
	}
	return text
}

// Missed describes why the test of a JSON patch failed in an object: which item is at the index, and where the wanted
// one is. It is empty if the path leads to no item of a list, or to a field that does not identify it.
func Missed(object any, path string, value any) string {
	segments := api.SplitPointer(path)
	key := segments[len(segments)-1]
	if !slices.Contains(keys, key) {
		key = ""
	} else {
		segments = segments[:len(segments)-1]
	}
	list, isList := lookUp(object, segments[:max(0, len(segments)-1)]).([]any)
	if !isList {
		return ""
	}
	text := "the item at that index is another one"
	if index, err := strconv.Atoi(segments[len(segments)-1]); err != nil || index < 0 || index >= len(list) {
		text = fmt.Sprintf("the list has %d items", len(list))
	} else if key != "" {
		text = fmt.Sprintf("the item at that index has the %s %s, not %s", key, asJSON(asMap(list[index])[key]), asJSON(value))
	}
	where := slices.IndexFunc(list, func(item any) bool {
		if key != "" {
			item = asMap(item)[key]
		}
		return asJSON(item) == asJSON(value) // numbers may have different types
	})
	if where < 0 {
		return text + ", and the list does not have the wanted one"
	}
	return fmt.Sprintf("%s; the wanted one is at index %d", text, where)
}

// At returns the value at a JSON pointer into an object; nil if there is none.
func At(object any, pointer string) any { return lookUp(object, api.SplitPointer(pointer)) }

func lookUp(v any, path []string) any {
	for _, key := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func asJSON(v any) string {
	data, _ := json.Marshal(v) // it comes from JSON
	return string(data)
}
