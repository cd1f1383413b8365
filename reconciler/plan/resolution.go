package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A resolver decides which placement owns the objects that several select.
type resolver struct {
	*planner
	// shared are the objects to decide on, and sharedIn those of each content, by its first
	// manifest.
	shared   map[api.ID]bool
	sharedIn map[**work.Manifest]map[api.ID]*work.Manifest
}

// A claimant is a placement on a cluster on which it may claim shared objects.
type claimant struct {
	*result
	on *OnCluster
}

// A resolution is the outcome of the claims on one cluster. It stays valid as long as the
// overlap and the specs of the claimants do, the cluster is not paused or released, and the
// placements have the same plan for the cluster.
type resolution struct {
	// before is the plan of each claimant for the cluster, after the one with the outcome.
	before, after []*OnCluster
	conflicts     conflicts
}

// of reports whether the resolution is that of the claimants.
func (res *resolution) of(claimants []claimant) bool {
	return res != nil && slices.EqualFunc(res.before, claimants, func(c *OnCluster, now claimant) bool { return c == now.on })
}

// resolved returns the plan with the outcome; nil if the resolution is not about c. It may be
// nil.
func (res *resolution) resolved(c *OnCluster) *OnCluster {
	if res != nil {
		if i := slices.Index(res.before, c); i >= 0 {
			return res.after[i]
		}
	}
	return nil
}

// resolveConflicts decides which placement owns the objects that several select, on the clusters
// on which anything has changed, and updates the placements that claim any. changed are the
// placements with new results.
func (pl *planner) resolveConflicts(changed map[api.PlacementKey]bool) {
	m := pl.memo
	r := &resolver{planner: pl, shared: m.overlap.shared, sharedIn: map[**work.Manifest]map[api.ID]*work.Manifest{}}
	claimants := map[string][]claimant{}
	for _, key := range m.overlap.claimants {
		for _, c := range pl.results[key].placement.Clusters {
			claimants[c.Binding.Cluster] = append(claimants[c.Binding.Cluster], claimant{pl.results[key], c})
		}
	}
	resolutions, sameConflicts := make(map[string]*resolution, len(claimants)), len(claimants) == len(m.resolutions)
	for cluster, all := range claimants {
		old := m.resolutions[cluster]
		if old.of(all) {
			resolutions[cluster] = old
			continue
		}
		now := r.resolve(cluster, all, old)
		resolutions[cluster] = now
		sameConflicts = sameConflicts && old != nil && now.conflicts.equal(old.conflicts)
	}
	m.resolutions = resolutions
	if !sameConflicts {
		m.conflicts = conflictExtents(resolutions)
	}
	resolved := map[api.PlacementKey]*Placement{}
	for _, key := range m.overlap.claimants {
		resolved[key] = r.resolved(pl.results[key].placement)
		if last := m.resolved[key]; last != nil && !changed[key] && slices.Equal(last.Clusters, resolved[key].Clusters) && slices.Equal(last.Warnings, resolved[key].Warnings) {
			resolved[key] = last
		}
	}
	m.resolved = resolved
}

// resolve decides the claims on one cluster. old is its last resolution, of which it keeps what
// has not changed; it may be nil.
func (r *resolver) resolve(cluster string, claimants []claimant, old *resolution) *resolution {
	res, claims := &resolution{}, make([]*claim, len(claimants))
	for i, c := range claimants {
		claims[i] = r.claim(c.placement, c.prepared, c.on)
	}
	if r.paused[cluster] != "" {
		res.conflicts = r.keepOwners(claims)
	} else {
		res.conflicts = r.assignOwners(claims)
	}
	for _, cl := range claims {
		now := r.resolvedCluster(cl)
		if last := old.resolved(cl.on); last != nil && last.equal(now) {
			now = last
		}
		res.before, res.after = append(res.before, cl.on), append(res.after, now)
	}
	return res
}

// resolved returns a copy of a placement with the objects that it yields or gets early.
func (r *resolver) resolved(p *Placement) *Placement {
	out := *p
	if p.Spec != nil {
		out.Warnings = append(slices.Clip(p.Warnings), r.conflictWarnings(p)...)
	}
	out.Clusters, out.Changed = slices.Clone(p.Clusters), slices.Clone(p.Changed)
	for i, c := range p.Clusters {
		now := r.memo.resolutions[c.Binding.Cluster].resolved(c)
		out.Clusters[i] = now
		if now.Claims.Equal(c.Claims) {
			continue
		}
		out.Claimed = append(out.Claimed, now)
		if now.Binding != c.Binding {
			out.Changed = slices.DeleteFunc(out.Changed, func(b placement.Binding) bool { return b.Cluster == now.Binding.Cluster })
			out.Changed = append(out.Changed, now.Binding)
		}
	}
	return &out
}

// resolvedCluster returns the claim's cluster with the outcome of the claim.
func (r *resolver) resolvedCluster(cl *claim) *OnCluster {
	if cl.outcome.Empty() && cl.on.Claims.Empty() && len(cl.yielded) == 0 {
		return cl.on
	}
	out := *cl.on
	out.Yielded = cl.yielded
	if !cl.outcome.Equal(out.Claims) {
		out.Claims = cl.outcome
	}
	if !cl.outcome.Empty() {
		out.work = cl.finalWork(r.paused[out.Binding.Cluster] != "")
	}
	if !sameContent(cl.outcome, cl.on.Claims) && !cl.reassigned() {
		// The work changes, so that reports about the old work do not count.
		out.Binding.AssignedAt = r.Now
	}
	return &out
}

// sameContent reports whether both claims leave out and add the same objects.
func sameContent(a, b ledger.Claims) bool {
	return slices.Equal(a.Early, b.Early) && slices.EqualFunc(a.Yields, b.Yields, func(x, y ledger.Yield) bool { return x.ID == y.ID })
}

// finalWork returns the work of the cluster with objects left out and added.
func (cl *claim) finalWork(paused bool) *work.Work {
	p := cl.claimant
	// As long as no revision is assigned, all of its objects were assigned early.
	w := work.Work{Placement: cl.key, Keep: paused, Abandon: p.Record.Abandon, Suspended: cl.on.Suspended, SuspendedObjects: cl.on.suspendedObjects, ClusterDrift: cl.on.driftRule}
	if cl.on.work != nil {
		w = *cl.on.work
	} else if p.Spec != nil {
		w.Strategy, w.Drift = strategy(p.Spec.Spec), p.Spec.Annotations[api.DriftAnnotation]
	}
	w.Manifests = slices.DeleteFunc(slices.Clone(w.Manifests), func(m *work.Manifest) bool { return yields(cl.outcome, m.ID) })
	if len(cl.outcome.Yields) > 0 && p.Spec != nil && !w.Remove && !cl.reportOnly && !cl.contentUnknown {
		w.Awaited = cl.on.Content.Manifests // objects left to another placement are not given up
	}
	if len(cl.outcome.Early) > 0 {
		for _, id := range cl.outcome.Early {
			if m := cl.early[id]; m != nil {
				w.Manifests = append(w.Manifests, m)
			}
		}
		w.Manifests = work.Sorted(w.Manifests)
		w.Keep = cl.contentUnknown || paused || w.Keep && cl.on.Binding.HasRevision()
	}
	return &w
}
