package status

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// Whole returns the report with what it says of each placement on each cluster, which is made when it is asked for: the
// Clusters of the Details, and the PlacementStatuses of the placements.
func (r *Report) Whole() *Report {
	return r.filled("", func(*placementEntry) bool { return true })
}

// onDemand reports whether what the report says of clusters has to be made.
func (r *Report) onDemand() bool { return r.entries.Len() > 0 && !r.filledIn }

// filled returns the report with what it says of clusters of some placements: of one cluster or, if the name is empty, of all.
func (r *Report) filled(cluster string, some func(*placementEntry) bool) *Report {
	if !r.onDemand() {
		return r
	}
	out := *r
	out.filledIn = true
	out.Details = make([]*Detail, 0, r.entries.Len())
	for e := range r.entries.Values() {
		if some(e) {
			e = e.whole(cluster)
		}
		out.Details = append(out.Details, e.detail)
		if e.cluster != nil {
			out.Placements = append(out.Placements, e.cluster)
		}
		if e.namespaced != nil {
			out.ResourcePlacements = append(out.ResourcePlacements, e.namespaced)
		}
		if e.mirror != nil {
			out.PlacementStatuses = append(out.PlacementStatuses, e.mirror)
		}
	}
	return &out
}

// EachClusterResourcePlacement yields the ClusterResourcePlacements, by name.
func (r *Report) EachClusterResourcePlacement() iter.Seq[*api.ClusterResourcePlacement] {
	return objects(r, r.Placements, func(e *placementEntry) *api.ClusterResourcePlacement { return e.cluster })
}

// EachResourcePlacement yields the ResourcePlacements, by namespace and name.
func (r *Report) EachResourcePlacement() iter.Seq[*api.ResourcePlacement] {
	return objects(r, r.ResourcePlacements, func(e *placementEntry) *api.ResourcePlacement { return e.namespaced })
}

// EachPlacementStatus yields the statuses that are also shown in the placed namespaces, by the names of their placements.
func (r *Report) EachPlacementStatus() iter.Seq[*api.ClusterResourcePlacementStatus] {
	return objects(r, r.PlacementStatuses, func(e *placementEntry) *api.ClusterResourcePlacementStatus { return e.mirror })
}

// objects yields the objects of a kind: those in a list of the report or, if they are made on demand, those that its entries have.
func objects[T any](r *Report, list []*T, of func(*placementEntry) *T) iter.Seq[*T] {
	if !r.onDemand() {
		return slices.Values(list)
	}
	return func(yield func(*T) bool) {
		for e := range r.entries.Values() {
			if o := of(e); o != nil && !yield(o) {
				return
			}
		}
	}
}

// Each yields the details of all placements one after the other, whole, with the status of the placement; nil for one that was
// removed from the repository. The PlacementStatuses are only those that say more of a cluster than its details do: see Refusal.
// The details of the clusters are valid until the next placement.
func (r *Report) Each() iter.Seq2[*Detail, *api.PlacementStatus] {
	return func(yield func(*Detail, *api.PlacementStatus) bool) {
		statuses := PlacementStatuses(r)
		var clusters []ClusterDetail
		for i, d := range r.Details {
			s := statuses[d.Placement]
			if r.onDemand() {
				e := r.entries.At(i)
				detail, b := *d, e.reader()
				clusters = clusters[:0]
				for _, c := range e.of.Clusters {
					clusters = append(clusters, b.clusterDetail(c))
				}
				detail.Clusters, d = slices.Clip(clusters), &detail
				if s != nil {
					is := *s
					is.PlacementStatuses, s = b.clusters(metadata.SnapshotIndex(e.of.Record.Index), e.saysMore), &is
				}
			}
			if !yield(d, s) {
				return
			}
		}
	}
}

