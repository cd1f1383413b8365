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
	"github.com/gitfleet/gitfleet/reconciler/plan/ownership"
)

// A resolver decides which placement owns the objects that several select.
type resolver struct {
	planner *planner
	// conflicts are those that were found, on all clusters.
	conflicts map[conflict]*conflictExtent
}

// resolveConflicts decides which placement owns the objects that several select, and returns the placements that claim
// any, with the outcome.
func (pl *planner) resolveConflicts() map[api.PlacementKey]*Placement {
	shared := sharedObjects{ids: pl.memo.overlap.shared, in: map[**work.Manifest]map[api.ID]*work.Manifest{}}
	on, of := map[string][]*ownership.Claim{}, map[api.PlacementKey][]*claim{}
	for _, key := range pl.memo.overlap.claimants {
		r := pl.results.of(key)
		for _, c := range r.placement.Clusters {
			cl := shared.claim(r.placement, r.prepared, c, pl.Now)
			on[c.Binding.Cluster], of[key] = append(on[c.Binding.Cluster], &cl.Claim), append(of[key], cl)
		}
	}
	r := &resolver{planner: pl, conflicts: map[conflict]*conflictExtent{}}
	for cluster, claims := range on {
		if pl.paused[cluster] != "" {
			r.recordConflicts(cluster, ownership.Keep(claims))
		} else {
			r.recordConflicts(cluster, ownership.Assign(claims))
		}
	}
	resolved := map[api.PlacementKey]*Placement{}
	for _, key := range pl.memo.overlap.claimants {
		resolved[key] = r.resolved(pl.results.of(key).placement, of[key])
	}
	return resolved
}

// recordConflicts records the conflicts on a cluster.
func (r *resolver) recordConflicts(cluster string, all []ownership.Conflict) {
	for _, found := range all {
		c := conflict{found.Owner, found.Without}
		if r.conflicts[c] == nil {
			r.conflicts[c] = &conflictExtent{map[api.ID]bool{}, map[string]bool{}}
		}
		r.conflicts[c].ids[found.ID], r.conflicts[c].clusters[cluster] = true, true
	}
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
		if now.Unusual().Deviation.Equal(cl.Before) {
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
	if cl.Outcome.Empty() && cl.Before.Empty() && len(cl.Yielded) == 0 {
		return cl.on
	}
	out := *cl.on
	out.change(func(in *Circumstances) { in.Deviation, in.Yielded = cl.Outcome, r.yielded(cl) })
	if !cl.Outcome.Empty() {
		out.work = cl.finalWork(r.planner.paused[out.Binding.Cluster] != "")
	}
	if !sameContent(cl.Outcome, cl.Before) && !cl.Reassigned {
		// The work changes, so that reports about the old work do not count.
		b := *out.Binding
		b.AssignedAt = r.planner.Now
		out.Binding = &b
	}
	return &out
}

// yielded returns the objects of a claim that are left to other placements, for the report.
func (r *resolver) yielded(cl *claim) (out []Yielded) {
	for _, y := range cl.Yielded {
		yielded := Yielded{Manifest: y.Object, To: y.To, Passing: y.Passing}
		if spec := r.planner.memo.spec(y.To); spec != nil {
			yielded.Origin = spec.Origin
		}
		out = append(out, yielded)
	}
	return out
}

// sameContent reports whether two outcomes of a claim leave out and add the same objects.
func sameContent(a, b ledger.Deviation) bool {
	return slices.Equal(a.Early, b.Early) && slices.EqualFunc(a.Yields, b.Yields, func(x, y ledger.Yield) bool { return x.ID == y.ID })
}

// A conflict exists between two placements of the commit in force that select the same objects: one owns them, and the other
// one does not get them.
type conflict struct{ owner, without api.PlacementKey }

// A conflictExtent lists the objects that are in conflict, and the clusters on which they are.
type conflictExtent struct {
	ids      map[api.ID]bool
	clusters map[string]bool
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

// conflictWarnings warns of the conflicts of a placement, with the position of the other placement.
func (r *resolver) conflictWarnings(p *Placement) problem.List {
	var out problem.List
	add := func(other api.PlacementKey, format string, e *conflictExtent) {
		text := other.String()
		if spec := r.planner.memo.spec(other); spec != nil {
			text += " (" + spec.Origin.String() + ")"
		}
		const field = "spec.resourceSelectors"
		out = append(out, problem.Problem{Origin: p.Spec.Lines.At(p.Spec.Origin, field), Field: field, Severity: problem.Warning, Message: fmt.Sprintf(format, text, e)})
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

func findOverlap(all results) overlap {
	o := overlap{shared: map[api.ID]bool{}}
	owners, claimants := map[api.ID]api.PlacementKey{}, map[api.PlacementKey]bool{}
	for i, r := range all.list {
		key := all.planned[i]
		for _, content := range r.contentsInUse {
			for _, m := range content.renderer.Manifests() {
				if owner, taken := owners[m.ID]; taken && owner != key {
					o.shared[m.ID], claimants[owner], claimants[key] = true, true, true
				}
				owners[m.ID] = key
			}
		}
	}
	for i, r := range all.list {
		key := all.planned[i]
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
	maps.DeleteFunc(claimants, func(key api.PlacementKey, _ bool) bool { return all.of(key) == nil })
	o.claimants = slices.SortedFunc(maps.Keys(claimants), api.PlacementKey.Compare)
	return o
}

// sameObjects reports whether two results for a placement have the same contents and claims, so that the overlap of all
// placements is the same. o may be nil.
func (r *result) sameObjects(o *result) bool {
	return o != nil && slices.Equal(r.contentsInUse, o.contentsInUse) &&
		slices.EqualFunc(r.placement.Clusters, o.placement.Clusters, func(a, b *OnCluster) bool { return a == b || a.Unusual().Deviation.Equal(b.Unusual().Deviation) })
}
