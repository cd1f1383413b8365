package reconciler

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

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

// traceProgress sends the stages that a placement has reached on a cluster, or could not reach, and the commits that are refused.
func traceProgress(traces *tracing.Tracer, all []occurrence) {
	if traces == nil {
		return
	}
	for _, o := range all {
		if o.refused != nil {
			s := tracing.Span{Name: spanLoad, Start: o.Time.Add(-o.loadTook), End: o.Time, Err: o.Message}
			traces.Step(o.Commit, s)
			s.Name = spanCommit
			traces.Commit(o.Commit, s)
		}
		if o.stage == "" {
			continue
		}
		traces.Step(o.Commit, tracing.Span{Name: spans[o.stage], Start: o.since, End: o.Time, Err: o.Message, Attributes: []attribute.KeyValue{
			attribute.String("gitfleet.placement", o.Placement), attribute.String("gitfleet.cluster", o.Cluster),
		}})
	}
}