// whole returns the report of the placement with everything that is only made when it is asked for: for one cluster or, if the
// name is empty, for all.
func (e *placementEntry) whole(cluster string) *placementEntry {
	out, detail, b := *e, *e.detail, e.reader()
	out.detail = &detail
	var statuses []api.PerClusterPlacementStatus
	if cluster == "" {
		for _, c := range e.of.Clusters {
			detail.Clusters = append(detail.Clusters, b.clusterDetail(c))
		}
		if e.of.Spec != nil {
			statuses = b.clusters(metadata.SnapshotIndex(e.of.Record.Index), nil)
		}
	} else if c := e.of.On(cluster); c != nil {
		detail.Clusters = []ClusterDetail{b.clusterDetail(c)}
		if s, selected := e.statusOn(b, cluster, 0); selected {
			statuses = []api.PerClusterPlacementStatus{s}
		}
	}
	if len(statuses) == 0 {
		return &out
	}
	if e.cluster != nil {
		o := *e.cluster
		o.Status.PlacementStatuses, out.cluster = statuses, &o
	}
	if e.namespaced != nil {
		o := *e.namespaced
		o.Status.PlacementStatuses, out.namespaced = statuses, &o
	}
	if e.mirror != nil {
		o := *e.mirror
		o.SourceStatus.PlacementStatuses, out.mirror = statuses, &o
	}
	return &out
}

// saysMore reports whether the status of the cluster at a position says something that its details do not: that the content was
// refused, or that a placement which only compares has done so.
func (e *placementEntry) saysMore(at int) bool {
	is := e.lines.At(at).statuses
	refused := is.of(api.Overridden) == isFalse || is.of(api.WorkSynchronized) == isFalse || is.of(api.DiffReported) != 0
	if !refused && is.of(api.Applied) == isFalse {
		seen := e.of.Clusters[at].LastKnown()
		refused = seen == nil || seen.Done
	}
	return refused
}

// OnDemand makes the objects of one placement with the statuses of its clusters. It is immutable.
type OnDemand placementEntry

// OnDemand returns what makes the objects of a placement with the statuses of its clusters; nil if the objects of the report
// have them.
func (r *Report) OnDemand(key api.PlacementKey) *OnDemand {
	if !r.onDemand() {
		return nil
	}
	found, _ := r.entries.Search(func(e *placementEntry) int { return e.of.Key.Compare(key) })
	return (*OnDemand)(found)
}

// ClusterResourcePlacement returns the ClusterResourcePlacement; nil if the placement is none.
func (o *OnDemand) ClusterResourcePlacement() *api.ClusterResourcePlacement {
	return (*placementEntry)(o).whole("").cluster
}

// ResourcePlacement returns the ResourcePlacement; nil if the placement is none.
func (o *OnDemand) ResourcePlacement() *api.ResourcePlacement {
	return (*placementEntry)(o).whole("").namespaced
}

// PlacementStatus returns the status that is shown in the placed namespace; nil if there is none.
func (o *OnDemand) PlacementStatus() *api.ClusterResourcePlacementStatus {
	return (*placementEntry)(o).whole("").mirror
}

// PlacementStatuses returns the statuses of all placements in the repository, by name.
func PlacementStatuses(r *Report) map[string]*api.PlacementStatus {
	out := map[string]*api.PlacementStatus{}
	for p := range r.EachClusterResourcePlacement() {
		if p.DeletionTimestamp == nil {
			out[api.PlacementKey{Name: p.Name}.String()] = &p.Status
		}
	}
	for p := range r.EachResourcePlacement() {
		if p.DeletionTimestamp == nil {
			out[api.PlacementKey{Namespace: p.Namespace, Name: p.Name}.String()] = &p.Status
		}
	}
	return out
}

// An Outline is what tables say of the clusters of a placement.
type Outline struct {
	// Selected, Missing and Applied are the numbers of clusters that are selected, that are wanted and were not found, and on which
	// all objects are applied.
	Selected, Missing, Applied int
	// Problem is the message of the first condition of a cluster that is not true; empty if all are.
	Problem string
}

// OutlineOf returns the outline of what a status says of clusters.
func OutlineOf(s *api.PlacementStatus) (out Outline) {
	for i := range s.PlacementStatuses {
		c := &s.PlacementStatuses[i]
		if c.ClusterName == "" {
			out.Missing++
		} else if out.Selected++; meta.IsStatusConditionTrue(c.Conditions, api.Applied) {
			out.Applied++
		}
		out.addProblem(c)
	}
	return out
}

