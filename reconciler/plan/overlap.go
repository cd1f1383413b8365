package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// overlaps know which objects more than one placement has, whatever the
// cluster: in its newest content, in an older one that some cluster still
// holds, or in what was left to it or by it until now. They are kept up to date
// by what changes, so that a fleet in which nothing overlaps pays for the
// objects of new content, once, and for nothing else.
type overlaps struct {
	entered map[api.PlacementKey]entries
	owners  map[api.ID][]owner
	// shared are the objects with owners of more than one placement, and those
	// of which it was said before who has them.
	shared map[api.ID]bool
	// moves counts the changes of shared.
	moves uint64
}

// entries are what a placement has entered.
type entries struct {
	uses    []*prepared
	claimed []api.ID
}

// An owner is a content that has an object, or, with none, a claim of before.
type owner struct {
	key  api.PlacementKey
	from *prepared
}

// update takes in what the placements have that have changed, and reports
// whether others are shared now.
func (o *overlaps) update(changed map[api.PlacementKey]bool, thoughts map[api.PlacementKey]*thought) bool {
	before := o.moves
	if o.entered == nil {
		o.entered, o.owners, o.shared = map[api.PlacementKey]entries{}, map[api.ID][]owner{}, map[api.ID]bool{}
	}
	for key := range changed {
		var now entries
		if th := thoughts[key]; th != nil {
			now = entries{th.uses, th.claimed}
		}
		o.replace(key, o.entered[key], now)
		if o.entered[key] = now; len(now.uses)+len(now.claimed) == 0 {
			delete(o.entered, key)
		}
	}
	return o.moves != before
}

func (o *overlaps) replace(key api.PlacementKey, old, now entries) {
	for _, p := range old.uses {
		if !slices.Contains(now.uses, p) {
			for _, m := range p.renderer.Manifests() {
				o.withdraw(m.ID, owner{key, p})
			}
		}
	}
	for _, p := range now.uses {
		if !slices.Contains(old.uses, p) {
			for _, m := range p.renderer.Manifests() {
				o.enter(m.ID, owner{key, p})
			}
		}
	}
	if slices.Equal(old.claimed, now.claimed) {
		return
	}
	for _, id := range old.claimed {
		o.withdraw(id, owner{key: key})
	}
	for _, id := range now.claimed {
		o.enter(id, owner{key: key})
	}
}

func (o *overlaps) enter(id api.ID, w owner) { o.set(id, append(o.owners[id], w)) }

func (o *overlaps) withdraw(id api.ID, w owner) {
	o.set(id, slices.DeleteFunc(o.owners[id], func(x owner) bool { return x == w }))
}

func (o *overlaps) set(id api.ID, owners []owner) {
	o.owners[id] = owners
	if len(owners) == 0 {
		delete(o.owners, id)
	}
	shared := slices.ContainsFunc(owners, func(w owner) bool { return w.from == nil || w.key != owners[0].key })
	if shared == o.shared[id] {
		return
	}
	o.moves++
	if shared {
		o.shared[id] = true
	} else {
		delete(o.shared, id)
	}
}

// parties are the placements that have a shared object, and those to which one
// was left until now.
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
