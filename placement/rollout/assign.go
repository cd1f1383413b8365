package rollout

import (
	"time"

	"github.com/gitfleet/gitfleet/placement"
)

// assign assigns a new revision to a cluster. A cluster that was available is at risk, also if it
// has been unavailable only for a moment. If the cluster was still making progress with the
// old one, or could not be compared, it stays at risk, since both updates together may have
// made it unavailable; unless the rollout was resumed between them.
func (in *Input) assign(p *Plan, b *Target, r placement.Revision) {
	p.Settled = false
	_, failed := b.failure(in)
	stillRisked := b.Risked && !b.resumedSince(in) && (!failed || in.Strategy.ReportsDiff())
	risked := (b.ready(in) || b.brieflyUnavailable(in)) && !in.Strategy.ReportsDiff() || stillRisked
	p.Assign = append(p.Assign, Assignment{Cluster: b.Cluster, Revision: r, Changed: true, Risked: risked})
}

// keepAssigned keeps the revision assigned to a cluster.
func (in *Input) keepAssigned(p *Plan, b *Target) {
	ready := b.ready(in)
	if !b.Unscheduled && !(ready && b.latest()) {
		p.Settled = false
		p.unsettled++
	}
	if !ready {
		p.wake(b.readyAt(in))
	}
	if f, failed := b.failure(in); failed && !b.Unscheduled {
		p.Failed = append(p.Failed, f)
	} else if !b.Unscheduled {
		p.wake(b.failsAt(in))
	}
	if b.HasRevision() {
		p.Assign = append(p.Assign, Assignment{Cluster: b.Cluster, Revision: b.Assigned, Risked: b.Risked && !b.fullyAvailable(in) && !b.resumedSince(in), WasAvailable: b.WasAvailable || ready})
	}
}

// wake sets an earlier wake time, if at is not zero.
func (p *Plan) wake(at time.Time) {
	if !at.IsZero() && (p.Wake.IsZero() || at.Before(p.Wake)) {
		p.Wake = at
	}
}