func (o *Outline) addProblem(on *api.PerClusterPlacementStatus) {
	c := FirstUntrue(on.Conditions)
	if o.Problem != "" || c == nil || c.Message == "" {
		return
	}
	o.Problem = c.Message
	if on.ClusterName != "" {
		o.Problem = on.ClusterName + ": " + c.Message
	}
}

// Outline returns the outline of what the status says of clusters. The conditions are made for the first cluster with a problem only.
func (o *OnDemand) Outline() (out Outline) {
	e := (*placementEntry)(o)
	if e.of.Spec == nil {
		return out
	}
	b := e.reader()
	decisions := b.decisions()
	for i, d := range decisions {
		at := -1
		if d.Selected {
			at = e.of.Position(d.Cluster, i)
		}
		if at < 0 {
			continue
		}
		is := e.lines.At(at).statuses
		if out.Selected++; is.of(api.Applied) == isTrue {
			out.Applied++
		}
		if out.Problem == "" && is.anyUntrue() {
			s := b.cluster(at, d, metadata.SnapshotIndex(e.of.Record.Index))
			out.addProblem(&s)
		}
	}
	for _, d := range b.missingClusters(decisions) {
		out.Missing++
		out.addProblem(&api.PerClusterPlacementStatus{Conditions: b.missing(d)})
	}
	return out
}

// A Summary is what metrics say of a placement on one cluster.
type Summary struct {
	Cluster string
	Commit  string // of the assigned content
	State   State  // its AssignedState
	// Behind and BehindSince are those of a ClusterDetail. Deferred says that new content waits for the end of a freeze or the opening
	// of a window, and Overdue that it has waited for longer than the window allows.
	Behind            int
	BehindSince       time.Time
	Deferred, Overdue bool
	// FailedObjects and BlockedDeletions count objects, as in a ClusterDetail.
	FailedObjects, BlockedDeletions int
}

// Summaries yields a summary of each cluster of the placement with the i-th of the Details.
func (r *Report) Summaries(i int) iter.Seq[Summary] {
	return func(yield func(Summary) bool) {
		if r.onDemand() {
			p := r.entries.At(i).of
			for _, c := range p.Clusters {
				if detail, blocked := bareDetail(p, c); !yield(detail.summary(len(blocked))) {
					return
				}
			}
			return
		}
		for j := range r.Details[i].Clusters {
			if c := &r.Details[i].Clusters[j]; !yield(c.summary(len(c.BlockedDeletions))) {
				return
			}
		}
	}
}

// summary returns the summary of a cluster on which so many deletions are blocked.
func (c *ClusterDetail) summary(blocked int) Summary {
	return Summary{
		Cluster: c.Cluster, Commit: c.Commit, State: c.AssignedState(), Behind: c.Behind, BehindSince: c.BehindSince,
		Deferred: c.Deferral != nil, Overdue: c.Deferral != nil && c.Deferral.Overdue, FailedObjects: c.FailedObjects, BlockedDeletions: blocked,
	}
}

