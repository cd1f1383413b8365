package plan

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// An overlap has the objects that belong to more than one placement on any cluster: in the
// latest content, in an older content that a cluster is assigned to, or in the claims so far.
type overlap struct {
	shared map[api.ID]bool
	// claimants are the placements that have any of these objects, and those that claimed one
	// until now, by key.
	claimants []api.PlacementKey
}

func findOverlap(results map[api.PlacementKey]*result) overlap {
	o := overlap{shared: map[api.ID]bool{}}
	owners := map[api.ID]api.PlacementKey{}
	for key, r := range results {
		for id := range r.claimedObjects {
			o.shared[id] = true
		}
		for m := range r.manifestsInUse {
			if owner, taken := owners[m.ID]; taken && owner != key {
				o.shared[m.ID] = true
			}
			owners[m.ID] = key
		}
	}
	if len(o.shared) == 0 {
		return o
	}
	claimants := map[api.PlacementKey]bool{}
	for key, r := range results {
		for m := range r.manifestsInUse {
			if o.shared[m.ID] {
				claimants[key] = true
				break
			}
		}
		maps.Copy(claimants, r.counterparts)
	}
	maps.DeleteFunc(claimants, func(key api.PlacementKey, _ bool) bool { return results[key] == nil })
	o.claimants = slices.SortedFunc(maps.Keys(claimants), api.PlacementKey.Compare)
	return o
}

// manifestsInUse yields the objects of the contents that clusters are assigned or held until
// now.
func (r *result) manifestsInUse(yield func(*work.Manifest) bool) {
	for _, content := range r.contentsInUse {
		for _, m := range content.renderer.Manifests() {
			if !yield(m) {
				return
			}
		}
	}
}

// sameObjects reports whether two results for a placement have the same contents and claimed
// objects, so that the overlap of all placements is the same.
func (r *result) sameObjects(o *result) bool {
	return r != nil && o != nil && slices.Equal(r.contentsInUse, o.contentsInUse) &&
		maps.Equal(r.claimedObjects, o.claimedObjects) && maps.Equal(r.counterparts, o.counterparts)
}
