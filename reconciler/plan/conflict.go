package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
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
	size := 0
	for _, r := range results {
		for _, content := range r.contentsInUse {
			size += len(content.renderer.Manifests())
		}
	}
	owners, claimants := make(map[api.ID]api.PlacementKey, size), map[api.PlacementKey]bool{}
	for key, r := range results {
		for m := range r.manifestsInUse {
			if owner, taken := owners[m.ID]; taken && owner != key {
				o.shared[m.ID], claimants[owner], claimants[key] = true, true, true
			}
			owners[m.ID] = key
		}
	}
	for _, r := range results {
		for id := range r.claimedObjects {
			o.shared[id], claimants[owners[id]] = true, true // other owners are claimants already; without any, it is the zero key
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

// claimsLike reports whether two results for a placement have the same spec and content, so that
// its claims on a cluster depend only on the plan for that cluster.
func (r *result) claimsLike(o *result) bool {
	return r.placement.Spec == o.placement.Spec && r.prepared == o.prepared && r.placement.Record.Abandon == o.placement.Record.Abandon
}

// sameObjects reports whether two results for a placement have the same contents and claimed
// objects, so that the overlap of all placements is the same.
func (r *result) sameObjects(o *result) bool {
	return r != nil && o != nil && slices.Equal(r.contentsInUse, o.contentsInUse) &&
		maps.Equal(r.claimedObjects, o.claimedObjects) && maps.Equal(r.counterparts, o.counterparts)
}

// A conflict exists if two placements of the commit in force select the same objects: one owns
// them, and the other one does not get them.
type conflict struct{ owner, without api.PlacementKey }

// conflicts are the conflicts on one cluster, each with its objects.
type conflicts map[conflict][]api.ID

func (c conflicts) equal(o conflicts) bool { return maps.EqualFunc(c, o, slices.Equal[[]api.ID]) }

// A conflictExtent lists the objects that are in conflict, and the clusters on which they are.
type conflictExtent struct {
	ids      map[api.ID]bool
	clusters map[string]bool
}

// conflictExtents returns the extent of each conflict.
func conflictExtents(clusters map[string]*resolution) map[conflict]*conflictExtent {
	out := map[conflict]*conflictExtent{}
	for cluster, res := range clusters {
		for c, ids := range res.conflicts {
			e := out[c]
			if e == nil {
				e = &conflictExtent{map[api.ID]bool{}, map[string]bool{}}
				out[c] = e
			}
			e.clusters[cluster] = true
			for _, id := range ids {
				e.ids[id] = true
			}
		}
	}
	return out
}

// recordConflict records a conflict if the latest content of more than one placement has the
// object. While rollouts move an object from one placement to another, there is no conflict.
func (r *resolver) recordConflict(found conflicts, claims []*claim, owner *claim, id api.ID) {
	wanting := func(cl *claim) bool { return cl.wants(id) }
	if owner == nil || !owner.wants(id) {
		owner = r.owner(claims, id, wanting)
	}
	for _, cl := range claims {
		if cl != owner && wanting(cl) {
			c := conflict{owner.key, cl.key}
			found[c] = append(found[c], id)
		}
	}
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

// conflictWarnings returns the warnings about the conflicts of a placement.
func (r *resolver) conflictWarnings(p *Placement) problem.List {
	var out problem.List
	add := func(other api.PlacementKey, format string, e *conflictExtent) {
		text := other.String()
		if spec := r.memo.spec(other); spec != nil {
			text += " (" + spec.Origin.String() + ")"
		}
		out = append(out, problem.Problem{Origin: p.Spec.Origin, Field: "spec.resourceSelectors", Severity: problem.Warning, Message: fmt.Sprintf(format, text, e)})
	}
	order := func(a, b conflict) int {
		return cmp.Or(a.owner.Compare(b.owner), a.without.Compare(b.without))
	}
	for _, c := range slices.SortedFunc(maps.Keys(r.memo.conflicts), order) {
		switch p.Key {
		case c.owner:
			add(c.without, "%s selects %s as well; this placement has what both select, and keeps it: let one of the two select it", r.memo.conflicts[c])
		case c.without:
			add(c.owner, "%s has %s, which this placement selects as well and leaves to it: let one of the two select it", r.memo.conflicts[c])
		}
	}
	return out
}
