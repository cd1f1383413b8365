package forecast

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
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
	d.Deletions = []Deletion{}
	for i := range changes.Clusters {
		if c := &changes.Clusters[i]; !c.Gone { // a cluster that leaves the fleet keeps its objects
			c.Deleted = o.deletions(c, brake)
			d.Deletions = append(d.Deletions, c.Deleted...)
		}
	}
	return d, changes
}

// described is the document, which is made once for a running fleet.
func (o *Forecast) described() Document {
	if o.document != nil {
		return *o.document
	}
	return o.Describe()
}

// deletions lists the objects that a cluster would delete, in the order of c.Lost, and
// why the daemon would hold them, if it would. Objects of others are not known here.
func (o *Forecast) deletions(c *ClusterChange, brake Brake) []Deletion {
	out := make([]Deletion, 0, len(c.Lost))
	going := map[string][]api.ID{} // objects whose deletion deletes others, by placement
	for _, lost := range c.Lost {
		out = append(out, Deletion{Cluster: c.Cluster, Object: lost})
		if id := lost.ID(); work.Contains(id.GroupKind()) {
			going[lost.Placement] = append(going[lost.Placement], id)
		}
	}
	var counted []*Deletion
	for i := range out {
		w := o.losing(out[i].Placement, c.Cluster)
		if out[i].Held = w.Held(out[i].ID(), going[out[i].Placement]); out[i].Held == "" && !w.AllowDelete {
			counted = append(counted, &out[i])
		}
	}
	at := slices.IndexFunc(o.before.Clusters, func(b Cluster) bool { return b.Name == c.Cluster })
	if at < 0 {
		return out
	}
	why := brake.TooMuch(len(counted), len(o.before.Clusters[at].Objects))
	for _, d := range counted {
		d.Held = why
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
