package status

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
)

// A builder builds the status of one placement.
type builder struct {
	in     Input
	p      *plan.Placement
	record *ledger.Placement // the record in the ledger; may be nil
	// old is the previous report of the placement; nil if there is none. earlier is the same, if what is unchanged on a cluster is
	// reported as there; nil otherwise.
	old, earlier *placementEntry
	// existing is the report whose details are asked for; nil while the builder makes a new one.
	existing *placementEntry

	lines *sharedlist.Editor[line] // nil until they are asked for
	// stay says that the clusters are those of the earlier report, with the same decisions.
	stay bool
	// unanswered are the reasons why clusters that have not reported yet do not answer.
	unanswered  map[string]string
	transitions []Transitions
	shared      *sharedTransitions
	// differs says that the status of a cluster is not that of the old report.
	differs bool
	// progress and problems are the events of clusters: of normal progress, which are grouped over many clusters, and all others.
	progress event.Grouping
	problems []Event
	// scratch is memory for the conditions of one cluster after the other; nil if they are kept.
	scratch []metav1.Condition
}

// reader returns a builder that makes what the report says of clusters. It does not read the ledger, and any goroutine may use
// it.
func (e *placementEntry) reader() *builder {
	return &builder{in: Input{Now: e.at, Conditions: e.conditions}, p: e.of, existing: e, unanswered: e.unanswered}
}

// onCluster returns what the status says of a cluster.
func (b *builder) onCluster(c *plan.OnCluster) conditions.Cluster {
	return conditions.On(b.p, c, b.unanswered[c.Binding.Cluster])
}

// external reports whether an external controller runs the rollout.
func (b *builder) external() bool { return conditions.External(b.p) }

func (b *builder) prefix() string { return conditions.Prefix(b.p.Key.Namespace) }

func (b *builder) expected() []string { return conditions.Expected(&b.p.Spec.Spec) }

func (b *builder) reportsDiff() bool { return b.p.Spec.Spec.Strategy.ReportsDiff() }

// decisions returns the scheduler's decisions or, if it could not be called, one for each
// cluster that the placement keeps.
func (b *builder) decisions() []placement.Decision {
	if b.p.Selection.Invalid == "" && b.p.InternalError == "" {
		return b.p.Schedule.Decisions
	}
	var out []placement.Decision
	for _, c := range b.p.Clusters {
		if !c.Binding.Unscheduled {
			out = append(out, placement.Decision{Cluster: c.Binding.Cluster, Selected: true, Reason: cmp.Or(c.Binding.Reason, "the cluster keeps what it holds")})
		}
	}
	return out
}

// missingClusters returns the decisions about the first clusters that are not selected, as many as clusters are missing.
func (b *builder) missingClusters(decisions []placement.Decision) (out []placement.Decision) {
	n := b.p.Schedule.Wanted - b.p.Schedule.Found
	for i := 0; i < len(decisions) && len(out) < n; i++ {
		if !decisions[i].Selected {
			out = append(out, decisions[i])
		}
	}
	return out
}

// missingSince returns the transition time of the condition Scheduled=False, which clusters that are not found have as well.
func (b *builder) missingSince() time.Time {
	if b.existing != nil {
		return b.existing.missingSince
	}
	if b.record != nil {
		if was := b.record.Transitions[b.prefix()+api.Scheduled]; was.Status == string(metav1.ConditionFalse) {
			return was.Time
		}
	}
	return b.in.Now
}
