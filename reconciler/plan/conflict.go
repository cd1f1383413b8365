package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A conflict exists if two placements of the head select the same objects: one owns them, and
// the other one does not get them.
type conflict struct{ owner, without api.PlacementKey }

// conflictObjects are the objects of a conflict on one cluster, by ID. Equal lists are shared
// between clusters.
type conflictObjects struct {
	conflict
	ids []api.ID
}

func (res *resolution) addConflict(c conflict, id api.ID) {
	i := slices.IndexFunc(res.conflicts, func(n conflictObjects) bool { return n.conflict == c })
	if i < 0 {
		i = len(res.conflicts)
		res.conflicts = append(res.conflicts, conflictObjects{conflict: c})
	}
	res.conflicts[i].ids = append(res.conflicts[i].ids, id)
}

func (n conflictObjects) shareCopies(o conflictObjects) conflictObjects {
	if slices.Equal(n.ids, o.ids) {
		return o
	}
	return n
}

// recordConflict records a conflict if the latest content of more than one placement has the
// object. While rollouts move an object from one placement to another, there is no conflict.
func (r *resolver) recordConflict(res *resolution, owner *claim, id api.ID) {
	wanting := func(cl *claim) bool { return cl.wants(id) }
	if owner == nil || !owner.wants(id) {
		owner = r.owner(res.claims, id, wanting)
	}
	for _, cl := range res.claims {
		if cl != owner && wanting(cl) {
			res.addConflict(conflict{owner.key, cl.key}, id)
		}
	}
}

// A conflictExtent describes the objects of a conflict and its clusters.
type conflictExtent struct {
	lists    map[*api.ID][]api.ID
	clusters int
	first    string
}

// conflictExtents collects the extent of each conflict.
func conflictExtents(clusters map[string]*resolution) map[conflict]*conflictExtent {
	out := map[conflict]*conflictExtent{}
	for name, res := range clusters {
		for _, n := range res.conflicts {
			e := out[n.conflict]
			if e == nil {
				e = &conflictExtent{lists: map[*api.ID][]api.ID{}, first: name}
				out[n.conflict] = e
			}
			e.lists[&n.ids[0]] = n.ids
			e.clusters++
			e.first = min(e.first, name)
		}
	}
	return out
}

