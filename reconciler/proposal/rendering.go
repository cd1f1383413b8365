package proposal

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A rendering has the objects that clusters get at a snapshot.
type rendering struct {
	snapshot  *hub.Snapshot
	clusters  map[string]placement.Cluster
	index     *placement.Index
	renderers map[api.PlacementKey]*work.Renderer
}

func render(s *hub.Snapshot) *rendering {
	r := &rendering{snapshot: s, clusters: map[string]placement.Cluster{}, index: placement.NewIndex(s.Objects), renderers: map[api.PlacementKey]*work.Renderer{}}
	for _, c := range s.Clusters {
		r.clusters[c.Name] = plan.Cluster(c, nil)
	}
	return r
}

// objects returns the objects that a cluster gets of a placement.
func (r *rendering) objects(at status.Holder) ([]*work.Manifest, error) {
	renderer := r.renderers[at.Placement]
	if renderer == nil {
		i := slices.IndexFunc(r.snapshot.Placements, func(p *hub.Placement) bool { return p.Key == at.Placement })
		if i < 0 {
			return nil, fmt.Errorf("the commit has no placement %s", at.Placement)
		}
		scope := plan.Scope(r.snapshot)
		selected := placement.Select(placement.Terms{Key: at.Placement, Spec: &r.snapshot.Placements[i].Spec, Scope: scope}, r.index)
		var cros []*api.ClusterResourceOverride
		for _, o := range r.snapshot.ClusterOverrides {
			cros = append(cros, o.ClusterResourceOverride)
		}
		var ros []*api.ResourceOverride
		for _, o := range r.snapshot.Overrides {
			ros = append(ros, o.ResourceOverride)
		}
		renderer = work.NewRenderer(at.Placement, selected.Objects, cros, ros, scope)
		r.renderers[at.Placement] = renderer
	}
	rendered, err := renderer.For(r.clusters[at.Cluster])
	return rendered.Manifests, err
}

// object returns one object that a cluster gets of a placement.
func (r *rendering) object(at status.Holder, id api.ID) (*work.Manifest, error) {
	all, err := r.objects(at)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.ID == id {
			return m, nil
		}
	}
	return nil, fmt.Errorf("the commit does not give %s to %s any more", id, at.Cluster)
}

// source returns the object of the repository that contains a manifest: the object itself, or
// its envelope.
func (r *rendering) source(m *work.Manifest) *api.Object {
	id := m.ID
	if e := m.Envelope; e != nil {
		id = api.ID{Kind: "ConfigMap", Namespace: e.Namespace, Name: e.Name}
		if e.Type != api.ConfigMapEnvelopeType {
			id.Group, id.Kind = api.PlacementGroup, string(e.Type)
		}
	}
	i, found := slices.BinarySearchFunc(r.snapshot.Objects, id, func(o *api.Object, id api.ID) int { return o.ID.Compare(id) })
	if !found {
		return nil
	}
	return r.snapshot.Objects[i]
}

// hashes returns the hashes of all objects of a cluster except one.
func hashes(all []*work.Manifest, but api.ID) map[api.ID]string {
	out := map[api.ID]string{}
	for _, m := range all {
		if m.ID != but {
			out[m.ID] = m.Hash
		}
	}
	return out
}

// checkOthersUnchanged returns an error that names the objects that differ between two snapshots, except for
// the given ones.
func checkOthersUnchanged(a, b *hub.Snapshot, except map[api.ID]bool) error {
	of := func(s *hub.Snapshot) map[api.ID]string {
		out := map[api.ID]string{}
		for _, o := range s.Objects {
			if !except[o.ID] {
				out[o.ID] = o.Hash
			}
		}
		return out
	}
	before, after := of(a), of(b)
	if maps.Equal(before, after) {
		return nil
	}
	for _, id := range slices.SortedFunc(maps.Keys(after), api.ID.Compare) {
		if before[id] != after[id] {
			return fmt.Errorf("the edit would change %s as well", id)
		}
	}
	return errors.New("the edit would remove other objects as well")
}
