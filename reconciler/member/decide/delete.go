package decide

import "github.com/gitfleet/gitfleet/reconciler/member/deletion"

// The steps for an object that no placement wants any more.
const (
	// Forget it: it is gone, or no longer gitfleet's.
	Forget Step = "forget"
	// Release it: remove what marks it as gitfleet's, and leave the rest.
	Release Step = "release"
	// Await its end, since it is being deleted.
	Await Step = "await"
	// Keep it; the error says why.
	Keep Step = "keep"
	// Look at what would be lost with it, and ask again.
	Look Step = "look"
	// Remove it.
	Remove Step = "remove"
)

// Stale is what is known of an object that a placement wants no longer. What does not matter after an earlier fact may be left
// out.
type Stale struct {
	// Gone says that it does not exist, or that others own it now.
	Gone bool
	// Released says that it is to be left on the cluster, as it or its placement asks.
	Released bool
	// Deleting says that it was deleted and still exists.
	Deleting bool
	// Allowed says that a commit allows its deletion, whatever is lost with it.
	Allowed bool
	// Blocked is why its deletion needs a commit that allows it; empty if it does not.
	Blocked string
	// After is an object that has to be gone first; zero if there is none.
	After deletion.Object
	// Looked says that the following are known: an object that stays in it, if it is a Namespace, and the content that would be
	// lost with it. Empty if there is none.
	Looked           bool
	Remains, Content string
}

// Delete returns what to do about an object that no placement wants any more. The error is set if that is to keep it.
func Delete(s Stale) (Step, error) {
	for _, r := range deletions {
		if r.when(s) {
			if r.why != nil {
				return r.do, r.why(s)
			}
			return r.do, nil
		}
	}
	panic("decide: no rule fits") // the last rule fits everything
}

// deletions are read from the top; the first that fits decides.
var deletions = []struct {
	when func(Stale) bool
	do   Step
	why  func(Stale) error
}{
	{func(s Stale) bool { return s.Gone }, Forget, nil},
	{func(s Stale) bool { return s.Released }, Release, nil},
	{func(s Stale) bool { return s.Deleting }, Await, nil},
	{func(s Stale) bool { return !s.Allowed && s.Blocked != "" }, Keep, func(s Stale) error { return &BlockedError{s.Blocked} }},
	{func(s Stale) bool { return s.After != deletion.Object{} }, Keep, func(s Stale) error { return &OrderError{s.After} }},
	{func(s Stale) bool { return s.Allowed }, Remove, nil},
	{func(s Stale) bool { return !s.Looked }, Look, nil},
	{func(s Stale) bool { return s.Remains != "" }, Keep, func(s Stale) error { return &RemainsError{s.Remains} }},
	{func(s Stale) bool { return s.Content != "" }, Keep, func(s Stale) error { return &ContentError{s.Content} }},
	{func(Stale) bool { return true }, Remove, nil},
}

// A BlockedError says why a deletion is blocked until a commit allows it.
type BlockedError struct{ Why string }

func (e *BlockedError) Error() string { return "blocked until a commit allows it: " + e.Why }

// An OrderError names an object that has to be gone first.
type OrderError struct{ First deletion.Object }

func (e *OrderError) Error() string { return e.First.ID.String() + " has to be gone first" }

// A RemainsError names an object of ours that stays in a Namespace.
type RemainsError struct{ Object string }

func (e *RemainsError) Error() string { return "the Namespace has what stays: " + e.Object }

// A ContentError says what content would be lost with the object, so that its deletion is blocked until a commit allows it, or until
// that content is gone.
type ContentError struct{ Why string }

func (e *ContentError) Error() string { return "blocked until a commit allows it: " + e.Why }
