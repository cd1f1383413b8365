package reconciler

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
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

// traceInForce sends the trace of a commit that has come into force, once its first plan is made: the load of the commit began at
// seen and ended at loaded, and planning began at planning and ended at end.
func traceInForce(traces *tracing.Tracer, s *hub.Snapshot, seen, loaded, planning, end time.Time) {
	commit := s.Commit
	traces.Step(commit.Hash, tracing.Span{Name: spanLoad, Start: seen, End: loaded})
	traces.Step(commit.Hash, tracing.Span{Name: spanPlan, Start: planning, End: end})
	traces.Commit(commit.Hash, tracing.Span{Name: spanCommit, Start: seen, End: end, Attributes: []attribute.KeyValue{
		attribute.String("gitfleet.commit.subject", commit.Subject),
		attribute.Int("gitfleet.commit.objects", len(s.Objects)),
		attribute.Int("gitfleet.commit.placements", len(s.Placements)),
		attribute.Int("gitfleet.commit.clusters", len(s.Clusters)),
	}})
}

// spans are the spans of the stages of a commit on a cluster.
var spans = map[string]string{occurrence.StageApplied: spanApply, occurrence.StageAvailable: spanAvailable}

// traceProgress sends the stages that a placement has reached on a cluster, or could not reach, and the commits that are refused.
func traceProgress(traces *tracing.Tracer, all []occurrence.Occurrence) {
	if traces == nil {
		return
	}
	for _, o := range all {
		if o.Refused != nil {
			s := tracing.Span{Name: spanLoad, Start: o.Time.Add(-o.LoadTook), End: o.Time, Err: o.Message}
			traces.Step(o.Commit, s)
			s.Name = spanCommit
			traces.Commit(o.Commit, s)
		}
		if o.Stage == "" {
			continue
		}
		traces.Step(o.Commit, tracing.Span{Name: spans[o.Stage], Start: o.Since, End: o.Time, Err: o.Message, Attributes: []attribute.KeyValue{
			attribute.String("gitfleet.placement", o.Placement), attribute.String("gitfleet.cluster", o.Cluster),
		}})
	}
}
