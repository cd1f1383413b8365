package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// maxOrdered limits the judged evictions that users have ordered in the record of a placement.
const maxOrdered = 20

// evict judges the evictions of a placement, each of them once and one after the other, and begins the removal of those
// that are executed by marking the bindings. It does so before clusters are scheduled, so that others can be selected.
func evict(pl *placementPlanner, p *Placement, before []placement.Binding, record *ledger.Placement) {
	declared := pl.planner.memo.inForce.evictions[p.Key]
	if len(declared)+len(p.Record.Evictions) == 0 {
		return
	}
	p.Record.Evictions = recordedEvictions(pl, p, declared)
	if lost := record != nil && !record.Deleted && record.Created.IsZero(); lost {
		judgeAll(p, pl, placement.Judgement{Valid: true, Message: "Eviction is blocked, it may have been executed before the ledger was lost; commit an eviction with another name to repeat it"})
		return
	}
	if !slices.ContainsFunc(p.Record.Evictions, placement.Eviction.Pending) {
		return
	}
	state := placement.Evictable{Policy: p.Spec.Spec.Policy}
	if b := pl.planner.memo.inForce.budgets[p.Key]; b != nil {
		state.Budget = &b.Spec
	}
	for _, b := range before {
		e, known := evictable(pl, p, b, record)
		if !known {
			return // the members report soon
		}
		state.Bindings = append(state.Bindings, e)
	}
	for i := range p.Record.Evictions {
		e := &p.Record.Evictions[i]
		if !e.Pending() {
			continue
		}
		e.Judgement, e.Judged = state.Judge(e.Cluster), pl.planner.Now
		if !e.Executed {
			continue
		}
		at := slices.IndexFunc(before, func(b placement.Binding) bool { return b.Cluster == e.Cluster })
		if b := &before[at]; !b.Removing {
			b.Unscheduled, b.Removing, b.Evicted, b.AllowDelete = true, true, true, true
			pl.planner.recordRemoval(b)
		}
		state.Bindings[at].Removing = true
	}
}

// recordedEvictions returns the evictions to be recorded: those that are declared, and the last that were ordered.
func recordedEvictions(pl *placementPlanner, p *Placement, declared []*hub.Eviction) []placement.Eviction {
	var out []placement.Eviction
	ordered := 0
	for _, e := range slices.Backward(p.Record.Evictions) {
		at := slices.IndexFunc(declared, func(d *hub.Eviction) bool { return d.Name == e.Name })
		switch {
		case e.By != "" && !e.Pending():
			if ordered++; ordered > maxOrdered {
				continue
			}
		case e.By == "" && at < 0:
			continue
		case e.By == "" && declared[at].Spec.ClusterName != e.Cluster:
			p.warn("", "eviction "+e.Name+" ("+declared[at].Origin.String()+"): The ClusterName field is immutable; commit an eviction with another name")
		}
		out = append(out, e)
	}
	slices.Reverse(out)
	for _, d := range declared {
		if !slices.ContainsFunc(out, func(e placement.Eviction) bool { return e.Name == d.Name }) {
			out = append(out, placement.Eviction{Name: d.Name, Cluster: d.Spec.ClusterName, At: pl.planner.Now})
		}
	}
	return out
}

// judgeAll gives all evictions of a placement that wait the same judgement.
func judgeAll(p *Placement, pl *placementPlanner, j placement.Judgement) {
	for i := range p.Record.Evictions {
		if e := &p.Record.Evictions[i]; e.Pending() {
			e.Judgement, e.Judged = j, pl.planner.Now
		}
	}
}

// evictable returns the state of a placement on a cluster. It is not known while a member that is reachable has not reported, or
// a commit is being loaded.
func evictable(pl *placementPlanner, p *Placement, b placement.Binding, record *ledger.Placement) (e placement.EvictableBinding, known bool) {
	c := pl.recordedCluster(b, record)
	on := pl.rolloutTarget(p, c)
	e = placement.EvictableBinding{Cluster: b.Cluster, Removing: b.Removing, Released: b.HasRevision()}
	current := on.Seen.Hash == b.Assigned.Hash && e.Released
	switch health := on.Seen.Health; {
	case pl.planner.paused[b.Cluster] != "":
		return e, false
	case c.Unusual().Refusal != "":
		e.Blocked = c.Unusual().Refusal
	case c.Unusual().Suspended != "":
		e.Blocked = "it is " + c.Unusual().Suspended
	case on.Unreachable:
	case e.Released && !c.Entry.Reported():
		return e, false
	case current:
		e.Available = health == rollout.Available || health == rollout.Untracked
		e.Failed = health == rollout.Failed || health == rollout.DiffReported || health == rollout.DiffFailed || health == rollout.Unavailable && on.Seen.Failure != ""
	}
	return e, true
}

// withoutEvicting returns the clusters for the scheduler: those that the placement is being evicted from are not eligible.
func withoutEvicting(p *Placement, clusters []placement.Cluster, before []placement.Binding) []placement.Cluster {
	for _, b := range before {
		if !b.Evicted || !b.Removing {
			continue
		}
		at := slices.IndexFunc(clusters, func(c placement.Cluster) bool { return c.Name == b.Cluster })
		if at < 0 {
			continue
		}
		if p.evicting == nil {
			clusters = slices.Clone(clusters)
		}
		clusters[at].Ineligible, clusters[at].IneligibleKind = "the placement is being evicted from it", ""
		p.evicting = append(p.evicting, b.Cluster)
	}
	return clusters
}
