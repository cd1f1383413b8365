package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// A Memo keeps from one Resolve to the next what need not be thought again. It
// changes no answer, only how long it takes, with one exception: content that
// was known once is known without the commit it came with. One goroutine may
// use it.
type Memo struct {
	head    *hub.Snapshot
	specs   map[api.PlacementKey]*hub.Placement
	commits map[string]*memory
	// last is what was prepared last for each placement of the head. earlier are
	// those of other commits, as long as they count: a cluster waits at what one
	// of them gives, or has just left it.
	last    map[api.PlacementKey]*prepared
	earlier map[api.PlacementKey][]*prepared

	renames renames
	order   []api.PlacementKey
	ordered turn
	// spare is a map of thoughts that is not in use.
	spare map[api.PlacementKey]*thought
	// finals are the placements as they were last concluded, by key.
	finals []*Placement

	fleet    fleet
	paused   map[string]string
	rest     rest
	thoughts map[api.PlacementKey]*thought
	board    board
	overlaps overlaps
	settled  settled
	neglect  neglect
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
	recipe    string         // of the content with them; empty until it is asked for
	cros      []*api.ClusterResourceOverride
	ros       []*api.ResourceOverride
}

// NewMemo returns an empty memo.
func NewMemo() *Memo {
	return &Memo{
		commits: map[string]*memory{}, last: map[api.PlacementKey]*prepared{}, earlier: map[api.PlacementKey][]*prepared{},
		thoughts: map[api.PlacementKey]*thought{},
	}
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
	for key, old := range m.last {
		if m.specs[key] == nil {
			m.keep(key, old)
			delete(m.last, key)
		}
	}
}

// end forgets the commits that nobody needs, and what no placement holds any
// more.
func (m *Memo) end(needed map[string]bool) {
	for commit := range m.commits {
		if commit != m.head.Commit.Hash && !needed[commit] {
			delete(m.commits, commit)
		}
	}
	for key, kept := range m.earlier {
		th := m.thoughts[key]
		kept = slices.DeleteFunc(kept, func(p *prepared) bool { return th == nil || !slices.Contains(th.uses, p) })
		if m.earlier[key] = kept; len(kept) == 0 {
			delete(m.earlier, key)
		}
	}
}

func (m *Memo) keep(key api.PlacementKey, p *prepared) {
	if p.renderer != nil && !slices.Contains(m.earlier[key], p) {
		m.earlier[key] = append(m.earlier[key], p)
	}
}

// spec returns a placement of the head; nil if it has none of that key.
func (m *Memo) spec(key api.PlacementKey) *hub.Placement { return m.specs[key] }

// prepareAt prepares a placement as it was at another commit; nil if it was
// not there.
func (m *Memo) prepareAt(s *hub.Snapshot, key api.PlacementKey) *prepared {
	i, found := slices.BinarySearchFunc(s.Placements, key, func(p *hub.Placement, key api.PlacementKey) int { return compareKeys(p.Key, key) })
	if !found {
		return nil
	}
	return m.prepare(s, s.Placements[i])
}

// prepare selects what a placement names at a commit and makes its renderer.
// As long as nothing changes that is the same from commit to commit.
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
	old := m.last[p.Key]
	switch {
	case now.selection.Invalid != "":
	case old != nil && old.gives(now):
		now.renderer, now.hash = old.renderer, old.hash
	default:
		now.renderer = work.NewRenderer(p.Key, now.selection.Objects, at.cros, at.ros, scope)
		now.hash = now.renderer.Hash()
	}
	if old != nil && old.renderer == now.renderer && old.selection.Invalid == now.selection.Invalid &&
		slices.Equal(old.selection.Warnings, now.selection.Warnings) && slices.Equal(old.selection.Unmatched, now.selection.Unmatched) {
		now = old
	}
	if s == m.head && now.renderer != nil && now != old {
		if old != nil {
			m.keep(p.Key, old)
		}
		m.last[p.Key] = now
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
