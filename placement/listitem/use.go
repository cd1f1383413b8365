package listitem

import (
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Use is an index in a JSON pointer that somebody has written, with the list whose item it means.
type Use struct {
	// Origin is the position of the pointer, and Field the field that has it.
	Origin api.Origin
	Field  string
	// Object is the object, Pointer the whole pointer, and List the part of it that leads to the list.
	Object        api.ID
	Pointer, List string
	Index         int
	Items         Identities
}

// Lists returns the parts of a pointer that lead to the lists whose items the pointer may mean, with their indexes. An
// index at the end counts only if the pointer is not that of a value to insert. Whether there are lists depends on the
// object.
func Lists(pointer string, inserts bool) (lists []string, indexes []int) {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for n := 1; n < len(keys); n++ {
		index, err := strconv.Atoi(keys[n])
		if err == nil && index >= 0 && (n < len(keys)-1 || !inserts) {
			lists, indexes = append(lists, "/"+strings.Join(keys[:n], "/")), append(indexes, index)
		}
	}
	return lists, indexes
}

// Uses returns the indexes in a pointer into an object; the caller sets Origin and Field.
func Uses(id api.ID, object any, pointer string, inserts bool) []Use {
	lists, indexes := Lists(pointer, inserts)
	var out []Use
	for i, at := range lists {
		if list, isList := lookUp(object, api.SplitPointer(at)).([]any); isList {
			out = append(out, Use{Object: id, Pointer: pointer, List: at, Index: indexes[i], Items: Of(list)})
		}
	}
	return out
}

// A Move is an index that means another item than before.
type Move struct {
	Use
	// Text says which item it means, and which one it meant.
	Text string
}

// Moves returns the indexes that mean other items than in an earlier version, in the order of after. Indexes that only
// one of the versions has are left out.
func Moves(before, after []Use) []Move {
	type key struct {
		path, kustomization, pointer, list string
		object                             api.ID
	}
	of := func(u Use) key { return key{u.Origin.Path, u.Origin.Kustomization, u.Pointer, u.List, u.Object} }
	was := map[key][]Use{}
	for _, u := range before {
		was[of(u)] = append(was[of(u)], u)
	}
	var out []Move
	for _, u := range after {
		if n := len(out); n > 0 && out[n-1].Origin == u.Origin && out[n-1].Field == u.Field && out[n-1].Object == u.Object && out[n-1].Pointer == u.Pointer {
			continue // an item inside of one that is another one already
		}
		k := of(u)
		if len(was[k]) == 0 {
			continue
		}
		old := was[k][0]
		was[k] = was[k][1:]
		if text := old.Items.Moved(u.Items, u.Index); text != "" {
			out = append(out, Move{u, text})
		}
	}
	return out
}