// String returns, for example, "Namespace web and 2 more objects on east and 1 more cluster".
func (e *conflictExtent) String() string {
	all := map[api.ID]bool{}
	for _, ids := range e.lists {
		for _, id := range ids {
			all[id] = true
		}
	}
	// Cluster-scoped objects come first, since a Namespace is the most informative.
	ids := slices.SortedFunc(maps.Keys(all), func(a, b api.ID) int {
		return cmp.Or(cmp.Compare(min(len(a.Namespace), 1), min(len(b.Namespace), 1)), a.Compare(b))
	})
	first := ids[0].String()
	return first + more(len(ids), "object") + " on " + e.first + more(e.clusters, "cluster")
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
func (pl *planner) conflictWarnings(p *Placement, conflicts map[conflict]*conflictExtent) problem.List {
	var out problem.List
	say := func(other api.PlacementKey, format string, e *conflictExtent) {
		text := other.String()
		if spec := pl.memo.spec(other); spec != nil {
			text += " (" + spec.Origin.String() + ")"
		}
		out = append(out, problem.Problem{Origin: p.Spec.Origin, Field: "spec.resourceSelectors", Severity: problem.Warning, Message: fmt.Sprintf(format, text, e)})
	}
	order := func(a, b conflict) int {
		return cmp.Or(a.owner.Compare(b.owner), a.without.Compare(b.without))
	}
	for _, c := range slices.SortedFunc(maps.Keys(conflicts), order) {
		switch p.Key {
		case c.owner:
			say(c.without, "%s selects %s as well; this placement has what both select, and keeps it: let one of the two select it", conflicts[c])
		case c.without:
			say(c.owner, "%s has %s, which this placement selects as well and leaves to it: let one of the two select it", conflicts[c])
		}
	}
	return out
}

// resolvePlacements computes the claimants' placements after the resolution.
func (pl *planner) resolvePlacements() {
	now := pl.memo.resolutions
	conflicts := conflictExtents(now.clusters)
	for _, key := range now.claimants {
		r := pl.results[key]
		if final := pl.resolvePlacement(r.placement, now.clusters, conflicts); r.resolved == nil || !r.resolved.sameResolution(final) {
			r.resolved = final
		}
	}
}

// resolvedPlacements returns all placements after the resolution, by key.
func (pl *planner) resolvedPlacements() []*Placement {
	out := make([]*Placement, 0, len(pl.results))
	for _, key := range pl.order().sorted {
		out = append(out, pl.resolvedPlacement(pl.results[key]))
	}
	return out
}

// resolvedPlacement returns a placement after the resolution.
func (pl *planner) resolvedPlacement(r *result) *Placement {
	if _, isClaimant := slices.BinarySearchFunc(pl.memo.resolutions.claimants, r.placement.Key, api.PlacementKey.Compare); isClaimant && r.resolved != nil {
		return r.resolved
	}
	return r.placement
}

// resolvePlacement returns a copy of the placement with the objects it yields or gets early.
func (pl *planner) resolvePlacement(p *Placement, clusters map[string]*resolution, conflicts map[conflict]*conflictExtent) *Placement {
	out := *p
	if p.Spec != nil {
		out.Warnings = append(slices.Clip(p.Warnings), pl.conflictWarnings(p, conflicts)...)
	}
	out.Clusters = slices.Clone(p.Clusters)
	out.Changed = slices.Clip(p.Changed)
	for i, c := range p.Clusters {
		cl := clusters[c.Binding.Cluster].claimOf(p.Key)
		if cl.outcome.Empty() && c.Claims.Empty() && len(cl.yielded) == 0 {
			continue
		}
		if cl.resolved == nil {
			cl.resolved = cl.resolvedCluster(pl.Now)
		}
		out.Clusters[i] = cl.resolved
		if cl.outcome.Equal(c.Claims) {
			continue
		}
		out.Claimed = append(out.Claimed, cl.resolved)
		if cl.resolved.Binding != c.Binding {
			out.Changed = replaced(out.Changed, cl.resolved.Binding)
		}
	}
	return &out
}

// resolvedCluster returns the claim's cluster after the resolution.
func (cl *claim) resolvedCluster(now time.Time) *OnCluster {
	out := *cl.on
	out.Claims, out.Yielded = cl.outcome, cl.yielded
	if !sameContent(cl.outcome, cl.on.Claims) && !cl.reassigned() {
		// The work changes, so that reports about the old work do not count.
		out.Binding.AssignedAt = now
	}
	return &out
}

// claimOf returns the claim of a placement, which must have one.
func (res *resolution) claimOf(key api.PlacementKey) *claim {
	return res.claims[slices.IndexFunc(res.claims, func(cl *claim) bool { return cl.key == key })]
}

// sameContent reports whether both claims leave out and add the same objects.
func sameContent(a, b ledger.Claims) bool {
	return slices.Equal(a.Early, b.Early) && slices.EqualFunc(a.Yields, b.Yields, func(x, y ledger.Yield) bool { return x.ID == y.ID })
}

func replaced(bs []placement.Binding, b placement.Binding) []placement.Binding {
	bs = slices.DeleteFunc(slices.Clone(bs), func(x placement.Binding) bool { return x.Cluster == b.Cluster })
	return append(bs, b)
}

// sameResolution reports whether both are the same placement with the same claims.
func (p *Placement) sameResolution(o *Placement) bool {
	return slices.Equal(p.Warnings, o.Warnings) && len(p.Changed) == len(o.Changed) && len(p.Claimed) == len(o.Claimed) &&
		slices.EqualFunc(p.Clusters, o.Clusters, func(a, b *OnCluster) bool {
			return a == b || a.Claims.Equal(b.Claims) && sameBinding(a.Binding, b.Binding) && slices.Equal(a.Yielded, b.Yielded)
		})
}
