package forecast

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// Describe returns the plan as a document.
func (o *Forecast) Describe() Document { return o.describe(nil) }

// unclearGone returns the placements that are no longer in the commit, but may have been renamed. They keep their
// objects.
func unclearGone(p *plan.Plan) []*plan.Placement {
	return slices.DeleteFunc(slices.Collect(p.Placements.Values()), func(p *plan.Placement) bool { return p.Spec != nil || p.Unclear == "" })
}

// describe returns the plan as a document, without some placements.
func (o *Forecast) describe(without map[*plan.Placement]bool) Document {
	d := newDocument(o.Snapshot.Commit.Hash, append(slices.Clip(o.Warnings), o.Plan.Warnings...))
	statuses := o.statuses()
	objects := map[string][]Object{}
	gone := unclearGone(o.Plan)
	for p := range o.Plan.Placements.Values() {
		switch {
		case without[p]:
			continue
		case p.Spec != nil:
			d.Placements = append(d.Placements, o.placement(p, statuses[p.Key]))
		case p.Unclear != "":
			d.Placements = append(d.Placements, o.possiblyRenamed(p))
		default:
			continue // the placement is removed in the end
		}
		var last *plan.OnCluster
		var shared []Object
		for _, c := range p.Clusters {
			name := c.Binding.Cluster
			if last == nil || len(gone) > 0 || !sharesContent(p, last, c) {
				last, shared = c, o.contents(p, c, gone)
			}
			objects[name] = append(objects[name], shared...)
		}
	}
	for _, c := range o.Plan.Members {
		d.Clusters = append(d.Clusters, Cluster{Name: c.Name, Objects: append([]Object{}, objects[c.Name]...)})
	}
	return d
}

func (o *Forecast) placement(p *plan.Placement, s api.PlacementStatus) Placement {
	out := Placement{
		Kind: p.Key.Kind(), Namespace: p.Key.Namespace, Name: p.Key.Name,
		PolicyHash: placement.PolicyHash(p.Spec.Spec.Policy),
		Unclear:    p.Unclear, Abandons: p.Record.Abandon, Conditions: []metav1.Condition{}, SelectedResources: []Resource{},
		Problems: describeProblems(append(slices.Clone(p.Warnings), Faults(o.Snapshot, p)...)),
	}
	if from := o.earlierKey(p.Key); from != p.Key {
		out.RenamedFrom = from.String()
	}
	// A plan knows only the first condition, since the others depend on the clusters. The condition has no time, since
	// nothing has happened yet.
	if len(s.Conditions) > 0 {
		scheduled := s.Conditions[0]
		scheduled.LastTransitionTime = metav1.Time{}
		out.Conditions = append(out.Conditions, scheduled)
	}
	for _, o := range p.Selection.Objects { // with an external rollout the status has what clusters hold
		out.SelectedResources = append(out.SelectedResources, resourceOf(o.Identifier()))
	}
	out.Decisions = o.describeDecisions(p)
	out.Calendar = calendar(o.Snapshot, p)
	return out
}

// calendar says in which stages and in which windows the clusters of a placement get new content. It does not depend on the time.
func calendar(s *hub.Snapshot, p *plan.Placement) []string {
	var r Rollout
	if run := p.Rollout.Run; run != nil && run.Active() {
		r.Stages = run.Stages
	}
	out := r.Calendar()
	for _, w := range s.Windows {
		var on []string
		for _, c := range s.Clusters {
			if held := p.On(c.Name); held != nil && !held.Binding.Unscheduled && w.Compiled.IsOn(c.Labels) {
				on = append(on, c.Name)
			}
		}
		if len(on) == 0 || !w.Compiled.IsFor(p.Spec.Labels) {
			continue
		}
		add := func(what string, periods []api.WindowPeriod) {
			for _, t := range periods {
				out = append(out, fmt.Sprintf("window %s: %s %s from %s (%s) for %s", w.Name, FewOf(on), what, t.Schedule, cmp.Or(t.TimeZone, "UTC"), t.Duration))
			}
		}
		add("may get new content", w.Spec.Allow)
		add("may not get new content", w.Spec.Exclude)
	}
	return out
}

// possiblyRenamed describes a placement that is gone but keeps its objects, because it is not certain whether it was renamed. The
// description is that of the earlier plan.
func (o *Forecast) possiblyRenamed(p *plan.Placement) Placement {
	out := Placement{Kind: p.Key.Kind(), Namespace: p.Key.Namespace, Name: p.Key.Name, Abandons: p.Record.Abandon}
	if o.before != nil {
		i := slices.IndexFunc(o.before.Placements, func(old Placement) bool { return old.Key() == p.Key.String() })
		out = o.before.Placements[i]
	}
	out.RenamedFrom, out.Unclear = "", p.Unclear
	out.Conditions, out.Problems = []metav1.Condition{}, []Problem{}
	if out.SelectedResources == nil {
		out.SelectedResources = []Resource{}
	}
	out.Decisions = o.describeDecisions(p)
	return out
}