// Only returns the part of the report about one placement (crp/NAME or
// rp/NAMESPACE/NAME): itself, its clusters, drifts and events, and the suspensions that affect
// it. The error is an *UnknownError if it does not exist.
func (r *Report) Only(name string) (*Report, error) {
	i := slices.IndexFunc(r.Details, func(d *Detail) bool { return d.Placement == name })
	if i < 0 {
		return nil, unknown("placement", name, r.Details, func(d *Detail) string { return d.Placement })
	}
	r = r.filled("", func(e *placementEntry) bool { return e.detail.Placement == name })
	on := map[string]bool{}
	for _, c := range r.Details[i].Clusters {
		on[c.Cluster] = true
	}
	return &Report{
		At: r.At, Source: r.Source, Details: r.Details[i : i+1 : i+1],
		Clusters:           filter(r.Clusters, func(c **api.MemberCluster) bool { return on[(*c).Name] }),
		Placements:         filter(r.Placements, func(p **api.ClusterResourcePlacement) bool { return nameOf(*p) == name }),
		ResourcePlacements: filter(r.ResourcePlacements, func(p **api.ResourcePlacement) bool { return nameOf(*p) == name }),
		UpdateRuns: filter(r.UpdateRuns, func(u **api.ClusterStagedUpdateRun) bool {
			return api.PlacementKey{Namespace: (*u).Namespace, Name: (*u).Spec.PlacementName}.String() == name
		}),
		Drifts:    filter(r.Drifts, func(d *Drift) bool { return d.Placement == name }),
		Events:    filter(r.Events, func(e *Event) bool { return e.About() == name }),
		Evictions: filter(r.Evictions, func(e **api.ClusterResourcePlacementEviction) bool { return "crp/"+(*e).Spec.PlacementName == name }),
		Suspensions: filter(r.Suspensions, func(s *Suspension) bool {
			return (s.Placement == "" || s.Placement == name) && (s.Cluster == "" || on[s.Cluster])
		}),
	}, nil
}

// On returns the part of the report about one member cluster: itself, the placements
// that it holds (without their selections and other clusters), and drifts, events and
// suspensions. The error is an *UnknownError if it does not exist.
func (r *Report) On(cluster string) (*Report, error) {
	i := slices.IndexFunc(r.Clusters, func(c *api.MemberCluster) bool { return c.Name == cluster })
	if i < 0 {
		return nil, unknown("cluster", cluster, r.Clusters, func(c *api.MemberCluster) string { return c.Name })
	}
	r = r.filled(cluster, func(e *placementEntry) bool { return e.of.On(cluster) != nil })
	held := map[string]bool{}
	out := &Report{
		At: r.At, Source: r.Source, Clusters: r.Clusters[i : i+1 : i+1],
		Evictions: filter(r.Evictions, func(e **api.ClusterResourcePlacementEviction) bool { return (*e).Spec.ClusterName == cluster }),
		Drifts:    filter(r.Drifts, func(d *Drift) bool { return d.Cluster == cluster }),
		Events:    filter(r.Events, func(e *Event) bool { return e.Cluster == cluster || e.About() == "cluster/"+cluster }),
	}
	for _, d := range r.Details {
		if j := slices.IndexFunc(d.Clusters, func(c ClusterDetail) bool { return c.Cluster == cluster }); j >= 0 {
			held[d.Placement] = true
			of := *d
			of.Clusters = d.Clusters[j : j+1 : j+1]
			out.Details = append(out.Details, &of)
		}
	}
	for _, p := range r.Placements {
		if held[nameOf(p)] {
			of := *p
			of.Status = statusOn(cluster, of.Status)
			out.Placements = append(out.Placements, &of)
		}
	}
	for _, p := range r.ResourcePlacements {
		if held[nameOf(p)] {
			of := *p
			of.Status = statusOn(cluster, of.Status)
			out.ResourcePlacements = append(out.ResourcePlacements, &of)
		}
	}
	out.Suspensions = filter(r.Suspensions, func(s *Suspension) bool {
		return (s.Cluster == "" || s.Cluster == cluster) && (s.Placement == "" || held[s.Placement])
	})
	return out, nil
}

// nameOf is the name of a placement of either kind: crp/NAME or rp/NAMESPACE/NAME.
func nameOf(p metav1.Object) string {
	return api.PlacementKey{Namespace: p.GetNamespace(), Name: p.GetName()}.String()
}

// filter returns the items for which are is true, in order; nil if there are none.
func filter[T any](all []T, are func(*T) bool) (out []T) {
	for i := range all {
		if are(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// statusOn returns the part of a status about one cluster.
func statusOn(cluster string, s api.PlacementStatus) api.PlacementStatus {
	s.SelectedResources = nil
	s.PlacementStatuses = filter(s.PlacementStatuses, func(c *api.PerClusterPlacementStatus) bool { return c.ClusterName == cluster })
	return s
}
