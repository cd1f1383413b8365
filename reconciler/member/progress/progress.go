// Package progress is what remains to be done about the objects of a member cluster.
//
// A State has why objects are not as desired and when they are tried again (Failure), which objects have to be looked at, and which
// deletions wait for others. Each of its methods records one thing that has happened. The recorder of a session has the only State;
// the other parts have a View, and nothing that they read from it can be changed.
package progress

import (
	"iter"
	"maps"
	"reflect"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// A State is what remains to be done, for the one who records that. New returns an empty one.
type State struct {
	// failed has why an object is not as desired, and when it is tried again.
	failed map[api.ID]*Failure
	// verified are the ownership states of objects when they were last verified.
	verified map[api.ID]observed.OwnershipState
	// suspects are objects that others have written, and whose values were not compared since.
	suspects map[api.ID]bool
	// unprocessed are objects with a recorded change that was not processed yet.
	unprocessed map[api.ID]bool
	// cutShort are objects that somebody deleted before they had run to their end.
	cutShort map[api.ID]bool
	// replaced are objects with fields that are left to others, as they were before they were deleted to be created again.
	replaced map[api.ID]*apply.Snapshot
	// waiting are the objects that are deleted once others are gone, with one of those.
	waiting map[Deletion]deletion.Object
	// pruned are the placements that have removed something, or failed to, since their last report.
	pruned Placements
	// untried are the placements with objects of the current revision that were never attempted.
	untried Placements
	// compared is when placements that only report differences were last compared.
	compared time.Time
}

// A Deletion is that of an object that the inventory of a placement lists.
type Deletion struct {
	ID        api.ID
	Placement api.PlacementKey
}

// New returns the state of a session that has done nothing yet.
func New() *State {
	return &State{
		failed: map[api.ID]*Failure{}, verified: map[api.ID]observed.OwnershipState{}, suspects: map[api.ID]bool{}, unprocessed: map[api.ID]bool{},
		cutShort: map[api.ID]bool{}, replaced: map[api.ID]*apply.Snapshot{}, waiting: map[Deletion]deletion.Object{},
	}
}

// View returns a view of the state, which follows its changes.
func (s *State) View() View { return View{s} }

// A View reads a State, and cannot change it.
type View struct{ state *State }

// Failure returns why an object is not as desired; failed is false if it is, as far as that is known.
func (v View) Failure(id api.ID) (f Failure, failed bool) {
	if known := v.state.failed[id]; known != nil {
		return *known, true
	}
	return f, false
}

// HasFailed reports whether an object is not as desired.
func (v View) HasFailed(id api.ID) bool { return v.state.failed[id] != nil }

// Failures yields all failures.
func (v View) Failures() iter.Seq2[api.ID, Failure] {
	return func(yield func(api.ID, Failure) bool) {
		for id, f := range v.state.failed {
			if !yield(id, *f) {
				return
			}
		}
	}
}

// IsVerified reports whether an object was verified in an ownership state.
func (v View) IsVerified(id api.ID, state observed.OwnershipState) bool {
	verified, known := v.state.verified[id]
	return known && verified == state
}

// IsSuspect reports whether others have written an object, so that its values have to be compared.
func (v View) IsSuspect(id api.ID) bool { return v.state.suspects[id] }

// HasSuspects reports whether the values of any object have to be compared.
func (v View) HasSuspects() bool { return len(v.state.suspects) > 0 }

// IsUnprocessed reports whether an object has changed on the cluster since it was last processed.
func (v View) IsUnprocessed(id api.ID) bool { return v.state.unprocessed[id] }

// HasRun reports whether an object that does not exist has run with the content of a manifest, and
// was then deleted by a controller. it is the object in the inventory, nil if it is not listed. If
// nobody has seen how the object went, it counts as having run: running twice may do harm.
func (v View) HasRun(m *work.Manifest, it *inventory.Item) bool {
	return it != nil && it.Hash == m.Hash && (it.End != "" || !v.state.cutShort[m.ID]) && controllers.RunOf(m.Object.Content) != nil
}

// Replaced returns an object with fields that are left to others, as it was before it was deleted to be created again; nil for others.
func (v View) Replaced(id api.ID) *apply.Snapshot { return v.state.replaced[id] }

// Waiting yields the deletions that wait for another object to be gone, and that object.
func (v View) Waiting() iter.Seq2[Deletion, deletion.Object] { return maps.All(v.state.waiting) }

// HasPruned reports whether a placement has removed something, or failed to, since its last report.
func (v View) HasPruned(p api.PlacementKey) bool { return v.state.pruned.Has(p) }

// IsUntried reports whether not all objects of a placement were tried with its current revision.
func (v View) IsUntried(p api.PlacementKey) bool { return v.state.untried.Has(p) }

// NextComparison returns when placements that only report differences are to be compared again.
func (v View) NextComparison() time.Time { return v.state.compared.Add(CompareInterval) }

// Applied records that an object was written: its values need not be compared, and how it ended or was replaced before no longer counts.
func (s *State) Applied(id api.ID) {
	delete(s.suspects, id)
	delete(s.replaced, id)
	delete(s.cutShort, id)
}

// Verified records the ownership state in which an object was verified.
func (s *State) Verified(id api.ID, state observed.OwnershipState) { s.verified[id] = state }

// Recreating records that an object is deleted to be created again, and how it was, since the new one gets values of it.
func (s *State) Recreating(id api.ID, was *apply.Snapshot) { s.replaced[id] = was }

// CutShort records that an object was deleted before it had run to its end.
func (s *State) CutShort(id api.ID) { s.cutShort[id] = true }

// Suspect records that the values of some objects have to be compared.
func (s *State) Suspect(ids ...api.ID) {
	for _, id := range ids {
		s.suspects[id] = true
	}
}

// Trust records that the values of some objects need not be compared.
func (s *State) Trust(ids ...api.ID) {
	for _, id := range ids {
		delete(s.suspects, id)
	}
}

// TakeSuspects returns the suspects whose last change is processed, and forgets them.
func (s *State) TakeSuspects() (ids []api.ID) {
	for id := range s.suspects {
		if !s.unprocessed[id] {
			ids = append(ids, id)
			delete(s.suspects, id)
		}
	}
	return ids
}

// Postpone records that some objects, or changes of them, have yet to be processed.
func (s *State) Postpone(ids map[api.ID]bool) { maps.Copy(s.unprocessed, ids) }

// TakeUnprocessed returns the objects that have yet to be processed, and forgets them.
func (s *State) TakeUnprocessed() map[api.ID]bool {
	ids := s.unprocessed
	s.unprocessed = map[api.ID]bool{}
	return ids
}

// DeletionWaits records that a deletion waits until another object is gone.
func (s *State) DeletionWaits(d Deletion, first deletion.Object) { s.waiting[d] = first }

// TakeWaiting returns the deletions that wait for other objects to be gone, and forgets them.
func (s *State) TakeWaiting() map[Deletion]deletion.Object {
	waiting := s.waiting
	s.waiting = map[Deletion]deletion.Object{}
	return waiting
}

// Pruning records that objects of a placement are being removed.
func (s *State) Pruning(p api.PlacementKey) { s.pruned.Add(p) }

// Reported records that a placement was reported.
func (s *State) Reported(p api.PlacementKey) { s.pruned.Take(p) }

// Untried records that objects of a placement have yet to be tried.
func (s *State) Untried(p api.PlacementKey) { s.untried.Add(p) }

// AllTried records that all objects of all placements were tried.
func (s *State) AllTried() { s.untried = Placements{} }

// Compared records that placements that only report differences are compared now.
func (s *State) Compared(now time.Time) { s.compared = now }

// VerifyAgain has all objects verified again.
func (s *State) VerifyAgain() { clear(s.verified) }

// StartOver forgets what was done about objects of some works.
func (s *State) StartOver(works desired.Works) {
	clear(s.verified)
	clear(s.failed)
	for _, w := range works {
		s.Untried(w.Placement)
	}
}

// WorkChanged records that a placement has another work. If its strategy has changed, its objects are looked at anew, and so are
// objects whose suspension has begun or ended.
func (s *State) WorkChanged(was, now *work.Work) {
	otherStrategy := !reflect.DeepEqual(was.Strategy, now.Strategy)
	for _, m := range now.Manifests {
		if f := s.failed[m.ID]; f != nil && f.Recreate && now.AllowDelete && !was.AllowDelete {
			f.Next = time.Time{} // it may be recreated now
		}
		reason := now.SuspendedReason(m.ID)
		if suspensionChanged := reason != was.SuspendedReason(m.ID); suspensionChanged && reason == "" {
			s.suspects[m.ID] = true // its values may have changed meanwhile
		} else if !suspensionChanged && !otherStrategy {
			continue
		}
		delete(s.failed, m.ID)
		delete(s.verified, m.ID)
	}
}

// Forget drops what is known of an object that is neither wanted nor listed in an inventory.
func (s *State) Forget(id api.ID) {
	delete(s.failed, id)
	delete(s.verified, id)
	delete(s.replaced, id)
}

// Placements are a set of placements that is empty most of the time. It keeps no memory then, unlike a map whose keys were
// deleted: a cluster may have very many placements.
type Placements struct{ keys map[api.PlacementKey]bool }

// Add adds a placement.
func (s *Placements) Add(p api.PlacementKey) {
	if s.keys == nil {
		s.keys = map[api.PlacementKey]bool{}
	}
	s.keys[p] = true
}

// Has reports whether the set has a placement.
func (s *Placements) Has(p api.PlacementKey) bool { return s.keys[p] }

// Take removes a placement, and reports whether the set had it.
func (s *Placements) Take(p api.PlacementKey) (had bool) {
	had = s.keys[p]
	if delete(s.keys, p); len(s.keys) == 0 {
		s.keys = nil
	}
	return had
}
