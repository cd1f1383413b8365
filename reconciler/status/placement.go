package status

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// entry returns the report of the placement without runs, and what has changed in the builder.
func (b *builder) entry() *placementEntry {
	e := &placementEntry{of: b.p, at: b.in.Now, conditions: b.in.Conditions, undecided: b.record == nil, detail: b.detail(), drifts: drifts(b.p, lineBuilder{b}.clustersWith(isDrifted)...)}
	if b.p.Spec == nil {
		b.terminate(e)
		return e
	}
	s := b.status()
	e.lines, e.unanswered, e.missingSince = lineBuilder{b}.lines().List(), b.unanswered, b.missingSince()
	e.set(b.meta(), b.p.Spec.Spec, s)
	return e
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
	if v, blocked := conditions.DeletionsBlocked(b.p, lineBuilder{b}.clustersWith(isBlocked)...); blocked {
		set.add(api.DeletionsBlocked, v)
	}
	if b.mirrored() && !b.p.Pending {
		set.add(b.prefix()+api.StatusSynced, b.statusSynced(of.SelectedResources))
	}
	return b.finish(set, "")
}

// useCommonContent reports the content that all clusters hold, if it is the same. The objects
// that an older content selected are no longer known.
func (b *builder) useCommonContent(s *api.PlacementStatus) {
	latest := s.ObservedResourceIndex
	if s.ObservedResourceIndex, _ = b.common(); s.ObservedResourceIndex != latest {
		s.SelectedResources = nil
	}
}

// common returns the index of the content that all selected clusters hold, empty if they hold none; same
// is false if they hold different ones.
func (b *builder) common() (index string, same bool) {
	first, lines := true, lineBuilder{b}.lines()
	for i, c := range b.p.Clusters {
		switch {
		case !lines.At(i).selected:
		case first:
			index, first = conditions.IndexOn(b.p, c), false
		case index != conditions.IndexOn(b.p, c):
			return "", false
		}
	}
	return index, true
}

// externalRolloutStarted is the condition RolloutStarted of a placement with an external
// rollout; v is the aggregate of its clusters.
func (b *builder) externalRolloutStarted(v conditions.Value) conditions.Value {
	index, same := b.common()
	why := "different resource snapshot versions are observed across clusters"
	switch {
	case same && index != "":
		return v
	case same:
		run := "ClusterStagedUpdateRun"
		if b.p.Key.Namespace != "" {
			run = "StagedUpdateRun"
		}
		why = fmt.Sprintf("no resource snapshot name is observed across clusters. To determine rollout status, check the %s resources with spec.placementName matching this placement", run)
	}
	return conditions.Unknown(api.RolloutControlledByExternalController, "Rollout is controlled by an external controller and "+why)
}

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

// detail returns the details of the placement without those of its clusters.
func (b *builder) detail() *Detail {
	p := b.p
	d := &Detail{
		Placement: p.Key.String(), Warnings: texts(p.Warnings), Internal: p.InternalError, Stopped: p.Rollout.Stopped,
		Proven: p.Record.Proven.Commit, Selected: len(p.Selection.Objects),
	}
	if p.Spec == nil {
		return d
	}
	updated := count(lineBuilder{b}.lines().All(), func(of line) bool { return of.facts&isUpdated != 0 })
	d.UpdateRun, d.FailedContent = updaterun.Of(p, b.in.Now, b.in.ApprovalsInGit), updaterun.FailedContentOf(p)
	d.Origin, d.NoMembers, d.Short = p.Spec.Origin.String(), p.NoMembers, max(0, p.Schedule.Wanted-p.Schedule.Found)
	for _, a := range p.Absent {
		d.Absent = append(d.Absent, Absence{a.Cluster, a.Reason, a.Usability == fulfilment.Refused})
	}
	budget := p.Rollout.Budget
	nothing := len(p.Clusters) == 0 && budget.Target == 0 && !p.Record.RollingOut()
	if !nothing && !p.Record.RolloutStarted.IsZero() {
		d.Rollout = &Rollout{
			Started: p.Record.RolloutStarted, Finished: p.Record.RolloutFinished, Updated: updated, Target: budget.Target,
			Unavailable: max(0, budget.Target-budget.NotCounted-budget.Ready), MaxUnavailable: budget.MaxUnavailable,
		}
	}
	return d
}

func texts(ps problem.List) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Error())
	}
	return out
}

// mirrored reports whether a ClusterResourcePlacementStatus shows the status in the namespace of the placed objects as well.
func (b *builder) mirrored() bool {
	return b.p.Key.Namespace == "" && b.p.Spec.Spec.StatusReportingScope == api.NamespaceAccessible
}

// placedNamespace is the namespace that a placement selects; empty if it names none.
func (b *builder) placedNamespace() string {
	for _, t := range b.p.Spec.Spec.ResourceSelectors {
		if t.Group == "" && t.Kind == "Namespace" {
			return t.Name
		}
	}
	return ""
}

// statusSynced is the condition StatusSynced.
func (b *builder) statusSynced(selected []api.ResourceIdentifier) conditions.Value {
	namespace := b.placedNamespace()
	why := fmt.Sprintf("the placement does not select the namespace %q", namespace)
	switch {
	case namespace == "":
		why = "the placement names no namespace"
	case slices.ContainsFunc(selected, func(i api.ResourceIdentifier) bool {
		return i.Group == "" && i.Kind == "Namespace" && i.Name == namespace
	}):
		return conditions.True(api.StatusSyncSucceeded, fmt.Sprintf("Successfully created or updated ClusterResourcePlacementStatus in namespace '%s'", namespace))
	}
	return conditions.False(api.StatusSyncFailed, "Failed to create or update ClusterResourcePlacementStatus: "+why)
}

// mirror returns the status as it is shown in the namespace; nil if it is not. An unchanged
// status is the same object as before, with the same time. old is the report before; nil if it said something else of clusters.
func (b *builder) mirror(of *api.ClusterResourcePlacement, old *placementEntry) *api.ClusterResourcePlacementStatus {
	if !b.mirrored() || !meta.IsStatusConditionTrue(of.Status.Conditions, b.prefix()+api.StatusSynced) {
		return nil
	}
	source := of.Status
	source.Conditions = slices.DeleteFunc(slices.Clone(source.Conditions), func(c metav1.Condition) bool {
		return strings.HasSuffix(c.Type, api.StatusSynced)
	})
	namespace := b.placedNamespace()
	if old != nil && old.mirror != nil && old.mirror.Namespace == namespace && reflect.DeepEqual(old.mirror.SourceStatus, source) {
		return old.mirror
	}
	const kind = "ClusterResourcePlacementStatus"
	return &api.ClusterResourcePlacementStatus{
		TypeMeta: metadata.Type(api.PlacementGroup, kind),
		ObjectMeta: metav1.ObjectMeta{
			Name: of.Name, Namespace: namespace, UID: metadata.UID(of.CreationTimestamp.Time, kind, namespace, of.Name), CreationTimestamp: of.CreationTimestamp,
		},
		SourceStatus: source, LastUpdatedTime: metav1.NewTime(b.in.Now),
	}
}
