package drift

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A State is what is recorded of drift on a cluster, for the one who records that. It outlives connections and, through the ledger,
// what has changed also outlives the agent. New returns an empty one.
type State struct {
	// changes are the changes of others, and additions what they have added beside what manifests set.
	changes, additions memory
	// undone is how often others undid an apply of an object, and removed how often rejected additions to it were removed.
	undone  map[api.ID]undone
	removed map[api.ID]diff.Flips
	// decisions are the decisions about held drift and offered additions.
	decisions protocol.DriftDecisions
}

// undone is how often others undid an apply of one object.
type undone struct {
	diff.Flips
	// last identifies the change that was counted last.
	last string
	// before are the flips without the last one.
	before diff.Flips
}

// New returns the state of a cluster of which nothing is recorded.
func New() *State {
	return &State{changes: memory{}, additions: memory{}, undone: map[api.ID]undone{}, removed: map[api.ID]diff.Flips{}}
}

// View returns a view of the state, which follows its changes.
func (s *State) View() View { return View{s} }

// memoryOf returns the memory of changes or of additions.
func (s *State) memoryOf(addition bool) memory {
	if addition {
		return s.additions
	}
	return s.changes
}

// Loaded records a drift as it was reported earlier.
func (s *State) Loaded(p api.PlacementKey, d protocol.Drift) { s.memoryOf(d.Addition).put(p, d) }

// Observed records the observed drift of an object of a placement. anew says that the object has drifted once more.
func (s *State) Observed(p api.PlacementKey, of *work.Manifest, state api.DriftState, now protocol.Drift, anew bool) {
	s.memoryOf(now.Addition).record(p, of, state, now, anew)
}

// Ended records that a drift has ended.
func (s *State) Ended(p api.PlacementKey, d protocol.Drift) { s.memoryOf(d.Addition).end(p, d) }

// Explained records what happens with a drift, and reports whether that is news.
func (s *State) Explained(key protocol.DriftKey, message string) (news bool) {
	m := s.memoryOf(key.Addition)
	d, known := m[key.Placement][key.ID]
	if !known || d.Message == message {
		return false
	}
	d.Message = message
	m.put(key.Placement, d)
	return true
}

// WorksReplaced records that there are new works, and forgets the drift of objects that a placement no longer has. find returns the work
// of a placement, and whether it has one.
func (s *State) WorksReplaced(find func(api.PlacementKey) (*work.Work, bool)) {
	s.changes.forget(find)
	s.additions.forget(find)
}

// Undone records that others have undone an apply of an object, and reports whether this change was not counted before. change identifies
// it: the version of the object that was changed, or the UID of the one that was deleted.
func (s *State) Undone(id api.ID, change, by string, now time.Time) (news bool) {
	known := s.undone[id]
	if known.last == change {
		return false
	}
	s.undone[id] = undone{known.Flip(now, by), change, known.Flips}
	return true
}

// NotUndone records that the change of an object that was counted last has undone nothing.
func (s *State) NotUndone(id api.ID) {
	if known, counted := s.undone[id]; counted {
		s.undone[id] = undone{known.before, known.last, known.before}
	}
}

// Removed records that a rejected addition to an object was removed.
func (s *State) Removed(id api.ID, by string, now time.Time) {
	s.removed[id] = s.removed[id].Flip(now, by)
}

// Decided replaces the decisions about held drift and offered additions.
func (s *State) Decided(all protocol.DriftDecisions) { s.decisions = all }

// ClusterRestored records that the cluster was restored to an earlier state, so that nobody has undone anything.
func (s *State) ClusterRestored() {
	clear(s.undone)
	clear(s.removed)
}

// A View reads a State, and cannot change it.
type View struct{ state *State }

// Change returns how others have changed an object; the zero Drift if they have not.
func (v View) Change(p api.PlacementKey, id api.ID) protocol.Drift { return v.state.changes[p][id] }

// Addition returns what others have added to an object; the zero Drift if they have added nothing.
func (v View) Addition(p api.PlacementKey, id api.ID) protocol.Drift {
	return v.state.additions[p][id]
}

// Changes yields the recorded changes of all objects.
func (v View) Changes() iter.Seq2[api.PlacementKey, protocol.Drift] { return v.state.changes.all() }

// Additions yields the recorded additions to all objects.
func (v View) Additions() iter.Seq2[api.PlacementKey, protocol.Drift] { return v.state.additions.all() }

// ChangesOf yields the recorded changes of the objects of a placement.
func (v View) ChangesOf(p api.PlacementKey) iter.Seq[protocol.Drift] {
	return maps.Values(v.state.changes[p])
}

// AdditionsOf yields the recorded additions to the objects of a placement.
func (v View) AdditionsOf(p api.PlacementKey) iter.Seq[protocol.Drift] {
	return maps.Values(v.state.additions[p])
}

// List returns the recorded drifts of a placement, sorted by ID.
func (v View) List(p api.PlacementKey) []protocol.Drift {
	out := append(v.state.changes.list(p), v.state.additions.list(p)...)
	slices.SortStableFunc(out, func(a, b protocol.Drift) int { return a.ID.Compare(b.ID) })
	return out
}

// Altered returns the fields of an object that a server is known to store differently from what is applied.
func (v View) Altered(p api.PlacementKey, id api.ID) []api.PatchDetail {
	return v.state.changes.altered(p, id)
}

// IsLeftDeleted reports whether an object is missing because its drift, a deletion, is held.
func (v View) IsLeftDeleted(p api.PlacementKey, id api.ID) bool {
	d := v.Change(p, id)
	return d.State == api.DriftHeld && d.Deleted
}

// Undone returns how often others have undone an apply of an object.
func (v View) Undone(id api.ID) diff.Flips { return v.state.undone[id].Flips }

// Removed returns how often rejected additions to an object were removed.
func (v View) Removed(id api.ID) diff.Flips { return v.state.removed[id] }

// AllRemoved yields the objects from which rejected additions were removed, and how often.
func (v View) AllRemoved() iter.Seq2[api.ID, diff.Flips] { return maps.All(v.state.removed) }

// Decision returns the decision about drift that awaits one.
func (v View) Decision(key protocol.DriftKey) (r protocol.DriftDecision, known bool) {
	d := v.state.memoryOf(key.Addition)[key.Placement][key.ID]
	r, known = v.state.decisions[key]
	return r, known && d.State.AwaitsDecision(d.Rule) && r.Fingerprint == protocol.Fingerprint(d.Paths, d.Digest)
}

// Decisions yields the decisions about drift that awaits one.
func (v View) Decisions() iter.Seq2[protocol.DriftKey, protocol.DriftDecision] {
	return func(yield func(protocol.DriftKey, protocol.DriftDecision) bool) {
		for key := range v.state.decisions {
			if r, known := v.Decision(key); known && !yield(key, r) {
				return
			}
		}
	}
}
