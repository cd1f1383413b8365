package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// An overlapIndex has the objects that belong to more than one placement on any cluster: in the
// latest content, in an older content that a cluster is assigned to, or in the claims so far.
// It is updated incrementally, so that a fleet without overlaps pays only once for the objects
// of new content.
type overlapIndex struct {
	entered map[api.PlacementKey]overlapEntries
	owners  map[api.ID][]contentOwner
	// shared are the objects of more than one placement, and those that have an owner by an
	// earlier resolution.
	shared map[api.ID]bool
	// version counts the changes of shared.
	version uint64
}

// overlapEntries are the entries of one placement in the index.
type overlapEntries struct {
	uses    []*prepared
	claimed []api.ID
}

// A contentOwner is a placement with a content that has an object; from is nil for an earlier
// claim.
type contentOwner struct {
	key  api.PlacementKey
	from *prepared
}

// update updates the entries of the changed placements, and reports whether the shared objects
// have changed.
func (o *overlapIndex) update(changed map[api.PlacementKey]bool, results map[api.PlacementKey]*result) bool {
	before := o.version
	if o.entered == nil {
		o.entered, o.owners, o.shared = map[api.PlacementKey]overlapEntries{}, map[api.ID][]contentOwner{}, map[api.ID]bool{}
	}
	for key := range changed {
		var now overlapEntries
		if r := results[key]; r != nil {
			now = overlapEntries{r.contentsInUse, r.claimedObjects}
		}
		o.replace(key, o.entered[key], now)
		if o.entered[key] = now; len(now.uses)+len(now.claimed) == 0 {
			delete(o.entered, key)
		}
	}
	return o.version != before
}

func (o *overlapIndex) replace(key api.PlacementKey, old, now overlapEntries) {
	for _, p := range old.uses {
		if !slices.Contains(now.uses, p) {
			for _, m := range p.renderer.Manifests() {
				o.remove(m.ID, contentOwner{key, p})
			}
		}
	}
	for _, p := range now.uses {
		if !slices.Contains(old.uses, p) {
			for _, m := range p.renderer.Manifests() {
				o.add(m.ID, contentOwner{key, p})
			}
		}
	}
	if slices.Equal(old.claimed, now.claimed) {
		return
	}
	for _, id := range old.claimed {
		o.remove(id, contentOwner{key: key})
	}
	for _, id := range now.claimed {
		o.add(id, contentOwner{key: key})
	}
}

func (o *overlapIndex) add(id api.ID, w contentOwner) { o.set(id, append(o.owners[id], w)) }

func (o *overlapIndex) remove(id api.ID, w contentOwner) {
	o.set(id, slices.DeleteFunc(o.owners[id], func(x contentOwner) bool { return x == w }))
}

func (o *overlapIndex) set(id api.ID, owners []contentOwner) {
	o.owners[id] = owners
	if len(owners) == 0 {
		delete(o.owners, id)
	}
	shared := slices.ContainsFunc(owners, func(w contentOwner) bool { return w.from == nil || w.key != owners[0].key })
	if shared == o.shared[id] {
		return
	}
	o.version++
	if shared {
		o.shared[id] = true
	} else {
		delete(o.shared, id)
	}
}

// claimants returns the placements that have a shared object, and the counterparts of earlier
// claims.
func (o *overlapIndex) claimants(results map[api.PlacementKey]*result) []api.PlacementKey {
	claimants := map[api.PlacementKey]bool{}
	for id := range o.shared {
		for _, w := range o.owners[id] {
			claimants[w.key] = true
		}
	}
	for _, r := range results {
		for _, key := range r.counterparts {
			claimants[key] = true
		}
	}
	var keys []api.PlacementKey
	for key := range claimants {
		if results[key] != nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, api.PlacementKey.Compare)
	return keys
}

// sharedObjects returns the shared objects of a content.
func (o *overlapIndex) sharedObjects(ms []*work.Manifest) map[api.ID]*work.Manifest {
	out := map[api.ID]*work.Manifest{}
	for _, m := range ms {
		if o.shared[m.ID] {
			out[m.ID] = m
		}
	}
	return out
}
