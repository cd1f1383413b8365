package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// A Memo keeps from one Resolve to the next what depends on a commit alone. It
// changes no answer, only how long it takes. One goroutine may use it.
type Memo struct {
	head    *hub.Snapshot
	specs   map[api.PlacementKey]*hub.Placement
	commits map[string]*memory
	// last is what was prepared last for each placement, whatever the commit.
	last map[api.PlacementKey]*prepared
}

// A memory is what is known of one commit.
type memory struct {
	index      *placement.Index
	cros       []*api.ClusterResourceOverride
	ros        []*api.ResourceOverride
	placements map[api.PlacementKey]*prepared
}

// prepared is what a placement selects at one commit, ready to be rendered.
type prepared struct {
	selection placement.Selection
	renderer  *work.Renderer // nil if the selection is invalid
	hash      string         // of the content before overrides
	cros      []*api.ClusterResourceOverride
	ros       []*api.ResourceOverride
}

// NewMemo returns an empty memo.
func NewMemo() *Memo {
	return &Memo{commits: map[string]*memory{}, last: map[api.PlacementKey]*prepared{}}
}

// begin turns to a head.
func (m *Memo) begin(head *hub.Snapshot) {
	if m.head == head {
		return
	}
	m.head = head
	delete(m.commits, head.Commit.Hash)
	m.specs = make(map[api.PlacementKey]*hub.Placement, len(head.Placements))
	for _, p := range head.Placements {
		m.specs[p.Key] = p
	}
}

// end forgets the commits that nobody needs.
func (m *Memo) end(needed map[string]bool, head string) {
	for commit := range m.commits {
		if commit != head && !needed[commit] {
			delete(m.commits, commit)
		}
	}
	for key := range m.last {
		if m.specs[key] == nil {
			delete(m.last, key)
		}
	}
}

// spec returns a placement of the head; nil if it has none of that key.
func (m *Memo) spec(key api.PlacementKey) *hub.Placement { return m.specs[key] }

// prepareAt prepares a placement as it was at another commit; nil if it was
// not there.
func (m *Memo) prepareAt(s *hub.Snapshot, key api.PlacementKey) *prepared {
	for _, p := range s.Placements {
		if p.Key == key {
			return m.prepare(s, p)
		}
	}
	return nil
}

// prepare selects what a placement names at a commit and makes its renderer.
func (m *Memo) prepare(s *hub.Snapshot, p *hub.Placement) *prepared {
	at := m.commits[s.Commit.Hash]
	if at == nil {
		at = remember(s)
		m.commits[s.Commit.Hash] = at
	}
	if done := at.placements[p.Key]; done != nil {
		return done
	}
	scope := Scope(s)
	now := &prepared{cros: at.cros, ros: at.ros}
	now.selection = placement.Select(placement.Terms{Key: p.Key, Spec: &p.Spec, Scope: scope}, at.index)
	if now.selection.Invalid == "" {
		if old := m.last[p.Key]; old != nil && old.gives(now) {
			now.renderer, now.hash = old.renderer, old.hash
		} else {
			now.renderer = work.NewRenderer(p.Key, now.selection.Objects, at.cros, at.ros, scope)
			now.hash = now.renderer.Hash()
		}
		if s == m.head {
			m.last[p.Key] = now
		}
	}
	at.placements[p.Key] = now
	return now
}

// gives reports whether the renderer of an older commit gives what one of a
// newer commit would: then it is kept, with all that it shares.
func (p *prepared) gives(now *prepared) bool {
	return p.renderer != nil && slices.Equal(p.selection.Objects, now.selection.Objects) &&
		slices.Equal(p.cros, now.cros) && slices.Equal(p.ros, now.ros)
}

func remember(s *hub.Snapshot) *memory {
	m := &memory{index: placement.NewIndex(s.Objects), placements: map[api.PlacementKey]*prepared{}}
	for _, o := range s.ClusterOverrides {
		m.cros = append(m.cros, o.ClusterResourceOverride)
	}
	for _, o := range s.Overrides {
		m.ros = append(m.ros, o.ResourceOverride)
	}
	return m
}

// Scope tells which kinds are namespaced: those of Kubernetes, and those whose
// definitions are in the commit.
func Scope(s *hub.Snapshot) func(api.GroupKind) (namespaced, known bool) {
	return func(gk api.GroupKind) (bool, bool) {
		if namespaced, known := api.Namespaced(gk); known {
			return namespaced, true
		}
		namespaced, known := s.Namespaced[gk]
		return namespaced, known
	}
}
