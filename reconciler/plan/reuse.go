package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
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

// newBinding returns a copy of a binding that may be changed until the placement is planned. Then keepBinding is called.
func (m *Memo) newBinding(b placement.Binding) *placement.Binding {
	m.bindings = append(m.bindings, b)
	return &m.bindings[len(m.bindings)-1]
}

// keepBinding replaces the binding by that of the ledger if both are the same, and by a copy of its own otherwise.
func (c *OnCluster) keepBinding() {
	if c.Entry != nil && sameBinding(c.Entry.Binding, *c.Binding) {
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
		return c.Entry == nil || c.work == nil || c.Err != nil || c.provenContent != nil || c.leftover != nil || len(c.Yielded) > 0
	}
	return c.Entry == o.Entry && !rare(c) && !rare(o) && *c.Binding == *o.Binding && c.Latest == o.Latest && sameRendered(c.Content, o.Content) &&
		c.Waits == o.Waits && c.Failure == o.Failure && c.TimedOut == o.TimedOut && c.Suspended == o.Suspended && c.suspendedSince == o.suspendedSince &&
		c.Foreign == o.Foreign && c.DeleteAllowed == o.DeleteAllowed && sameWork(c.work, o.work) && ledger.Identical(c.suspendedObjects, o.suspendedObjects) &&
		c.driftRule == o.driftRule && c.Claims.Identical(o.Claims) && sameRendered(c.PreviousContent, o.PreviousContent) &&
		c.notRenderable == o.notRenderable && c.loading == o.loading && c.Held == o.Held && c.HeldUntil == o.HeldUntil && c.Overdue == o.Overdue
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
