package plan

import (
	"iter"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
)

// schedule calls the scheduler with the policy of the request, and reports the number of clusters that the placement's
// own policy requests. If the input is the same, it returns the previous result: reports of members about content do
// not affect scheduling, nor does what the rollout records in bindings.
func (pl *placementPlanner) schedule(p *Placement) placement.Outcome {
	if old := pl.planner.memo.results.of(p.Key); old != nil && old.placement.Request != nil && old.scheduling() == pl.current.scheduling() {
		was := old.placement.Request
		switch out := old.placement.Schedule; {
		case was.Policy != p.Request.Policy, !slices.Equal(old.placement.evicting, p.evicting):
		case !old.placement.inClusters && slices.EqualFunc(was.Bindings, p.Request.Bindings, placement.Binding.Equal):
			return out
		case old.placement.hasChosen(p.Request.Bindings): // its own result gives the same result
			out.Bindings = p.Request.Bindings
			return out
		}
	}
	out := placement.Schedule(*p.Request)
	if slices.EqualFunc(out.Bindings, p.Request.Bindings, placement.Binding.Equal) {
		out.Bindings = p.Request.Bindings // use the same memory for two equal lists
	} else {
		for i := range out.Bindings {
			pl.planner.memo.texts.Share(&out.Bindings[i].Reason)
		}
	}
	if p.Unanswered > 0 { // the policy of the request is reduced
		out.Wanted, out.Fulfilled = int(*p.Spec.Spec.Policy.NumberOfClusters), false
	}
	if pl.planner.ShortDecisions {
		out.Decisions = shortDecisions(out)
	}
	out.Decisions = pl.planner.memo.sharedDecisions(out.Decisions)
	return out
}

// shortDecisions returns the decisions on selected clusters, which come first, and one more for each missing cluster.
func shortDecisions(o placement.Outcome) []placement.Decision {
	selected := slices.IndexFunc(o.Decisions, func(d placement.Decision) bool { return !d.Selected })
	if selected < 0 {
		return o.Decisions
	}
	return slices.Clone(o.Decisions[:min(len(o.Decisions), selected+max(0, o.Wanted-o.Found))])
}

// keepRebuilt assigns bindings that were rebuilt from inventories after the ledger was lost to the current policy: the
// placement keeps those clusters without scheduling them again. If there are more than wanted, those with the larger
// names stay, as with equal scores.
func keepRebuilt(policy *api.PlacementPolicy, bs []placement.Binding) []placement.Binding {
	room := len(bs)
	switch {
	case policy == nil:
	case policy.NamesClusters():
		return bs
	case policy.NumberOfClusters != nil:
		room = int(*policy.NumberOfClusters)
	}
	rebuilt := func(b placement.Binding) bool { return b.Policy == "" && !b.Unscheduled }
	for _, b := range bs {
		if !b.Unscheduled && !rebuilt(b) {
			room--
		}
	}
	for i := range slices.Backward(bs) {
		if rebuilt(bs[i]) && room > 0 {
			bs[i].Policy = placement.PolicyHash(policy)
			room--
		}
	}
	return bs
}

// listAbsent lists the clusters that the policy asks for and that cannot be chosen.
func (pl *placementPlanner) listAbsent(p *Placement) {
	p.NoMembers = len(pl.planner.memo.members.List) == 0
	for _, a := range p.Schedule.Absent {
		usability := fulfilment.Unanswered
		if pl.planner.Ledger.Refusal(a.Cluster) != "" || pl.planner.Ledger.Cluster(a.Cluster).Denied() != "" {
			usability = fulfilment.Refused
		}
		p.Absent = append(p.Absent, Absence{a, usability})
	}
}

// clustersOfOthers returns the clusters of the placements that an affinity names: as planned now, or, for mutual
// affinities, as recorded in the ledger.
func (pl *planner) clustersOfOthers(spec *hub.Placement) map[string][]string {
	names := placement.ReferencedPlacements(spec.Spec.Policy)
	if len(names) == 0 {
		return nil
	}
	out := map[string][]string{}
	for _, name := range names {
		key := api.PlacementKey{Namespace: spec.Key.Namespace, Name: name}
		if pl.memo.spec(key) == nil {
			continue
		}
		if r := pl.results.of(key); r != nil && r.placement.Request != nil {
			out[name] = keptClusters(r.placement.bindings())
		} else if record := pl.Ledger.Placement(key); record != nil {
			out[name] = keptClusters(record.Bindings())
		} else {
			out[name] = []string{}
		}
	}
	return out
}

func keptClusters(bs []placement.Binding) []string {
	out := []string{}
	for _, b := range bs {
		if !b.Unscheduled && !b.Removing {
			out = append(out, b.Cluster)
		}
	}
	return out
}

// warnIdleOverrides warns of overrides of a placement that have no rule for any of its clusters.
func (pl *placementPlanner) warnIdleOverrides(p *Placement) {
	for _, name := range pl.current.prepared.renderer.Idle(pl.planner.boundClusters(p)) {
		p.Warnings = append(p.Warnings, pl.planner.memo.inForce.overrideWarning(name, "spec.policy.overrideRules", "has no rule for any cluster the placement holds"))
	}
}

func (pl *planner) boundClusters(p *Placement) iter.Seq[placement.Cluster] {
	return func(yield func(placement.Cluster) bool) {
		for _, b := range p.Schedule.Bindings {
			if c, declared := pl.memo.members.Cluster(b.Cluster); declared && !b.Unscheduled && !yield(c) {
				return
			}
		}
	}
}
