package owned

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// Superseded has the manifests that were applied last, of the objects that are to have another one and
// do not have it yet. Ownership does not show what others have changed since: gitfleet no longer owns
// such a field, and would leave it there if the new manifest has no such field. An agent keeps it when its
// connection is replaced; after a restart it is empty.
type Superseded struct {
	manifests map[api.ID]*work.Manifest
	// last are the objects that were wanted by the last works.
	last desired.Objects
}

// Of returns the manifest that was applied last according to the inventory; nil if it is the one that is
// wanted, or not known.
func (s *Superseded) Of(it *inventory.Item, id api.ID) *work.Manifest {
	if m := s.manifests[id]; m != nil && it != nil && m.Hash == it.Hash {
		return m
	}
	return nil
}

// WorksReplaced records that there are new works.
func (s *Superseded) WorksReplaced(v View) {
	manifests := map[api.ID]*work.Manifest{}
	wanted := v.state.desired.Wanted()
	for id, w := range wanted.All() {
		old, _ := s.last.Of(id)
		if old.Manifest == w.Manifest && s.manifests[id] == nil {
			continue
		}
		it := v.Item(w.Placement, id)
		if it == nil || it.Hash == w.Manifest.Hash {
			continue
		}
		if m := s.Of(it, id); m != nil {
			manifests[id] = m
		} else if old.Manifest != nil && old.Manifest.Hash == it.Hash {
			manifests[id] = old.Manifest
		}
	}
	s.manifests, s.last = manifests, wanted
}

// Applied records that the wanted manifest of an object was applied.
func (s *Superseded) Applied(id api.ID) { delete(s.manifests, id) }
