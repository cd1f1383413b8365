package forecast

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// CountObjects counts objects, each once however many clusters have it.
func CountObjects[T interface{ ID() api.ID }](all []T) int {
	known := map[api.ID]bool{}
	for _, o := range all {
		known[o.ID()] = true
	}
	return len(known)
}

// A DeletionLimit limits the deletions on a cluster. TooMuch returns why so many of a total of objects may not be deleted at once;
// empty if they may.
type DeletionLimit interface {
	TooMuch(deleted, total int) string
}

// Compared returns the plan and its differences from the earlier plan, if there is one. The plan of a running fleet may
// leave out placements that do not differ.
func (o *Forecast) Compared(limit DeletionLimit) (Document, Changes) {
	if o.document == nil {
		described := o.describe(o.unchanged)
		o.document = &described
	}
	d := *o.document
	changes := compare(o.compared, d)
	if !changes.Compared {
		return d, changes
	}
	if changes.ContentsKnown = o.earlier != nil; changes.ContentsKnown {
		changes.Placements, changes.Contents = o.withSettings(changes.Placements), o.ContentChanges()
	}
	d.Problems = append(slices.Clip(d.Problems), describeProblems(o.Unknown)...)
	d.Deletions, d.Recreations = []Deletion{}, o.recreations(&d)
	counted := map[string][]*string{} // by cluster, the Blocked fields of everything that counts for the limit
	for i := range d.Recreations {
		if r := &d.Recreations[i]; r.Certain && !o.losing(r.Placement, r.Cluster).AllowDelete {
			counted[r.Cluster] = append(counted[r.Cluster], &r.Blocked)
		}
	}
	for i := range changes.Clusters {
		if c := &changes.Clusters[i]; !c.Gone { // objects on a cluster that leaves the fleet are not deleted
			c.Deleted = o.deletions(c, counted)
		}
	}
	for _, c := range o.before.Clusters { // the limit is a share of all objects, not only the compared ones
		why := limit.TooMuch(len(counted[c.Name]), len(c.Objects))
		for _, blocked := range counted[c.Name] {
			*blocked = why
		}
	}
	for _, c := range changes.Clusters {
		d.Deletions = append(d.Deletions, c.Deleted...)
	}
	if o.running == nil {
		d.Changes = changes.describe()
	}
	return d, changes
}

// unknown returns a warning for each placement whose objects on some clusters are unknown, because the commit of the
// earlier plan has no valid content for them. Clusters for which the new commit has none either are left out.
func (o *Forecast) unknown() problem.List {
	if o.earlier == nil {
		return nil
	}
	var out problem.List
	placements := slices.Collect(o.earlier.Placements.Values())
	if o.running != nil {
		placements = o.running.unrenderedPlacements()
	}
	for _, old := range placements {
		if old.Spec == nil {
			continue
		}
		key := o.laterKey(old.Key)
		now := o.Plan.Placement(key)
		stays := now != nil && now.Spec != nil
		var on []string
		why := old.Selection.Invalid
		for _, c := range old.Clusters {
			name := c.Binding.Cluster
			if rendered(old, c) || len(o.before.objects(key, name)) > 0 {
				continue
			}
			if next := now.On(name); stays && next != nil && !rendered(now, next) {
				continue
			}
			if on = append(on, name); c.Err != nil && why == "" {
				why = c.Err.Error()
			}
		}
		// Without a daemon the clusters of a placement with invalid selectors are unknown as well.
		if o.running == nil && old.Selection.Invalid != "" && (!stays || now.Request != nil) {
			on = []string{"its clusters"}
		}
		if len(on) > 0 {
			out = append(out, problem.Problem{Origin: old.Spec.Origin, Severity: problem.Warning, Message: fmt.Sprintf(
				"the objects of %s on %s are unknown, because the earlier commit has no valid content for it: %s. The plan lacks deletions there, and may show existing objects as new",
				old.Key, FewOf(on), why)})
		}
	}
	return out
}

