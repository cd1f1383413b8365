package proposal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
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

// replacedLine returns the first line that an edit replaces or removes; zero if it only adds lines.
func replacedLine(files []FileChange) api.Origin {
	for _, f := range files {
		if f.Before == nil {
			continue
		}
		for _, op := range difflib.NewMatcher(lines(f.Before), lines(f.After)).GetOpCodes() {
			if op.Tag == 'r' || op.Tag == 'd' {
				return api.Origin{Path: f.Path, Line: op.I1 + 1}
			}
		}
	}
	return api.Origin{}
}

// lineOf returns the line in Git of the first of some fields of an object, or of its nearest parent that the manifest
// has. It is that of the object if that is not certain: if the manifest is in an envelope, or if a kustomization or an
// override has changed it.
func (e *Editor) lineOf(m *work.Manifest, fields []api.Difference) api.Origin {
	at := m.Origin
	if at.Line == 0 || m.Envelope != nil || len(fields) == 0 {
		return at
	}
	text, err := fs.ReadFile(e.Files, at.Path)
	if err != nil {
		return at
	}
	n, err := yamledit.ManifestAt(text, at.Line)
	if err != nil {
		return at
	}
	keys := api.SplitPointer(fields[0].Path)
	for i, key := range keys {
		next, line := child(n, key)
		if next == nil {
			if m.Origin.Kustomization != "" {
				return m.Origin
			}
			keys = keys[:i]
			break
		}
		n, at.Line = next, line
	}
	written, err := yamledit.Value(n)
	wanted, _ := yamledit.LookUp(m.Object.Content.Object, keys)
	if err != nil || !reflect.DeepEqual(written, yamledit.Canonical(wanted)) {
		return m.Origin
	}
	return at
}

// child returns the value of a key of a mapping, or the item of a sequence at an index, with the line on which it
// begins; nil if there is none.
func child(n *yaml.Node, key string) (value *yaml.Node, line int) {
	switch n.Kind {
	case yaml.MappingNode:
		if name, value := yamledit.Entry(n, key); value != nil {
			return value, name.Line
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
	}
	return nil, 0
}
