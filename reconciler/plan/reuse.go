package plan

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
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

// newBinding returns a copy of a binding that may be changed until the placement is planned. Then keepBinding is called.
func (m *Memo) newBinding(b placement.Binding) *placement.Binding {
	m.bindings = append(m.bindings, b)
	return &m.bindings[len(m.bindings)-1]
}

// keepBinding replaces the binding by that of the ledger if both are the same, and by a copy of its own otherwise.
func (c *OnCluster) keepBinding() {
	if c.Entry != nil && c.Entry.Binding.Equal(*c.Binding) {
		c.Binding = &c.Entry.Binding
	} else {
		own := *c.Binding
		c.Binding = &own
	}
}

// noContent is the content of a cluster without a newest revision.
var noContent = &work.Rendered{}

// newCluster returns a cluster in memory that is not used, if there is any.
func (m *Memo) newCluster(c OnCluster) *OnCluster {
	if n := len(m.spareClusters); n > 0 {
		last := m.spareClusters[n-1]
		m.spareClusters = m.spareClusters[:n-1]
		*last = c
		return last
	}
	fresh := c // the parameter is not moved to the heap
	return &fresh
}

// equals reports whether two plans for a cluster, with the same record in the ledger, are equal. Plans with rare content are
// never the same.
func (c *OnCluster) equals(o *OnCluster) bool {
	rare := func(c *OnCluster) bool {
		return c.Entry == nil || c.work == nil || c.Err != nil || c.Unusual().provenContent != nil || c.Unusual().leftover != nil || len(c.Unusual().Yielded) > 0
	}
	return c.Entry == o.Entry && !rare(c) && !rare(o) && *c.Binding == *o.Binding && c.Latest() == o.Latest() && sameRendered(c.Content, o.Content) &&
		c.Waits == o.Waits && c.TimedOut == o.TimedOut && c.Unusual().equals(o.Unusual()) && c.DeleteAllowed == o.DeleteAllowed && sameWork(c.work, o.work) &&
		sameRendered(c.PreviousContent, o.PreviousContent) &&
		c.notRenderable == o.notRenderable && c.Deferred == o.Deferred && c.Overdue == o.Overdue
}

// sameRendered reports whether two contents, which may be nil, are the same in memory.
func sameRendered(a, b *work.Rendered) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Hash == b.Hash && ledger.Identical(a.Manifests, b.Manifests) && ledger.Identical(a.Refused, b.Refused) &&
		slices.Equal(a.ClusterOverrides, b.ClusterOverrides) && slices.Equal(a.Overrides, b.Overrides)
}

// SchedulerInput returns Request with its bindings, which it may lack; nil if the scheduler was not called.
func (p *Placement) SchedulerInput() *placement.Request {
	if !p.inClusters {
		return p.Request
	}
	in := *p.Request
	in.Bindings = p.bindings()
	return &in
}

// dropBindings drops the bindings of the scheduler's input and result if those of the planned clusters are the same for the
// scheduler, as they are for nearly all placements, and copies them out of the memory of the planner otherwise. It is called
// when the placement is planned.
func (p *Placement) dropBindings() {
	if slices.EqualFunc(p.Request.Bindings, p.Schedule.Bindings, sameChoice) && p.hasInClusters(p.Schedule.Bindings) {
		p.inClusters, p.Request.Bindings, p.Schedule.Bindings = true, nil, nil
		return
	}
	p.Request.Bindings, p.Schedule.Bindings = slices.Clone(p.Request.Bindings), slices.Clone(p.Schedule.Bindings)
}

// bindings returns the bindings that the scheduler has returned.
func (p *Placement) bindings() []placement.Binding {
	if !p.inClusters {
		return p.Schedule.Bindings
	}
	out := make([]placement.Binding, 0, len(p.Clusters))
	for _, c := range p.Clusters {
		if !c.Binding.Removing {
			out = append(out, *c.Binding)
		}
	}
	return out
}

// hasChosen reports whether the scheduler has returned certain bindings, as far as they matter to it.
func (p *Placement) hasChosen(bs []placement.Binding) bool {
	if p.inClusters {
		return p.hasInClusters(bs)
	}
	return slices.EqualFunc(p.Schedule.Bindings, bs, sameChoice)
}

// hasInClusters reports whether certain bindings are those of Clusters, without those that are being removed, as far as they
// matter to the scheduler.
func (p *Placement) hasInClusters(bs []placement.Binding) bool {
	n := 0
	for _, c := range p.Clusters {
		if c.Binding.Removing {
			continue
		}
		if n == len(bs) || bs[n].Removing || !sameChoice(*c.Binding, bs[n]) {
			return false
		}
		n++
	}
	return n == len(bs)
}
