package diff

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Mask replaces a secret value.
const Mask = "(redacted for security reasons)"

// A change is one RFC 6902 operation of those that turn hub into member. It differs from the
// RFC in one way: elements removed from the end of an array are listed by their index in hub,
// the lowest first, so that users find them.
type change struct {
	op   operation
	path string // a JSON pointer
	// hub is not set for an add, and member is not set for a remove.
	hub, member side
}

type operation string

const (
	add     operation = "add"
	remove  operation = "remove"
	replace operation = "replace"
)

// A side is a value to compare, and the same value as it may be shown. Both have the same
// structure.
type side struct{ raw, shown any }

func (s side) field(key string) side {
	return side{s.raw.(map[string]any)[key], s.shown.(map[string]any)[key]}
}

func (s side) item(i int) side {
	return side{s.raw.([]any)[i], s.shown.([]any)[i]}
}

// changes compares two values prepared by comparable.
func changes(path string, hub, member side) []change {
	switch h := hub.raw.(type) {
	case map[string]any:
		if m, ok := member.raw.(map[string]any); ok {
			return changesOfObjects(path, hub, member, h, m)
		}
	case []any:
		if m, ok := member.raw.([]any); ok {
			return changesOfArrays(path, hub, member, len(h), len(m))
		}
	default:
		if h == member.raw {
			return nil
		}
	}
	return []change{{replace, path, hub, member}}
}

func changesOfObjects(path string, hub, member side, h, m map[string]any) []change {
	var list []change
	keys := slices.AppendSeq(slices.Collect(maps.Keys(h)), maps.Keys(m))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		_, inHub := h[key]
		_, inMember := m[key]
		at := path + "/" + api.EscapeKey(key)
		switch {
		case !inHub:
			list = append(list, change{op: add, path: at, member: member.field(key)})
		case !inMember:
			list = append(list, change{op: remove, path: at, hub: hub.field(key)})
		default:
			list = append(list, changes(at, hub.field(key), member.field(key))...)
		}
	}
	return list
}

// changesOfArrays compares by position. Additional elements of hub come first, those of member
// last.
func changesOfArrays(path string, hub, member side, h, m int) []change {
	var list []change
	for i := m; i < h; i++ {
		list = append(list, change{op: remove, path: path + "/" + strconv.Itoa(i), hub: hub.item(i)})
	}
	for i := range min(h, m) {
		list = append(list, changes(path+"/"+strconv.Itoa(i), hub.item(i), member.item(i))...)
	}
	for i := h; i < m; i++ {
		list = append(list, change{op: add, path: path + "/-", member: member.item(i)})
	}
	return list
}

func (c change) detail() api.PatchDetail {
	d := api.PatchDetail{Path: c.path}
	if c.op != add {
		d.ValueInHub = c.hub.text()
	}
	if c.op != remove {
		d.ValueInMember = c.member.text()
	}
	return d
}

// text prints a side. If all values that would be visible are masked, it prints only the mask.
func (s side) text() string {
	if seen, masked := visible(s.shown); masked && !seen {
		return Mask
	}
	return Text(s.shown)
}

// visible reports whether there is a value to show, and whether one is masked.
func visible(v any) (seen, masked bool) {
	var parts []any
	switch v := v.(type) {
	case map[string]any:
		parts = slices.Collect(maps.Values(v))
	case []any:
		parts = v
	default:
		return v != Mask && v != "", v == Mask
	}
	for _, part := range parts {
		s, m := visible(part)
		seen, masked = seen || s, masked || m
	}
	return seen, masked
}

// Text prints a value as Go does, except that integers of up to 21 digits are printed in full.
func Text(v any) string {
	return fmt.Sprint(mapLeaves(v, func(leaf any) any {
		if f, ok := leaf.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1e21 {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
		return leaf
	}))
}

// mapLeaves returns a copy of a value, in which convert replaces what is neither a map nor a list.
func mapLeaves(v any, convert func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, field := range v {
			m[key] = mapLeaves(field, convert)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = mapLeaves(item, convert)
		}
		return l
	default:
		return convert(v)
	}
}
