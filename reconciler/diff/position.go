package diff

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A position is a position in an object with the ownership below it.
type position struct {
	owned
	path fieldpath.Path
	// theirs has what each rival owns below it, before what was applied earlier, and taken what was applied last and has been
	// changed by others since.
	theirs        []*fieldpath.Set
	before, taken *fieldpath.Set
	// was is the value that was applied last; nil if there was none or it is not known.
	was any
}

func (p position) at(e fieldpath.PathElement) position {
	below := position{owned: p.owned.descend(e), path: p.below(e), before: child(p.before, e), taken: child(p.taken, e), was: partOf(p.was, e)}
	for _, set := range p.theirs {
		below.theirs = append(below.theirs, child(set, e))
	}
	return below
}

func (p position) below(e fieldpath.PathElement) fieldpath.Path {
	return append(slices.Clone(p.path), e)
}

// whole reports whether the value at a path element is replaced as a whole, as far as its ownership
// shows. A field that was applied empty is owned like that, too.
func (p position) whole(e fieldpath.PathElement, v any) bool {
	return p.all.Members.Has(e) && child(p.all, e).Empty() && e.FieldName != nil && !emptied(v)
}

// mergingOf returns how the list at a position is merged: as its items are owned, or else as
// Kubernetes merges lists of that name.
func (p position) mergingOf(live, desired []any) (m merging, ok bool) {
	if m = p.merging(); m.set || m.keys != nil {
		return m, true
	}
	if len(p.path) == 0 || p.path[len(p.path)-1].FieldName == nil {
		return m, false
	}
	for _, m := range listKeys[*p.path[len(p.path)-1].FieldName] {
		_, there := m.names(live)
		_, wanted := m.names(desired)
		if there && wanted {
			return m, true
		}
	}
	return m, false
}

// isReplicas reports whether a part is the number of replicas. To remove that means to scale down to the default, so that
// it is left to whoever applies another number: Git hands it over.
func (p position) isReplicas(e fieldpath.PathElement) bool {
	return len(p.path) == 1 && p.path[0].FieldName != nil && *p.path[0].FieldName == "spec" && e.FieldName != nil && *e.FieldName == "replicas"
}

// isFinalizers reports whether the position is that of the finalizers of the object.
func (p position) isFinalizers() bool {
	return len(p.path) == 2 && *p.path[0].FieldName == "metadata" && p.path[1].FieldName != nil && *p.path[1].FieldName == "finalizers"
}

// A part is a field of a map or an item of a list.
type part struct {
	e             fieldpath.PathElement
	index         int
	live, desired any
	wanted        bool // the desired object has it
}

// parts returns the parts of a live value, and whether its kind is that of the desired value.
func (p position) parts(live, desired any) (list []part, merges bool) {
	switch live := live.(type) {
	case map[string]any:
		want, ok := desired.(map[string]any)
		if !ok {
			return nil, false
		}
		for _, key := range slices.Sorted(maps.Keys(live)) {
			w := want[key] // null is no value
			list = append(list, part{e: name(key), live: live[key], desired: w, wanted: w != nil})
		}
		return list, true
	case []any:
		want, ok := desired.([]any)
		if !ok {
			return nil, false
		}
		m, ok := p.mergingOf(live, want)
		if !ok {
			return nil, false
		}
		for i, item := range live {
			e := m.element(i, item)
			w := element(want, e)
			list = append(list, part{e: e, index: i, live: item, desired: w, wanted: w != nil})
		}
		return list, true
	}
	return nil, false
}
