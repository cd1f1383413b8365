package edit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
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
		r.clusters[c.Name] = fleet.Cluster(c, nil)
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
		renderer = work.NewRenderer(at.Placement, selected.Objects, cros, ros, scope).WithVariables(r.snapshot.Variables, plan.Substitutes(r.snapshot.Placements[i]))
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

// holder returns the object of the snapshot that contains a manifest: the object itself, or its envelope.
func (r *rendering) holder(m *work.Manifest) *api.Object {
	id := m.ID
	if e := m.Envelope; e != nil {
		id = e.ID()
	}
	return r.snapshot.Object(id)
}

// source returns the object of the repository that contains a manifest: the object itself, also if an overlay builds it,
// or its envelope.
func (r *rendering) source(m *work.Manifest) *api.Object {
	holder := r.holder(m)
	if holder == nil || holder.Overlay == nil {
		return holder
	}
	return builtBy(holder, position{m.ID, m.Origin.Kustomization})
}

// A position is an object of a snapshot, or one that an overlay builds.
type position struct {
	id api.ID
	// kustomization is empty for an object of the snapshot.
	kustomization string
}

// builtBy returns an object that an overlay builds; nil if it builds none.
func builtBy(overlay *api.Object, at position) *api.Object {
	for _, b := range overlay.Overlay.Builds {
		if b.File != at.kustomization {
			continue
		}
		for _, o := range b.Objects {
			if o.ID == at.id {
				return o
			}
		}
	}
	return nil
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
func checkOthersUnchanged(a, b *hub.Snapshot, except map[position]bool) error {
	of := func(s *hub.Snapshot) map[position]string {
		out := map[position]string{}
		add := func(at position, hash string) {
			if !except[at] {
				out[at] = hash
			}
		}
		for _, o := range s.Objects {
			if o.Overlay == nil {
				add(position{id: o.ID}, o.Hash)
				continue
			}
			for key, b := range o.Overlay.Builds {
				file := b.File
				if o.Overlay.Chart != nil {
					file = key // all renderings of a chart have the same file
				}
				add(position{o.ID, key}, b.Err)
				for _, built := range b.Objects {
					if built.Substituted { // its builds for other clusters have the same file
						add(position{built.ID, key}, built.Hash)
						continue
					}
					add(position{built.ID, file}, built.Hash)
				}
			}
		}
		return out
	}
	before, after := of(a), of(b)
	if maps.Equal(before, after) {
		return nil
	}
	compare := func(x, y position) int {
		return cmp.Or(x.id.Compare(y.id), strings.Compare(x.kustomization, y.kustomization))
	}
	for _, at := range slices.SortedFunc(maps.Keys(after), compare) {
		if before[at] != after[at] {
			return fmt.Errorf("the edit would change %s as well", at.id)
		}
	}
	return errors.New("the edit would remove other objects as well")
}

// gives returns an error unless a cluster gets an object of a placement as it is wanted; nil if it shall not get it.
func (r *rendering) gives(at status.Holder, id api.ID, want any) error {
	m, err := r.object(at, id)
	switch {
	case want == nil && err == nil:
		return errors.New("the edited files would still have the object")
	case want != nil && err != nil:
		return err
	case want != nil && !reflect.DeepEqual(yamledit.Canonical(m.Object.Content.Object), want):
		return errors.New("the edited files do not give the object the values that it has on the clusters")
	}
	return nil
}
