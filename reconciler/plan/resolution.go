package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// resolveConflicts decides which placement owns the objects that several select, and returns the placements that claim
// any, with the outcome.
func (pl *planner) resolveConflicts() map[api.PlacementKey]*Placement {
	r := &resolver{planner: pl, shared: pl.memo.overlap.shared, sharedIn: map[**work.Manifest]map[api.ID]*work.Manifest{}, conflicts: map[conflict]*conflictExtent{}}
	on, of := map[string][]*claim{}, map[api.PlacementKey][]*claim{}
	for _, key := range pl.memo.overlap.claimants {
		for _, c := range pl.results[key].placement.Clusters {
			cl := r.claim(pl.results[key].placement, pl.results[key].prepared, c)
			on[c.Binding.Cluster], of[key] = append(on[c.Binding.Cluster], cl), append(of[key], cl)
		}
	}
	for cluster, claims := range on {
		if r.planner.paused[cluster] != "" {
			r.keepOwners(claims)
		} else {
			r.assignOwners(claims)
		}
	}
	resolved := map[api.PlacementKey]*Placement{}
	for _, key := range pl.memo.overlap.claimants {
		resolved[key] = r.resolved(pl.results[key].placement, of[key])
	}
	return resolved
}

// resolved returns a copy of a placement with the outcome of its claims, one for each cluster.
func (r *resolver) resolved(p *Placement, claims []*claim) *Placement {
	out := *p
	if p.Spec != nil {
		out.Warnings = append(slices.Clip(p.Warnings), r.conflictWarnings(p)...)
	}
	out.Clusters, out.Changed = slices.Clone(p.Clusters), slices.Clone(p.Changed)
	for i, cl := range claims {
		now := r.resolvedCluster(cl)
		out.Clusters[i] = now
		if now.Unusual().Deviation.Equal(cl.on.Unusual().Deviation) {
			continue
		}
		out.Deviating = append(out.Deviating, now)
		if !now.Binding.Equal(*cl.on.Binding) && !slices.Contains(out.Changed, i) {
			out.Changed = append(out.Changed, i)
		}
	}
	return &out
}

// resolvedCluster returns the claim's cluster with the outcome of the claim.
func (r *resolver) resolvedCluster(cl *claim) *OnCluster {
	if cl.outcome.Empty() && cl.on.Unusual().Deviation.Empty() && len(cl.yielded) == 0 {
		return cl.on
	}
	out := *cl.on
	out.change(func(in *Circumstances) { in.Deviation, in.Yielded = cl.outcome, cl.yielded })
	if !cl.outcome.Empty() {
		out.work = cl.finalWork(r.planner.paused[out.Binding.Cluster] != "")
	}
	if !sameContent(cl.outcome, cl.on.Unusual().Deviation) && !cl.reassigned() {
		// The work changes, so that reports about the old work do not count.
		b := *out.Binding
		b.AssignedAt = r.planner.Now
		out.Binding = &b
	}
	return &out
}

// sameContent reports whether both claims leave out and add the same objects.
func sameContent(a, b ledger.Deviation) bool {
	return slices.Equal(a.Early, b.Early) && slices.EqualFunc(a.Yields, b.Yields, func(x, y ledger.Yield) bool { return x.ID == y.ID })
}

// finalWork returns the work of the cluster with objects left out and added.
func (cl *claim) finalWork(paused bool) *work.Work {
	p := cl.claimant
	// As long as no revision is assigned, all of its objects were assigned early.
	w := newWork(p, cl.on)
	w.Keep = paused
	if cl.on.work != nil {
		w = *cl.on.work
	}
	w.Manifests = slices.DeleteFunc(slices.Clone(w.Manifests), func(m *work.Manifest) bool { return yields(cl.outcome, m.ID) })
	if len(cl.outcome.Yields) > 0 && p.Spec != nil && !w.Remove && !cl.reportOnly && !cl.contentUnknown && cl.maybeHeld == nil {
		w.Awaited = cl.on.Content.Manifests // objects left to another placement are not given up
	}
	if len(cl.outcome.Early) > 0 {
		dropped := false
		for _, id := range cl.outcome.Early {
			if m := cl.early[id]; m != nil {
				w.Manifests = append(w.Manifests, m)
			} else {
				dropped = true
			}
		}
		w.Manifests = work.Sorted(w.Manifests)
		w.Keep = dropped || paused || w.Keep && cl.on.Binding.HasRevision()
	}
	return &w
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
