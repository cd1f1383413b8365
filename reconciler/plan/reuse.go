package plan

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// reuseClusters replaces clusters on which nothing has changed by those of the previous plan of the placement, which may be
// nil, so that others can compare pointers. It returns the replaced ones, to which nothing refers any more, added to spare.
func (p *Placement) reuseClusters(old *Placement, spare []*OnCluster) []*OnCluster {
	if old == nil {
		return spare
	}
	for i, c := range p.Clusters {
		at := old.Position(c.Binding.Cluster, i)
		if at < 0 {
			continue
		}
		if was := old.Clusters[at]; c.equals(was) {
			p.Clusters[i] = was
			spare = append(spare, c)
		} else if sameWork(c.work, was.work) {
			c.work = was.work
		}
	}
	return spare
}

// follow returns the result for a placement after members have reported about some of its clusters, if that decides nothing about
// the others: only those clusters are planned again. It returns nil if the whole placement has to be. What it returns is what
// planFromScratch returns, apart from contents that it keeps for longer, and from a wake time that may be earlier.
//
// A plan depends on its resultKey and on the record in the ledger. The former and the record itself are the same here, and entries
// differ in what was seen of their clusters; the bindings are those that the previous plan has decided.
func (pl *planner) follow(old *result, inputs resultKey, record *ledger.Placement) *result {
	if old == nil || record == nil || old.commit != pl.InForce.Commit.Hash || !pl.stillValid(old) || len(old.missing) > 0 || !old.placement.canFollow(record) {
		return nil
	}
	was := old.resultKey
	if was.recordVersion = inputs.recordVersion; was != inputs {
		return nil
	}
	p := *old.placement
	p.Clusters, p.Changed, p.Record = slices.Clone(p.Clusters), nil, *record
	pp := &placementPlanner{planner: pl, current: &result{resultKey: inputs, commit: old.commit, placement: &p, contentsInUse: slices.Clip(old.contentsInUse)}}
	f := partialPlanner{pp, record, rolloutInput(pp, &p), pp.deferralsOf(&p, inputs.prepared.fingerprintOf, p.Record.Index)}
	pl.memo.bindings = pl.memo.bindings[:0]
	entries := 0
	for i, e := range record.AllEntries() {
		if entries++; i >= len(p.Clusters) || p.Clusters[i].Entry != e && !f.cluster(&p, i, e) {
			return nil
		}
	}
	pp.finishRollout(&p)
	pp.recordProven(&p)
	if entries != len(p.Clusters) || !p.Record.RolloutFinished.Equal(record.RolloutFinished) || p.Record.Proven != record.Proven {
		return nil
	}
	pp.current.wake = p.Rollout.Wake
	return pp.current
}

// canFollow reports whether the plan has decided all there is to decide of the placement, apart from what members report.
func (p *Placement) canFollow(record *ledger.Placement) bool {
	if p.Spec == nil || !p.inClusters || p.RecordChanged || !p.Record.SameRecord(record) || p.Spec.Spec.Strategy.Type == api.External {
		return false
	}
	policy := p.Spec.Spec.Policy
	reduced := record.Rebuilt && policy != nil && policy.NumberOfClusters != nil // what is requested depends on who has answered
	return !reduced && len(record.Evictions)+len(p.Unbind)+len(p.evicting) == 0
}

// A partialPlanner plans some clusters of a placement again.
type partialPlanner struct {
	pl        *placementPlanner
	record    *ledger.Placement
	in        rollout.Input
	deferrals func(*OnCluster) rollout.Deferral
}

// cluster plans the cluster at a position again, after a report. It returns false if that may change more than this cluster.
func (f *partialPlanner) cluster(p *Placement, i int, e *ledger.Entry) bool {
	was, b := p.Clusters[i], e.Binding
	if was.Entry == nil || was.Waits != "" || was.Err != nil || was.notRenderable || b.Removing || b.Unscheduled || b.Deferred || !was.Binding.Equal(b) || !was.Unusual().Deviation.Identical(e.Unusual().Deviation) {
		return false
	}
	f.pl.planner.memo.latest = was.latest
	c := f.pl.planCluster(b, f.record)
	if c.Err != nil || c.notRenderable || c.Unusual().loading != "" || c.latest != was.latest || f.pl.planner.isPaused(c) || f.deferrals(c).Why != "" {
		return false
	}
	next, assigned, ok := p.Rollout.Follow(f.in, f.pl.rolloutTarget(p, was), f.pl.rolloutTarget(p, c))
	if !ok {
		return false
	}
	p.Rollout = next
	c.recordAssignment(assigned, p.Record.Index)
	for _, failed := range next.Failed {
		if failed.Cluster == b.Cluster {
			c.setFailure(failed)
		}
	}
	if c.work = f.pl.planWork(p, c, &work.Work{}); !sameWork(c.work, was.work) {
		return false
	}
	c.work, p.Clusters[i] = was.work, c
	if c.keepBinding(); c.Binding != &e.Binding {
		p.Changed = append(p.Changed, i)
	}
	return true
}

// difference describes the first difference between two plans apart from the wake time and the entries, which are their input; empty
// if there is none.
func (p *Placement) difference(o *Placement) string {
	a, b := *p, *o
	for _, one := range []*Placement{&a, &b} {
		if one.Clusters, one.Deviating = nil, nil; one.Request != nil {
			in := *one.Request
			one.Request, in.Clusters = &in, nil // they may have other properties, which the policy does not use
		}
	}
	if wake := a.Rollout.Wake; b.Rollout.Wake.IsZero() || !wake.IsZero() && wake.Before(b.Rollout.Wake) {
		b.Rollout.Wake = wake
	}
	if len(p.Clusters) != len(o.Clusters) || len(p.Deviating) != len(o.Deviating) || !reflect.DeepEqual(a, b) {
		return fmt.Sprintf("%d clusters, %+v\nand\n%d clusters, %+v", len(p.Clusters), a, len(o.Clusters), b)
	}
	for i, c := range p.Clusters {
		a, b := *c, *o.Clusters[i]
		if a.Entry, b.Entry = nil, nil; !reflect.DeepEqual(a, b) {
			return fmt.Sprintf("%+v with %+v\nand\n%+v with %+v", *a.Binding, a, *b.Binding, b)
		}
	}
	return ""
}
