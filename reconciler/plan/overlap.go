package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// overlaps know which objects more than one placement has, whatever the
// cluster: in its newest content or in an older one that some cluster still
// holds. They are kept up to date by what changes, so that a fleet in which
// nothing overlaps pays for the objects of new content, once, and for nothing
// else.
type overlaps struct {
	uses   map[api.PlacementKey][]*prepared
	owners map[api.ID][]owner
	// shared are the objects with owners of more than one placement.
	shared map[api.ID]bool
}

// An owner is a content that has an object.
type owner struct {
	key  api.PlacementKey
	from *prepared
}

// update takes in what the placements use that have changed.
func (o *overlaps) update(changed map[api.PlacementKey]bool, thoughts map[api.PlacementKey]*thought) {
	if o.uses == nil {
		o.uses, o.owners, o.shared = map[api.PlacementKey][]*prepared{}, map[api.ID][]owner{}, map[api.ID]bool{}
	}
	for key := range changed {
		var uses []*prepared
		if th := thoughts[key]; th != nil {
			uses = th.uses
		}
		for _, p := range o.uses[key] {
			if !slices.Contains(uses, p) {
				o.withdraw(owner{key, p})
			}
		}
		for _, p := range uses {
			if !slices.Contains(o.uses[key], p) {
				o.enter(owner{key, p})
			}
		}
		if o.uses[key] = uses; uses == nil {
			delete(o.uses, key)
		}
	}
}

func (o *overlaps) enter(w owner) {
	for _, m := range w.from.renderer.Manifests() {
		o.set(m.ID, append(o.owners[m.ID], w))
	}
}

func (o *overlaps) withdraw(w owner) {
	for _, m := range w.from.renderer.Manifests() {
		o.set(m.ID, slices.DeleteFunc(o.owners[m.ID], func(x owner) bool { return x == w }))
	}
}

func (o *overlaps) set(id api.ID, owners []owner) {
	if len(owners) == 0 {
		delete(o.owners, id)
		delete(o.shared, id)
		return
	}
	o.owners[id] = owners
	if slices.ContainsFunc(owners, func(w owner) bool { return w.key != owners[0].key }) {
		o.shared[id] = true
	} else {
		delete(o.shared, id)
	}
}

// parties are the placements that have a shared object, and those that yield
// one, or to which one is yielded, since the last turn.
func (o *overlaps) parties(thoughts map[api.PlacementKey]*thought) []api.PlacementKey {
	parties := map[api.PlacementKey]bool{}
	for id := range o.shared {
		for _, w := range o.owners[id] {
			parties[w.key] = true
		}
	}
	for _, th := range thoughts {
		for _, key := range th.partners {
			parties[key] = true
		}
	}
	var keys []api.PlacementKey
	for key := range parties {
		if thoughts[key] != nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// cut returns the shared objects of a content.
func (o *overlaps) cut(ms []*work.Manifest) map[api.ID]*work.Manifest {
	out := map[api.ID]*work.Manifest{}
	for _, m := range ms {
		if o.shared[m.ID] {
			out[m.ID] = m
		}
	}
	return out
}
