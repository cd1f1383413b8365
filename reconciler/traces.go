package reconciler

import (
	"cmp"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

// The names of spans. The root is spanCommit, the others are its children.
const (
	spanCommit    = "commit"
	spanLoad      = "load"
	spanPlan      = "plan"
	spanApply     = "apply"
	spanAvailable = "available"
)

// A milestone is a stage that the content assigned to a cluster has reached.
type milestone struct {
	stage, span string
	since, at   time.Time // since is the end of the previous stage
}

// milestones returns the stages that a cluster has reached between two states of its entry.
func milestones(was, is *ledger.Entry) (all []milestone) {
	if was.AppliedAt.IsZero() && !is.AppliedAt.IsZero() {
		all = append(all, milestone{stageApplied, spanApply, is.Binding.AssignedAt, is.AppliedAt})
	}
	if was.AvailableAt.IsZero() && !is.AvailableAt.IsZero() {
		all = append(all, milestone{stageAvailable, spanAvailable, cmp.Or(is.AppliedAt, is.Binding.AssignedAt), is.AvailableAt})
	}
	return all
}

func (r *Reconciler) refused(l loaded, now time.Time, why string) {
	r.cfg.Record(commitEntry(history.Refused, l.commit, why))
	s := tracing.Span{Name: spanLoad, Start: now.Add(-l.took), End: now, Err: why}
	r.cfg.Traces.Step(l.commit.Hash, s)
	s.Name = spanCommit
	r.cfg.Traces.Commit(l.commit.Hash, s)
}

// traceCommit sends the trace of the commit in force, once its first plan is made; start is when planning began.
func (r *Reconciler) traceCommit(start time.Time) {
	if r.untraced.IsZero() {
		return
	}
	end, commit := r.cfg.Now(), r.inForce.Commit
	r.cfg.Traces.Step(commit.Hash, tracing.Span{Name: spanLoad, Start: r.inForceSeenAt, End: r.untraced})
	r.cfg.Traces.Step(commit.Hash, tracing.Span{Name: spanPlan, Start: start, End: end})
	r.cfg.Traces.Commit(commit.Hash, tracing.Span{Name: spanCommit, Start: r.inForceSeenAt, End: end, Attributes: []attribute.KeyValue{
		attribute.String("gitfleet.commit.subject", commit.Subject),
		attribute.Int("gitfleet.commit.objects", len(r.inForce.Objects)),
		attribute.Int("gitfleet.commit.placements", len(r.inForce.Placements)),
		attribute.Int("gitfleet.commit.clusters", len(r.inForce.Clusters)),
	}})
	r.untraced = time.Time{}
}

// traceCluster sends the stages that a placement has reached on a cluster between two states of its entry. The entries
// of the history have the failures in between.
func (r *Reconciler) traceCluster(s observedSubject, was, is *ledger.Entry, entries []history.Entry) {
	if r.cfg.Traces == nil || was == nil || is == nil || is == was || is.Binding.Removing {
		return
	}
	commit := is.Binding.Assigned.Commit
	attributes := []attribute.KeyValue{
		attribute.String("gitfleet.placement", s.placement.String()), attribute.String("gitfleet.cluster", s.cluster),
	}
	for _, m := range milestones(was, is) {
		r.cfg.Traces.Step(commit, tracing.Span{Name: m.span, Start: m.since, End: m.at, Attributes: attributes})
	}
	for _, e := range entries {
		if e.Event != history.Failed {
			continue
		}
		name, start := spanApply, is.Binding.AssignedAt
		if !is.AppliedAt.IsZero() {
			name, start = spanAvailable, is.AppliedAt
		}
		r.cfg.Traces.Step(commit, tracing.Span{Name: name, Start: start, End: e.Time, Attributes: attributes, Err: e.Message})
	}
}
