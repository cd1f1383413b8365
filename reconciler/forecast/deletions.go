package forecast

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A Deletion is an object that a cluster would delete.
type Deletion struct {
	Cluster string `json:"cluster"`
	Object
	// Held is why it would not be deleted until a commit allows it; empty if it would.
	Held string `json:"held,omitempty"`
}

// A Recreation is an object that a cluster would delete and create anew, since an immutable field
// of it changes and it asks for that.
type Recreation struct {
	Cluster string `json:"cluster"`
	Object
	// Certain says that it would be recreated; only the cluster knows of others.
	Certain bool `json:"certain"`
	// Held is why it would not be recreated until a commit allows it; empty if it would.
	Held string `json:"held,omitempty"`
}

// A Brake says why so many deletions on a cluster are too many at once, of all objects that
// are there; empty if they are not.
type Brake interface{ TooMuch(going, total int) string }

// Compared returns the plan and its differences from the earlier one, if there is one.
func (o *Forecast) Compared(brake Brake) (Document, Changes) {
	d := o.described()
	changes := compare(o.before, d)
	if !changes.Compared {
		return d, changes
	}
	if o.running != nil {
		changes.Placements = o.running.withSettings(changes.Placements, o.Snapshot, o.Renames)
	}
	d.Deletions, d.Recreations = []Deletion{}, o.recreations(&d)
	counted := map[string][]*string{} // why what the brake counts is held, by cluster
	for i := range d.Recreations {
		if r := &d.Recreations[i]; r.Certain && !o.losing(r.Placement, r.Cluster).AllowDelete {
			counted[r.Cluster] = append(counted[r.Cluster], &r.Held)
		}
	}
	for i := range changes.Clusters {
		if c := &changes.Clusters[i]; !c.Gone { // a cluster that leaves the fleet keeps its objects
			c.Deleted = o.deletions(c, counted)
		}
	}
	for _, c := range o.before.Clusters {
		why := brake.TooMuch(len(counted[c.Name]), len(c.Objects))
		for _, held := range counted[c.Name] {
			*held = why
		}
	}
	for _, c := range changes.Clusters {
		d.Deletions = append(d.Deletions, c.Deleted...)
	}
	return d, changes
}

// recreations returns the objects that are or may be recreated, by cluster, placement and ID;
// nil if the contents of the earlier plan are not known.
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

// described is the document, which is made once for a running fleet.
func (o *Forecast) described() Document {
	if o.document != nil {
		return *o.document
	}
	return o.Describe()
}

// deletions lists the objects that a cluster would delete, in the order of c.Lost, and why
// their placements hold them, if they do. It adds the others to counted, unless a commit allows
// them. Objects of others are not known here.
func (o *Forecast) deletions(c *ClusterChange, counted map[string][]*string) []Deletion {
	out := make([]Deletion, 0, len(c.Lost))
	going := map[string][]api.ID{} // objects whose deletion deletes others, by placement
	for _, lost := range c.Lost {
		out = append(out, Deletion{Cluster: c.Cluster, Object: lost})
		if id := lost.ID(); work.Contains(id.GroupKind()) {
			going[lost.Placement] = append(going[lost.Placement], id)
		}
	}
	for i := range out {
		w := o.losing(out[i].Placement, c.Cluster)
		if out[i].Held = w.Held(out[i].ID(), going[out[i].Placement]); out[i].Held == "" && !w.AllowDelete {
			counted[c.Cluster] = append(counted[c.Cluster], &out[i].Held)
		}
	}
	return out
}

// losing returns the work of a placement on a cluster where it loses objects. What a
// renamed placement loses goes under its earlier key.
func (o *Forecast) losing(name, cluster string) work.Work {
	key, err := api.ParsePlacement(name)
	for _, r := range o.Renames {
		if w := o.work(r.From, cluster); r.To == key && w != nil {
			return *w
		}
	}
	w := work.Work{Placement: key, Remove: true, AllowDelete: err == nil && plan.Allows(o.Snapshot.Commit.Message, key)}
	at := slices.IndexFunc(o.Plan.Placements, func(p *plan.Placement) bool { return p.Key == key })
	if at < 0 {
		return w
	}
	p := o.Plan.Placements[at]
	if c := p.On(cluster); c == nil || c.Binding.Unscheduled || c.Binding.Removing {
		if !w.AllowDelete {
			w.Holds = p.RemovalHolds(cluster)
		}
		return w
	}
	if planned := o.work(key, cluster); planned != nil {
		return *planned
	}
	return w
}

// work returns what a cluster shall hold for a placement; nil if nothing is planned.
func (o *Forecast) work(key api.PlacementKey, cluster string) *work.Work {
	works := o.Plan.Works[cluster]
	i := slices.IndexFunc(works, func(w work.Work) bool { return w.Placement == key })
	if i < 0 {
		return nil
	}
	return &works[i]
}

// Refusal says why the daemon would refuse the commit because no placement or no
// cluster of the earlier plan is left; empty if it would not.
func (o *Forecast) Refusal() string {
	if o.before == nil {
		return ""
	}
	l := ledger.New()
	for _, p := range o.before.Placements {
		l.SetPlacement(api.PlacementKey{Namespace: p.Namespace, Name: p.Name}, ledger.Placement{})
	}
	for _, c := range o.before.Clusters {
		l.Fold(ledger.ClusterSeen{Cluster: c.Name, Healthy: true})
	}
	return plan.RemovesEverything(o.Snapshot, l)
}
