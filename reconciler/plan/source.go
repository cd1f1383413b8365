package plan

import (
	"cmp"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Content is the source of a placement at one commit.
type Content struct {
	Spec *hub.Placement
	// Origins are the positions in Git of the placement, of the objects that it selects, and of
	// the overrides that apply to it.
	Origins []api.Origin
	// Fingerprint identifies the content for all clusters: if it is equal at two commits, each
	// cluster gets the same content at both. It is empty if the selectors are invalid.
	Fingerprint string
}

// Contents returns the content of every placement of a commit, by key.
func Contents(s *hub.Snapshot) []Content {
	m := NewMemo()
	m.setInForce(s)
	out := make([]Content, 0, len(s.Placements))
	for _, spec := range s.Placements {
		out = append(out, contentOf(m, s, spec))
	}
	return out
}

// ContentOf returns the content of one placement; false if the commit does not have it.
func ContentOf(s *hub.Snapshot, key api.PlacementKey) (Content, bool) {
	m := NewMemo()
	m.setInForce(s)
	spec := m.spec(key)
	if spec == nil {
		return Content{}, false
	}
	return contentOf(m, s, spec), true
}

func contentOf(m *Memo, s *hub.Snapshot, spec *hub.Placement) Content {
	c := Content{Spec: spec, Origins: []api.Origin{spec.Origin}}
	p := m.prepare(s, spec.Key)
	for _, o := range p.selection.Objects {
		c.Origins = append(c.Origins, o.Origin)
	}
	if p.renderer == nil {
		return c
	}
	c.Fingerprint = p.fingerprintOf()
	cros, ros := p.renderer.Overrides()
	for _, o := range s.ClusterOverrides {
		if slices.Contains(cros, o.Name) || boundTo(o.Spec.Placement, "", spec.Key) {
			c.Origins = append(c.Origins, o.Origin)
		}
	}
	for _, o := range s.Overrides {
		if slices.Contains(ros, api.NamespacedName{Namespace: o.Namespace, Name: o.Name}) || boundTo(o.Spec.Placement, o.Namespace, spec.Key) {
			c.Origins = append(c.Origins, o.Origin)
		}
	}
	return c
}

// boundTo reports whether an override names a placement, whether or not it
// matches anything there.
func boundTo(ref *api.PlacementRef, namespace string, key api.PlacementKey) bool {
	if ref == nil {
		return false
	}
	if cmp.Or(ref.Scope, api.ClusterScoped) == api.ClusterScoped {
		namespace = ""
	}
	return key == api.PlacementKey{Namespace: namespace, Name: ref.Name}
}
