package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An overlap has the objects that belong to more than one placement on any cluster: in the latest content, in an older
// content that a cluster is assigned to, or in the claims so far.
type overlap struct {
	shared map[api.ID]bool
	// claimants are the placements that have any of these objects, and those that claimed one until now, by key.
	claimants []api.PlacementKey
}

func findOverlap(results map[api.PlacementKey]*result) overlap {
	o := overlap{shared: map[api.ID]bool{}}
	owners, claimants := map[api.ID]api.PlacementKey{}, map[api.PlacementKey]bool{}
	for key, r := range results {
		for _, content := range r.contentsInUse {
			for _, m := range content.renderer.Manifests() {
				if owner, taken := owners[m.ID]; taken && owner != key {
					o.shared[m.ID], claimants[owner], claimants[key] = true, true, true
				}
				owners[m.ID] = key
			}
		}
	}
	for key, r := range results {
		claimed := func(id api.ID) {
			o.shared[id], claimants[key], claimants[owners[id]] = true, true, true // without an owner, it is the zero key
		}
		for _, c := range r.placement.Clusters {
			for _, y := range c.Unusual().Deviation.Yields {
				claimed(y.ID)
				claimants[y.To] = true
			}
			for _, id := range c.Unusual().Deviation.Early {
				claimed(id)
			}
		}
	}
	maps.DeleteFunc(claimants, func(key api.PlacementKey, _ bool) bool { return results[key] == nil })
	o.claimants = slices.SortedFunc(maps.Keys(claimants), api.PlacementKey.Compare)
	return o
}

// sameObjects reports whether two results for a placement have the same contents and claims, so that the overlap of all
// placements is the same. o may be nil.
func (r *result) sameObjects(o *result) bool {
	return o != nil && slices.Equal(r.contentsInUse, o.contentsInUse) &&
		slices.EqualFunc(r.placement.Clusters, o.placement.Clusters, func(a, b *OnCluster) bool { return a == b || a.Unusual().Deviation.Equal(b.Unusual().Deviation) })
}

// A conflict exists if two placements of the commit in force select the same objects: one owns them, and the other one
// does not get them.
type conflict struct{ owner, without api.PlacementKey }

// A conflictExtent lists the objects that are in conflict, and the clusters on which they are.
type conflictExtent struct {
	ids      map[api.ID]bool
	clusters map[string]bool
}

// recordConflicts records the conflicts about an object on a cluster: more than one placement has it in its latest
// content. While rollouts move an object from one placement to another, there is no conflict.
func (r *resolver) recordConflicts(claims []*claim, owner *claim, id api.ID) {
	wanting := func(cl *claim) bool { return cl.wants(id) }
	if owner == nil || !owner.wants(id) {
		owner = r.owner(claims, id, wanting)
	}
	for _, cl := range claims {
		if cl != owner && wanting(cl) {
			r.recordConflict(owner.key, cl, id)
		}
	}
}

// recordConflict records that an object is left to its owner.
func (r *resolver) recordConflict(owner api.PlacementKey, without *claim, id api.ID) {
	c := conflict{owner, without.key}
	if r.conflicts[c] == nil {
		r.conflicts[c] = &conflictExtent{map[api.ID]bool{}, map[string]bool{}}
	}
	r.conflicts[c].ids[id], r.conflicts[c].clusters[without.on.Binding.Cluster] = true, true
}

// String returns, for example, "Namespace web and 2 more objects on east and 1 more cluster".
func (e *conflictExtent) String() string {
	// Cluster-scoped objects come first, since a Namespace is the most informative.
	ids := slices.SortedFunc(maps.Keys(e.ids), func(a, b api.ID) int {
		return cmp.Or(cmp.Compare(min(len(a.Namespace), 1), min(len(b.Namespace), 1)), a.Compare(b))
	})
	return ids[0].String() + more(len(ids), "object") + " on " + slices.Min(slices.Collect(maps.Keys(e.clusters))) + more(len(e.clusters), "cluster")
}

func more(n int, what string) string {
	switch n {
	case 1:
		return ""
	case 2:
		return " and 1 more " + what
	}
	return fmt.Sprintf(" and %d more %ss", n-1, what)
}

func (r *resolver) conflictWarnings(p *Placement) problem.List {
	var out problem.List
	add := func(other api.PlacementKey, format string, e *conflictExtent) {
		text := other.String()
		if spec := r.planner.memo.spec(other); spec != nil {
			text += " (" + spec.Origin.String() + ")"
		}
		out = append(out, problem.Problem{Origin: p.Spec.Origin, Field: "spec.resourceSelectors", Severity: problem.Warning, Message: fmt.Sprintf(format, text, e)})
	}
	order := func(a, b conflict) int {
		return cmp.Or(a.owner.Compare(b.owner), a.without.Compare(b.without))
	}
	for _, c := range slices.SortedFunc(maps.Keys(r.conflicts), order) {
		switch p.Key {
		case c.owner:
			add(c.without, "%s selects %s as well; this placement has what both select, and keeps it: let one of the two select it", r.conflicts[c])
		case c.without:
			add(c.owner, "%s has %s, which this placement selects as well and leaves to it: let one of the two select it", r.conflicts[c])
		}
	}
	return out
}
