package reconciler

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/gitfleet/gitfleet/reconciler/history"
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

func (r *Reconciler) refused(l loaded, now time.Time, why string) {
	publish(r.cfg, occurrence{Entry: commitEntry(history.Refused, l.commit, why)})
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

// spans are the spans of the stages of a commit on a cluster.
var spans = map[string]string{stageApplied: spanApply, stageAvailable: spanAvailable}

// traceProgress sends the stages that a placement has reached on a cluster, or could not reach.
func traceProgress(traces *tracing.Tracer, all []occurrence) {
	if traces == nil {
		return
	}
	for _, o := range all {
		if o.stage == "" {
			continue
		}
		traces.Step(o.Commit, tracing.Span{Name: spans[o.stage], Start: o.since, End: o.Time, Err: o.Message, Attributes: []attribute.KeyValue{
			attribute.String("gitfleet.placement", o.Placement), attribute.String("gitfleet.cluster", o.Cluster),
		}})
	}
}