// earlierKey returns the key of a placement in the earlier plan.
func (o *Forecast) earlierKey(key api.PlacementKey) api.PlacementKey {
	for _, r := range o.Renames {
		if r.To == key {
			return r.From
		}
	}
	return key
}

// laterKey returns the key in the plan of a placement of the earlier plan.
func (o *Forecast) laterKey(key api.PlacementKey) api.PlacementKey {
	for _, r := range o.Renames {
		if r.From == key {
			return r.To
		}
	}
	return key
}

func (o *Forecast) describeDecisions(p *plan.Placement) []Decision {
	out := []Decision{}
	for _, dec := range o.decisions(p) {
		row := Decision{Cluster: dec.Cluster, Selected: dec.Selected, Reason: dec.Reason, Picked: dec.Picked, Note: dec.Note}
		if dec.Score != nil {
			row.AffinityScore, row.TopologySpreadScore = &dec.Score.Affinity, &dec.Score.Spread
		}
		out = append(out, row)
	}
	return out
}

func resourceOf(r api.ResourceIdentifier) Resource {
	return Resource{Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Envelope: r.Envelope}
}

// decisions returns the decisions of the scheduler. If the placement was not scheduled, because its selectors are
// invalid or it is not certain whether it was renamed, the present clusters stay and no others are selected.
func (o *Forecast) decisions(p *plan.Placement) []placement.Decision {
	if p.Request != nil {
		return p.Schedule.Decisions
	}
	why := "nothing is selected or unscheduled while the selectors are invalid"
	if p.Unclear != "" {
		why = "nothing is selected or unscheduled while it is unclear which placement was renamed"
	}
	held := map[string]bool{}
	var out []placement.Decision
	for _, c := range p.Clusters {
		name := c.Binding.Cluster
		held[name] = true
		out = append(out, placement.Decision{
			Cluster: name, Selected: true, Score: c.Binding.Score,
			Reason: `Cluster "` + name + `" keeps what it has: ` + why,
		})
	}
	for _, c := range o.Plan.Members {
		if !held[c.Name] {
			out = append(out, placement.Decision{Cluster: c.Name, Reason: `Cluster "` + c.Name + `" is not selected: ` + why})
		}
	}
	return out
}

// rendered reports whether the commit has valid content of a placement for a cluster. Otherwise the cluster keeps its
// present objects.
func rendered(p *plan.Placement, c *plan.OnCluster) bool { return p.Request != nil && c.Err == nil }

// sharesContent reports whether two clusters have the same objects of a placement, because they share one content.
func sharesContent(p *plan.Placement, a, b *plan.OnCluster) bool {
	return rendered(p, a) && rendered(p, b) && len(a.Unusual().Yielded)+len(b.Unusual().Yielded) == 0 && sharesManifests(a, b)
}

// contents returns the objects of a placement that a cluster has in the end. Without content for the cluster, these are
// its present ones. Objects that belong to another placement there are left out.
func (o *Forecast) contents(p *plan.Placement, c *plan.OnCluster, gone []*plan.Placement) []Object {
	content := c.Content
	if !rendered(p, c) {
		if o.before != nil || c.PreviousContent == nil {
			return o.before.objects(p.Key, c.Binding.Cluster)
		}
		content = c.PreviousContent
	}
	var out []Object
	for _, m := range content.Manifests {
		if keeps(c, m.ID) || o.keptByGone(gone, p.Key, c.Binding.Cluster, m.ID) {
			continue
		}
		out = append(out, Object{
			Group: m.ID.Group, Version: m.Object.Content.GroupVersionKind().Version, Kind: m.ID.Kind,
			Namespace: m.ID.Namespace, Name: m.ID.Name, Placement: p.Key.String(),
			Kept: m.Object.Content.GetAnnotations()[api.PruneAnnotation] == api.PruneDisabled,
		})
	}
	return out
}

// keeps reports whether an object belongs to another placement permanently, and not only until the rollout reaches the
// cluster.
func keeps(c *plan.OnCluster, id api.ID) bool {
	return slices.ContainsFunc(c.Unusual().Yielded, func(y plan.Yielded) bool { return y.ID == id && !y.Passing })
}

// keptByGone reports whether an object belongs to another placement that is gone but keeps its objects.
func (o *Forecast) keptByGone(gone []*plan.Placement, key api.PlacementKey, cluster string, id api.ID) bool {
	return slices.ContainsFunc(gone, func(p *plan.Placement) bool {
		return p.Key != key && slices.ContainsFunc(o.before.objects(p.Key, cluster), func(held Object) bool { return held.ID() == id })
	})
}

func (o *Forecast) statuses() map[api.PlacementKey]api.PlacementStatus {
	all := map[api.PlacementKey]api.PlacementStatus{}
	if o.Report == nil {
		return all
	}
	for _, c := range o.Report.Placements {
		all[api.PlacementKey{Name: c.Name}] = c.Status
	}
	for _, r := range o.Report.ResourcePlacements {
		all[api.PlacementKey{Namespace: r.Namespace, Name: r.Name}] = r.Status
	}
	return all
}
