package status

import (
	"cmp"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
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
	differs    bool
	onClusters clusterEvents
	// scratch is memory for the conditions of one cluster after the other; nil if they are kept.
	scratch []metav1.Condition
}

// meta returns the metadata that Kubernetes clients expect. The commit is the one that last
// changed the spec, so that a commit which does not change the placement does not change its
// metadata.
func (b *builder) meta() metav1.ObjectMeta {
	notes := make(map[string]string, len(b.p.Spec.Annotations)+2)
	maps.Copy(notes, b.p.Spec.Annotations)
	notes[api.PathAnnotation] = b.p.Spec.Origin.String()
	if commit := b.p.Record.Commit; commit != "" {
		notes[api.CommitAnnotation] = commit
	}
	if names := b.p.Record.Formerly; len(names) > 0 {
		notes[api.RenamedFromAnnotation] = names[len(names)-1].String()
	}
	if why := suspended(b.in, ledger.Subject{Placement: b.p.Key}); why != "" {
		notes[api.SuspendedAnnotation] = why
	}
	return metav1.ObjectMeta{
		Name: b.p.Key.Name, Namespace: b.p.Key.Namespace,
		UID: metadata.PlacementUID(b.p.Key, b.p.Record.Created), Generation: b.p.Record.Generation,
		CreationTimestamp: metav1.NewTime(b.p.Record.Created), Labels: b.p.Spec.Labels, Annotations: notes,
	}
}

// status returns the status of the placement without those of its clusters, whose lines it makes.
func (b *builder) status() api.PlacementStatus {
	s := api.PlacementStatus{ObservedResourceIndex: metadata.SnapshotIndex(b.p.Record.Index)}
	for _, o := range b.p.Selection.Objects {
		s.SelectedResources = append(s.SelectedResources, o.Identifier())
	}
	lineBuilder{b}.follow()
	if b.external() {
		b.useCommonContent(&s)
	}
	s.Conditions = b.conditions(&s)
	return s
}

// conditions returns the conditions of the placement: each aggregates those of the clusters, up
// to the first that is not true.
func (b *builder) conditions(of *api.PlacementStatus) []metav1.Condition {
	set := b.newConditionSet("", -1)
	set.add(b.prefix()+api.Scheduled, conditions.Scheduled(b.p))
	for _, typ := range b.expected() {
		count := lineBuilder{b}.tally(typ)
		if count == (conditions.Counts{}) {
			break
		}
		v := conditions.Aggregate(b.p, typ, count)
		if typ == api.RolloutStarted && b.external() {
			v = b.externalRolloutStarted(v)
		}
		set.add(b.prefix()+typ, v)
		if v.Status != metav1.ConditionTrue {
			break
		}
	}
	b.documented(&set)
	if v, held := conditions.DeletionsHeld(b.p, lineBuilder{b}.clustersWith(isHeld)...); held {
		set.add(api.DeletionsHeld, v)
	}
	if b.mirrored() && !b.p.Pending {
		set.add(b.prefix()+api.StatusSynced, b.statusSynced(of.SelectedResources))
	}
	return b.finish(set, "")
}

func (b *builder) prefix() string { return conditions.Prefix(b.p.Key.Namespace) }

func (b *builder) expected() []string { return conditions.Expected(&b.p.Spec.Spec) }

func (b *builder) reportsDiff() bool { return b.p.Spec.Spec.Strategy.ReportsDiff() }

// clusters returns an entry for each selected cluster in the scheduler's order, then one without a name for each missing cluster.
// wanted says of which clusters there are entries, by their positions in the plan; nil means of all.
func (b *builder) clusters(index string, wanted func(at int) bool) []api.PerClusterPlacementStatus {
	decisions := b.decisions()
	var out []api.PerClusterPlacementStatus
	if wanted == nil {
		out = make([]api.PerClusterPlacementStatus, 0, len(decisions))
	}
	for i, d := range decisions {
		if !d.Selected {
			continue
		}
		if at := b.p.Position(d.Cluster, i); at >= 0 && (wanted == nil || wanted(at)) {
			out = append(out, b.cluster(at, d, index))
		}
	}
	for _, d := range b.missingClusters(decisions) {
		out = append(out, api.PerClusterPlacementStatus{Conditions: b.missing(d)})
	}
	if len(out) == 0 {
		return nil
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

// missing returns the conditions of a missing cluster. They have changed when the placement's
// condition Scheduled became false.
func (b *builder) missing(d placement.Decision) []metav1.Condition {
	set := &conditionSet{b: b}
	set.add(api.Scheduled, conditions.False(api.ScheduleFailed, d.Reason))
	b.documentedOn(set)
	since := b.missingSince()
	for i := range set.list {
		set.list[i].LastTransitionTime = metav1.NewTime(since)
	}
	return set.list
}

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
