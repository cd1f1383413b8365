package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// A Memo caches results between calls of Resolve. It affects only how long a call takes, with
// one exception: content that was rendered once stays known without its commit. A Memo must not
// be used concurrently.
type Memo struct {
	head    *hub.Snapshot
	specs   map[api.PlacementKey]*hub.Placement
	commits map[string]*commitCache
	// latest is the last content prepared for each placement of the head. earlier are contents
	// of other commits, kept while a cluster is assigned to them or was until now.
	latest  map[api.PlacementKey]*prepared
	earlier map[api.PlacementKey][]*prepared

	renames   renames
	order     []api.PlacementKey
	orderedAt sequenceInputs
	// spareResults is an empty map kept for the next call.
	spareResults map[api.PlacementKey]*result
	// lastPlacements are the placements of the previous plan, by key.
	lastPlacements []*Placement

	fleet       fleet
	paused      map[string]string
	suspensions suspensions
	results     map[api.PlacementKey]*result
	works       workLists
	overlaps    overlapIndex
	resolutions resolutions
	unused      unusedOverrides
}

// A commitCache has what was computed from one commit.
type commitCache struct {
	index      *placement.Index
	cros       []*api.ClusterResourceOverride
	ros        []*api.ResourceOverride
	placements map[api.PlacementKey]*prepared
}

// prepared is what a placement selects at one commit, ready to be rendered.
type prepared struct {
	selection   placement.Selection
	renderer    *work.Renderer // nil if the selection is invalid
	hash        string         // of the content before overrides
	fingerprint string         // of the content with overrides; empty until it is needed
	cros        []*api.ClusterResourceOverride
	ros         []*api.ResourceOverride
}

// NewMemo returns an empty memo.
func NewMemo() *Memo {
	return &Memo{
		commits: map[string]*commitCache{}, latest: map[api.PlacementKey]*prepared{}, earlier: map[api.PlacementKey][]*prepared{},
		results: map[api.PlacementKey]*result{},
	}
}

// setHead changes the head snapshot.
func (m *Memo) setHead(head *hub.Snapshot) {
	if m.head == head {
		return
	}
	m.head = head
	delete(m.commits, head.Commit.Hash)
	m.specs = make(map[api.PlacementKey]*hub.Placement, len(head.Placements))
	for _, p := range head.Placements {
		m.specs[p.Key] = p
	}
	for key, old := range m.latest {
		if m.specs[key] == nil {
			m.keepContent(key, old)
			delete(m.latest, key)
		}
	}
}

// prune drops the commits that are not needed and the contents that no placement uses.
func (m *Memo) prune(needed map[string]bool) {
	for commit := range m.commits {
		if commit != m.head.Commit.Hash && !needed[commit] {
			delete(m.commits, commit)
		}
	}
	for key, kept := range m.earlier {
		r := m.results[key]
		kept = slices.DeleteFunc(kept, func(p *prepared) bool { return r == nil || !slices.Contains(r.contentsInUse, p) })
		if m.earlier[key] = kept; len(kept) == 0 {
			delete(m.earlier, key)
		}
	}
}

func (m *Memo) keepContent(key api.PlacementKey, p *prepared) {
	if p.renderer != nil && !slices.Contains(m.earlier[key], p) {
		m.earlier[key] = append(m.earlier[key], p)
	}
}

// spec returns a placement of the head; nil if the head does not have it.
func (m *Memo) spec(key api.PlacementKey) *hub.Placement { return m.specs[key] }

// prepareAt prepares a placement as it was at another commit; nil if that commit does not have
// it.
func (m *Memo) prepareAt(s *hub.Snapshot, key api.PlacementKey) *prepared {
	i, found := slices.BinarySearchFunc(s.Placements, key, func(p *hub.Placement, key api.PlacementKey) int { return compareKeys(p.Key, key) })
	if !found {
		return nil
	}
	return m.prepare(s, s.Placements[i])
}

// prepare selects the objects of a placement at a commit and creates its renderer. It returns
// the same value for commits between which nothing changed.
func (m *Memo) prepare(s *hub.Snapshot, p *hub.Placement) *prepared {
	at := m.commits[s.Commit.Hash]
	if at == nil {
		at = newCommitCache(s)
		m.commits[s.Commit.Hash] = at
	}
	if done := at.placements[p.Key]; done != nil {
		return done
	}
	scope := Scope(s)
	current := &prepared{cros: at.cros, ros: at.ros}
	current.selection = placement.Select(placement.Terms{Key: p.Key, Spec: &p.Spec, Scope: scope}, at.index)
	old := m.latest[p.Key]
	switch {
	case current.selection.Invalid != "":
	case old != nil && old.rendersLike(current):
		current.renderer, current.hash = old.renderer, old.hash
	default:
		current.renderer = work.NewRenderer(p.Key, current.selection.Objects, at.cros, at.ros, scope)
		current.hash = current.renderer.Hash()
	}
	if old != nil && old.renderer == current.renderer && old.selection.Invalid == current.selection.Invalid &&
		slices.Equal(old.selection.Warnings, current.selection.Warnings) && slices.Equal(old.selection.Unmatched, current.selection.Unmatched) {
		current = old
	}
	if s == m.head && current.renderer != nil && current != old {
		if old != nil {
			m.keepContent(p.Key, old)
		}
		m.latest[p.Key] = current
	}
	at.placements[p.Key] = current
	return current
}

// rendersLike reports whether the renderer of an older commit renders the same content: then it
// is reused, with everything it caches.
func (p *prepared) rendersLike(o *prepared) bool {
	return p.renderer != nil && slices.Equal(p.selection.Objects, o.selection.Objects) &&
		slices.Equal(p.cros, o.cros) && slices.Equal(p.ros, o.ros)
}

func newCommitCache(s *hub.Snapshot) *commitCache {
	m := &commitCache{index: placement.NewIndex(s.Objects), placements: map[api.PlacementKey]*prepared{}}
	for _, o := range s.ClusterOverrides {
		m.cros = append(m.cros, o.ClusterResourceOverride)
	}
	for _, o := range s.Overrides {
		m.ros = append(m.ros, o.ResourceOverride)
	}
	return m
}

// Scope returns whether a kind is namespaced: built-in kinds, and those defined in the commit.
func Scope(s *hub.Snapshot) func(api.GroupKind) (namespaced, known bool) {
	return func(gk api.GroupKind) (bool, bool) {
		if namespaced, known := api.Namespaced(gk); known {
			return namespaced, true
		}
		namespaced, known := s.Namespaced[gk]
		return namespaced, known
	}
}
