package plan

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// resolveConflicts decides which placement owns the objects that several select, and returns
// the final placements and the final works of each cluster.
func (pl *planner) resolveConflicts(changed map[api.PlacementKey]bool) ([]*Placement, map[string][]work.Work) {
	m := pl.memo
	if len(changed) > 0 {
		moved := m.overlaps.update(changed, pl.results)
		claimants := m.overlaps.claimants(pl.results)
		isNew := func(key api.PlacementKey) bool { return changed[key] }
		if moved || !slices.Equal(claimants, m.resolutions.claimants) || slices.ContainsFunc(claimants, isNew) {
			if moved {
				m.resolutions.clusters = nil
			}
			pl.resolveClusters(claimants)
		}
	}
	return pl.resolvedPlacements(), m.resolutions.applyTo(m.works.lists)
}

// resolutions are the resolved conflicts of all clusters. The resolution of a cluster is reused
// as long as its claimants are the same.
type resolutions struct {
	claimants []api.PlacementKey
	clusters  map[string]*resolution
}

// A resolution says which placement owns which of the shared objects of one cluster.
type resolution struct {
	claims    []*claim
	conflicts []conflictObjects
	paused    bool
	// from is the list of works before conflicts are resolved, and to the same list afterwards.
	from, to []work.Work
}

// resolveClusters resolves the conflicts of all clusters whose claimants have changed.
func (pl *planner) resolveClusters(keys []api.PlacementKey) {
	r := &resolver{planner: pl, shared: map[**work.Manifest]map[api.ID]*work.Manifest{}, lastClaim: map[api.PlacementKey]*claim{}, lastConflict: map[conflict]conflictObjects{}}
	claimants := pl.claimantsByCluster(keys)
	old, now := pl.memo.resolutions.clusters, make(map[string]*resolution, len(claimants))
	for _, name := range slices.Sorted(maps.Keys(claimants)) {
		res := old[name]
		if res == nil || res.paused != (pl.paused[name] != "") || !res.stillValid(claimants[name]) {
			res = r.resolve(name, claimants[name])
		}
		for i, cl := range res.claims {
			cl.replaceClaimant(claimants[name][i])
		}
		now[name] = res
	}
	pl.memo.resolutions = resolutions{keys, now}
	pl.resolvePlacements()
}

// stillValid reports whether the claimants are the same as those of the resolution.
func (res *resolution) stillValid(claimants []claimant) bool {
	return slices.EqualFunc(res.claims, claimants, func(cl *claim, p claimant) bool { return cl.same(&p) })
}

// A resolver has the state of resolving conflicts in one call of Resolve.
type resolver struct {
	*planner
	shared map[**work.Manifest]map[api.ID]*work.Manifest
	// lastClaim and lastConflict are the last ones of each placement and conflict. Most
	// clusters have equal ones, which are then shared in memory.
	lastClaim    map[api.PlacementKey]*claim
	lastConflict map[conflict]conflictObjects
}

// applyTo replaces the lists of works in which objects are left out or added.
func (r *resolutions) applyTo(lists map[string][]work.Work) map[string][]work.Work {
	out, own := lists, false
	for name, res := range r.clusters {
		if !slices.ContainsFunc(res.claims, func(cl *claim) bool { return !cl.outcome.Empty() }) {
			continue
		}
		if res.to == nil || !ledger.Identical(res.from, lists[name]) {
			res.from, res.to = lists[name], res.applyTo(lists[name])
		}
		if !own {
			out, own = make(map[string][]work.Work, len(lists)), true
			maps.Copy(out, lists)
		}
		out[name] = res.to
	}
	return out
}

// applyTo returns a copy of a list of works with objects left out and added.
func (res *resolution) applyTo(list []work.Work) []work.Work {
	list = slices.Clone(list)
	for _, cl := range res.claims {
		if cl.outcome.Empty() {
			continue
		}
		w := cl.assignedWork(res.paused)
		i, found := slices.BinarySearchFunc(list, cl.key, func(w work.Work, key api.PlacementKey) int { return w.Placement.Compare(key) })
		if found {
			list[i] = w
		} else {
			list = slices.Insert(list, i, w)
		}
	}
	return list
}

// assignedWork returns the final work of the claim's placement.
func (cl *claim) assignedWork(paused bool) work.Work {
	p := cl.result.placement
	// As long as no revision is assigned, all of its objects were assigned early.
	w := work.Work{Placement: cl.key, Keep: paused, Abandon: p.Record.Abandon, Suspended: cl.on.Suspended, SuspendedObjects: cl.on.suspendedObjects, ClusterDrift: cl.on.driftRule}
	if cl.work != nil {
		w = *cl.work
	} else if p.Spec != nil {
		w.Strategy, w.Drift = strategy(p.Spec.Spec), p.Spec.Annotations[api.DriftAnnotation]
	}
	yields := make(map[api.ID]bool, len(cl.outcome.Yields))
	for _, y := range cl.outcome.Yields {
		yields[y.ID] = true
	}
	manifests := make([]*work.Manifest, 0, len(w.Manifests)+len(cl.outcome.Early))
	for _, m := range w.Manifests {
		if !yields[m.ID] {
			manifests = append(manifests, m)
		}
	}
	if len(cl.outcome.Yields) > 0 && p.Spec != nil && !w.Remove && !cl.reportOnly && !cl.contentUnknown {
		w.Awaited = cl.on.Content.Manifests // objects left to another placement are not given up
	}
	if w.Manifests = manifests; len(cl.outcome.Early) > 0 {
		for _, id := range cl.outcome.Early {
			if m := cl.early[id]; m != nil {
				manifests = append(manifests, m)
			}
		}
		w.Manifests = work.Sorted(manifests)
		w.Keep = cl.contentUnknown || paused || w.Keep && cl.on.Binding.Released()
	}
	return w
}

// keepAll does not change the ownership of any object on a cluster.
func (r *resolver) keepAll(res *resolution) {
	for _, cl := range res.claims {
		cl.outcome = cl.on.Claims
		for _, y := range cl.outcome.Yields {
			if m := cl.assigned[y.ID]; m != nil {
				cl.yielded = append(cl.yielded, r.yieldedObject(m, y))
			}
			if !y.Passing {
				res.addConflict(conflict{y.To, cl.key}, y.ID)
			}
		}
	}
}

// yieldedObject returns an object left to another placement, for the report.
func (r *resolver) yieldedObject(m *work.Manifest, y ledger.Yield) Yielded {
	out := Yielded{Manifest: m, To: y.To, Passing: y.Passing}
	if spec := r.memo.spec(y.To); spec != nil {
		out.Origin = spec.Origin
	}
	return out
}
