package plan

import (
	"cmp"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A PlacementSource is what determines a placement at one commit.
type PlacementSource struct {
	Spec *hub.Placement
	// Origins are the positions in Git of the placement, of the objects that it selects, and of the overrides that
	// apply to it.
	Origins []api.Origin
	// Fingerprint identifies the content for all clusters: if it is equal at two commits, each cluster gets the same
	// content at both. It is empty if the selectors are invalid.
	Fingerprint string
}

// SourcesOf returns the source of every placement of a commit, by key.
func SourcesOf(s *hub.Snapshot) []PlacementSource {
	m := NewMemo()
	m.setInForce(s)
	out := make([]PlacementSource, 0, len(s.Placements))
	for _, spec := range s.Placements {
		out = append(out, placementSource(m, s, spec))
	}
	return out
}

// SourceOf returns the source of one placement; false if the commit does not have it.
func SourceOf(s *hub.Snapshot, key api.PlacementKey) (PlacementSource, bool) {
	m := NewMemo()
	m.setInForce(s)
	spec := m.spec(key)
	if spec == nil {
		return PlacementSource{}, false
	}
	return placementSource(m, s, spec), true
}

func placementSource(m *Memo, s *hub.Snapshot, spec *hub.Placement) PlacementSource {
	src := PlacementSource{Spec: spec, Origins: []api.Origin{spec.Origin}}
	p := m.prepare(s, spec.Key)
	for _, o := range p.selection.Objects {
		src.Origins = append(src.Origins, o.Origin)
	}
	if p.renderer == nil {
		return src
	}
	src.Fingerprint = p.fingerprintOf()
	cros, ros := p.renderer.Overrides()
	for _, o := range s.ClusterOverrides {
		if slices.Contains(cros, o.Name) || boundTo(o.Spec.Placement, "", spec.Key) {
			src.Origins = append(src.Origins, o.Origin)
		}
	}
	for _, o := range s.Overrides {
		if slices.Contains(ros, api.NamespacedName{Namespace: o.Namespace, Name: o.Name}) || boundTo(o.Spec.Placement, o.Namespace, spec.Key) {
			src.Origins = append(src.Origins, o.Origin)
		}
	}
	return src
}

// boundTo reports whether an override names a placement, whether or not it matches anything there.
func boundTo(ref *api.PlacementRef, namespace string, key api.PlacementKey) bool {
	if ref == nil {
		return false
	}
	if cmp.Or(ref.Scope, api.ClusterScoped) == api.ClusterScoped {
		namespace = ""
	}
	return key == api.PlacementKey{Namespace: namespace, Name: ref.Name}
}
