package forecast

import (
	"fmt"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// Validate returns an error if a document that was read is invalid.
func (d *Document) Validate() error {
	if d.APIVersion != Version {
		return fmt.Errorf("apiVersion: %q is not %s", d.APIVersion, Version)
	}
	seen := map[string]bool{}
	for i, p := range d.Placements {
		at := fmt.Sprintf("placements[%d]", i)
		switch {
		case p.Name == "":
			return fmt.Errorf("%s.name: missing", at)
		case seen[p.Key()]:
			return fmt.Errorf("%s.name: %s occurs twice", at, p.Key())
		}
		seen[p.Key()] = true
		clusters := map[string]bool{}
		for j, dec := range p.Decisions {
			field := fmt.Sprintf("%s.decisions[%d].cluster", at, j)
			switch {
			case dec.Cluster == "":
				return fmt.Errorf("%s: missing", field)
			case clusters[dec.Cluster]:
				return fmt.Errorf("%s: %s occurs twice", field, dec.Cluster)
			}
			clusters[dec.Cluster] = true
		}
	}
	return nil
}

// bind records in a ledger that the placements are bound to their clusters of an earlier plan, except to clusters that
// are leaving the fleet. That includes placements that are gone.
func (d *Document) bind(l *ledger.Ledger, s *hub.Snapshot, leaving map[string]bool, now time.Time) {
	specs := map[api.PlacementKey]*hub.Placement{}
	for _, p := range s.Placements {
		specs[p.Key] = p
	}
	for _, p := range d.Placements {
		if p.Unclear != "" && len(p.Selected()) == 0 {
			continue // still new: nothing was decided about it
		}
		key := p.key()
		record := ledger.Placement{Generation: 1, Created: now, Abandon: p.Abandons}
		if spec := specs[key]; spec != nil {
			record.SpecHash = spec.SpecHash
		}
		l.SetPlacement(key, record)
		for i, dec := range p.Decisions {
			if dec.Selected && !leaving[dec.Cluster] {
				l.Bind(key, p.binding(i, d.Commit, now))
			}
		}
	}
}

// settle records in the ledger which placements were renamed. It also records that clusters have the present content,
// since the JSON has only the names of objects; objects that another placement has on a cluster are excepted.
func (d *Document) settle(l *ledger.Ledger, p *plan.Plan) {
	for _, r := range p.Renames {
		l.Rename(r)
	}
	owners := d.owners()
	for pl := range p.Placements.Values() {
		record := l.Placement(pl.Key)
		switch {
		case record == nil:
			continue // a new placement has no clusters
		case pl.Spec == nil:
			forgetContent(l, pl.Key)
			continue
		case record.SpecHash == "": // a renamed placement, which is no change
			renamed := *record
			renamed.SpecHash = pl.Spec.SpecHash
			l.SetPlacement(pl.Key, renamed)
		}
		for _, c := range pl.Clusters {
			if c.Entry == nil || c.Binding.Unscheduled || c.Err != nil || c.Latest().Hash == "" {
				continue
			}
			b := c.Entry.Binding
			b.Assigned = c.Latest()
			l.Bind(pl.Key, b)
			var claims ledger.Deviation
			for _, m := range c.Content.Manifests {
				if owner, owned := owners[objectOn{b.Cluster, m.ID}]; owned && owner != pl.Key {
					claims.Yields = append(claims.Yields, ledger.Yield{ID: m.ID, To: owner})
				}
			}
			slices.SortFunc(claims.Yields, func(a, b ledger.Yield) int { return a.ID.Compare(b.ID) })
			l.SetDeviation(pl.Key, b.Cluster, claims, b.AssignedAt)
		}
	}
}

// forgetContent records in the ledger that the content of a placement that is gone is not known on its clusters, so
// that nothing is kept there under its new key.
func forgetContent(l *ledger.Ledger, key api.PlacementKey) {
	for _, b := range l.Placement(key).Bindings() {
		b.Assigned = placement.Revision{}
		l.Bind(key, b)
	}
}

// owned returns the objects that each placement selected and has on at least one cluster.
func (d *Document) owned() map[api.PlacementKey][]api.ID {
	out := map[api.PlacementKey][]api.ID{}
	for _, p := range d.Placements {
		key := p.key()
		out[key] = []api.ID{}
		for _, r := range p.SelectedResources {
			out[key] = append(out[key], api.ID{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
		}
	}
	for o, key := range d.owners() {
		out[key] = append(out[key], o.id)
	}
	return out
}

// renamed returns the document with renamed placements under their new keys. They replace placements for which a rename
// was uncertain before.
func (d *Document) renamed(renames []ledger.Rename) *Document {
	if len(renames) == 0 {
		return d
	}
	to, taken := map[string]api.PlacementKey{}, map[string]bool{}
	for _, r := range renames {
		to[r.From.String()], taken[r.To.String()] = r.To, true
	}
	out := *d
	out.Placements = slices.DeleteFunc(slices.Clone(d.Placements), func(p Placement) bool { return taken[p.Key()] })
	out.Clusters = slices.Clone(d.Clusters)
	for i := range out.Placements {
		p := &out.Placements[i]
		if key, ok := to[p.Key()]; ok {
			p.Namespace, p.Name = key.Namespace, key.Name
		}
	}
	for i := range out.Clusters {
		c := &out.Clusters[i]
		c.Objects = slices.Clone(c.Objects)
		for j := range c.Objects {
			if key, ok := to[c.Objects[j].Placement]; ok {
				c.Objects[j].Placement = key.String()
			}
		}
	}
	return &out
}

// An objectOn identifies an object on a cluster.
type objectOn struct {
	cluster string
	id      api.ID
}

// owners returns the placement of each object on each cluster.
func (d *Document) owners() map[objectOn]api.PlacementKey {
	keys := map[string]api.PlacementKey{}
	for _, p := range d.Placements {
		keys[p.Key()] = p.key()
	}
	out := map[objectOn]api.PlacementKey{}
	for _, c := range d.Clusters {
		for _, o := range c.Objects {
			if key, known := keys[o.Placement]; known {
				out[objectOn{c.Name, o.ID()}] = key
			}
		}
	}
	return out
}

// earlierHash stands for the hash of the content of an earlier plan until settle is called.
const earlierHash = "earlier"

func (p Placement) binding(i int, commit string, now time.Time) placement.Binding {
	d := p.Decisions[i]
	b := placement.Binding{
		Cluster: d.Cluster, Policy: p.PolicyHash, Order: i + 1,
		Assigned: placement.Revision{Commit: commit, Hash: earlierHash}, AssignedAt: now,
	}
	if d.AffinityScore != nil && d.TopologySpreadScore != nil {
		b.Score = &placement.Score{Affinity: *d.AffinityScore, Spread: *d.TopologySpreadScore}
	}
	return b // without a reason, since some are true only at one time: the scheduler says that of its score
}

// objects returns the objects of a placement on a cluster in the document; none if the document is nil.
func (d *Document) objects(key api.PlacementKey, cluster string) []Object {
	var out []Object
	if d == nil {
		return nil
	}
	for _, c := range d.Clusters {
		if c.Name != cluster {
			continue
		}
		for _, o := range c.Objects {
			if o.Placement == key.String() {
				out = append(out, o)
			}
		}
	}
	return out
}