// recreations returns the objects that are or may be recreated, sorted by cluster, placement and ID; nil if the
// contents of the earlier plan are not known.
func (o *Forecast) recreations(d *Document) []Recreation {
	if o.earlier == nil {
		return nil
	}
	out := []Recreation{}
	for _, c := range o.ContentChanges() {
		if c.Recreation == diff.NotRecreated {
			continue
		}
		for _, cluster := range c.Clusters {
			all := d.objects(c.Placement, cluster)
			if i := slices.IndexFunc(all, func(has Object) bool { return has.ID() == c.After.ID }); i >= 0 {
				out = append(out, Recreation{Cluster: cluster, Object: all[i], Certain: c.Recreation == diff.Recreated})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Recreation) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

// deletions lists the objects that would be deleted from a cluster, in the order of c.Lost, with the reason if their
// placement blocks the deletion. It adds the others to counted, unless a commit allows their deletion. Objects that
// gitfleet does not own are not known here.
func (o *Forecast) deletions(c *ClusterChange, counted map[string][]*string) []Deletion {
	out := make([]Deletion, 0, len(c.Lost))
	containers := map[string][]api.ID{} // deleted objects whose deletion deletes others with them, by placement
	for _, lost := range c.Lost {
		out = append(out, Deletion{Cluster: c.Cluster, Object: lost})
		if id := lost.ID(); work.Contains(id.GroupKind()) {
			containers[lost.Placement] = append(containers[lost.Placement], id)
		}
	}
	for i := range out {
		w := o.losing(out[i].Placement, c.Cluster)
		if out[i].Blocked = w.DeletionBlocked(out[i].ID(), containers[out[i].Placement]); out[i].Blocked == "" && !w.AllowDelete {
			counted[c.Cluster] = append(counted[c.Cluster], &out[i].Blocked)
		}
	}
	return out
}

// losing returns the work of a placement on a cluster on which it loses objects. For a renamed placement it is that of
// the earlier key.
func (o *Forecast) losing(name, cluster string) *work.Work {
	key, err := api.ParsePlacement(name)
	if from := o.earlierKey(key); from != key {
		if w := o.work(from, cluster); w != nil {
			return w
		}
	}
	w := &work.Work{Placement: key, Remove: true, AllowDelete: err == nil && plan.Allows(o.Snapshot.Commit.Message, key)}
	p := o.Plan.Placement(key)
	if p == nil {
		return w
	}
	if c := p.On(cluster); c == nil || c.Binding.Unscheduled || c.Binding.Removing {
		if !w.AllowDelete {
			w.DeletionBlocks = p.RemovalBlocks(cluster)
		}
		return w
	}
	if planned := o.work(key, cluster); planned != nil {
		return planned
	}
	return w
}

// work returns the planned work of a placement on a cluster; nil if there is none.
func (o *Forecast) work(key api.PlacementKey, cluster string) *work.Work {
	works := o.Plan.Works[cluster]
	i := slices.IndexFunc(works, func(w *work.Work) bool { return w.Placement == key })
	if i < 0 {
		return nil
	}
	return works[i]
}

// Refusal returns why the daemon would refuse the commit: no placement or no cluster of the earlier plan would be left,
// a kustomization would not be built any more, or something deployed would be no part of the hub any more. It is empty if
// the daemon would accept it.
func (o *Forecast) Refusal() string {
	if o.before == nil {
		return ""
	}
	l := ledger.New()
	for _, p := range o.before.Placements {
		l.SetPlacement(p.key(), ledger.Placement{})
	}
	for _, c := range o.before.Clusters {
		l.Fold(protocol.ClusterSeen{Cluster: c.Name, Healthy: true})
	}
	return cmp.Or(plan.RemovesEverything(o.Snapshot, l), plan.StopsBuilding(o.Snapshot, o.inForce), plan.Drops(o.Snapshot, o.inForce))
}

// unrenderedPlacements returns the placements whose content could not be rendered for some of their clusters.
func (r *Running) unrenderedPlacements() []*plan.Placement {
	if r.unrendered == nil {
		found := slices.DeleteFunc(slices.Collect(r.plan.Placements.Values()), func(p *plan.Placement) bool {
			return !slices.ContainsFunc(p.Clusters, func(c *plan.OnCluster) bool { return !rendered(p, c) })
		})
		r.unrendered = &found
	}
	return *r.unrendered
}

// withSettings adds to the changes of placements the changes of their specs.
func (o *Forecast) withSettings(changes []PlacementChange) []PlacementChange {
	for _, p := range o.Snapshot.Placements {
		old := o.earlier.Placement(o.earlierKey(p.Key))
		if old == nil || old.Spec == nil || reflect.DeepEqual(old.Spec.Spec, p.Spec) {
			continue
		}
		key, before := p.Key.String(), &old.Spec.Spec
		from, to, settings := before.Policy.Summary(), p.Spec.Policy.Summary(), settingChanges(before, &p.Spec)
		if from == to && len(settings) == 0 {
			continue
		}
		i := slices.IndexFunc(changes, func(c PlacementChange) bool { return c.Placement == key })
		if i < 0 {
			i = len(changes)
			changes = append(changes, PlacementChange{Placement: key})
		}
		if changes[i].Settings = settings; from != to {
			changes[i].PolicyFrom, changes[i].PolicyTo = from, to
		}
	}
	slices.SortStableFunc(changes, func(a, b PlacementChange) int { return strings.Compare(a.Placement, b.Placement) })
	return changes
}
