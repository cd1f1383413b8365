// Package decide says what an agent does about one object, and why it does not apply or delete it.
//
// Apply is about an object that a placement wants, Delete about one that it wants no longer. Both read a list of rules from the
// top; the first that fits decides. A reason not to write the object is an error with a type of its own, all of which are in
// refusals.go. The package sends no requests and keeps no state: an agent and a preview both tell it what they know.
package decide

import (
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
)

// A Step is what to do about an object.
type Step string

// The steps for an object that is wanted.
const (
	// Leave it as it is, and keep what is recorded of it.
	Leave Step = "leave"
	// Finish with it: nothing remains to be done, and an earlier failure is forgotten.
	Finish Step = "finish"
	// Refuse to write it; the error says why.
	Refuse Step = "refuse"
	// Compare it only, as the strategy of its placement asks.
	Compare Step = "compare"
	// Observe what a suspended object has become.
	Observe Step = "observe"
	// Explain why it still exists although somebody has deleted it; it is created anew once it is gone.
	Explain Step = "explain"
	// Hold its drift, after it was compared.
	Hold Step = "hold"
	// Accept it as it is if it already equals its new version.
	Accept Step = "accept"
	// Clean removes what others have added to it and a user has rejected.
	Clean Step = "clean"
	// Write applies it, or reads it first if what is known does not suffice.
	Write Step = "write"
	// Restore applies it, since others have changed it.
	Restore Step = "restore"
)

// Facts are what is known of an object that a placement wants. What does not matter after an earlier fact may be left out.
type Facts struct {
	// Waits says that its content was tried, and is not to be tried again yet.
	Waits bool
	// Unknown is why the cluster does not serve its kind, and Awaited why it waits for another kind; nil if it does not.
	Unknown, Awaited error
	// NoNamespace is its kind if that is namespaced and the manifest has no namespace; otherwise empty.
	NoNamespace string
	// Encrypted is why its document cannot be decrypted; empty if it can, or is not encrypted.
	Encrypted string
	// OnlyCompared says that its placement only reports differences.
	OnlyCompared bool
	// Exists says that a watch has seen it, and Watched that the watch reports all objects of its kind.
	Exists, Watched bool
	// HasRun says that it is gone after it has run to its end with this content.
	HasRun bool
	// Suspended says that a user has suspended it, and Changed that it may differ from what is wanted.
	Suspended, Changed bool
	// Hook says whether the hooks of its chart let it be applied, and HookFor what they wait for.
	Hook    hooks.State
	HookFor string
	// Deleting says that somebody has deleted it and that it still exists, because of these finalizers.
	Deleting   bool
	Finalizers string
	// Applied says that gitfleet has applied it, and Current that it was with the content that is wanted now.
	Applied, Current bool
	// MayEqual says that it may already equal its new content, since drift or an addition was offered to Git.
	MayEqual bool
	// Failed says that the last attempt has failed, Unread that its state has to be read, and Rejected that others have added
	// something that a user has rejected.
	Failed, Unread, Rejected bool
	// Drift says whether others have changed it. Of an object that has drifted, Held says that the drift is left to a user, and
	// Protected that the strategy does not let it be overwritten.
	Drift           drift.Answer
	Held, Protected bool
}

// Apply returns what to do about an object that a placement wants. The error is set if that is to refuse it.
func Apply(f Facts) (Step, Refusal) {
	for _, r := range rules {
		if r.when(f) {
			if r.why != nil {
				return r.do, r.why(f)
			}
			return r.do, nil
		}
	}
	panic("decide: no rule fits") // the last rule fits everything
}

// rules are read from the top; the first that fits decides.
var rules = []struct {
	when func(Facts) bool
	do   Step
	why  func(Facts) Refusal
}{
	{func(f Facts) bool { return f.Waits }, Leave, nil},

	// What keeps it from being written, whatever is there.
	{func(f Facts) bool { return f.Unknown != nil }, Refuse, func(f Facts) Refusal { return &UnknownKindError{f.Unknown} }},
	{func(f Facts) bool { return f.Awaited != nil }, Refuse, func(f Facts) Refusal { return &AwaitedKindError{f.Awaited} }},
	{func(f Facts) bool { return f.NoNamespace != "" }, Refuse, func(f Facts) Refusal { return &NoNamespaceError{f.NoNamespace, f.OnlyCompared} }},
	{func(f Facts) bool { return f.Encrypted != "" }, Refuse, func(f Facts) Refusal { return &EncryptedError{f.Encrypted, f.OnlyCompared} }},

	{func(f Facts) bool { return f.OnlyCompared }, Compare, nil},
	{func(f Facts) bool { return !f.Exists && f.HasRun }, Finish, nil},
	{func(f Facts) bool { return f.Suspended && f.Changed }, Observe, nil},
	{func(f Facts) bool { return f.Suspended }, Leave, nil},
	{func(f Facts) bool { return f.Hook == hooks.NotDue }, Finish, nil},
	{func(f Facts) bool { return f.Hook == hooks.Waits }, Refuse, func(f Facts) Refusal { return &HookPendingError{f.HookFor} }},
	// An apply now would be lost with the object.
	{func(f Facts) bool { return f.Deleting && !f.Applied }, Refuse, func(f Facts) Refusal { return &BeingDeletedError{Finalizers: f.Finalizers} }},

	// New content overwrites drift once.
	{func(f Facts) bool { return !f.Current && f.MayEqual }, Accept, nil},
	{func(f Facts) bool { return !f.Current }, Write, nil},

	// Without a watch the last apply has to be trusted.
	{func(f Facts) bool { return f.unseen() && f.Rejected }, Clean, nil},
	{func(f Facts) bool { return f.unseen() && (f.Failed || f.Unread) }, Write, nil},
	{Facts.unseen, Leave, nil},

	{func(f Facts) bool { return f.Deleting }, Explain, nil},
	{func(f Facts) bool { return f.drifted() && f.Held }, Hold, nil},
	{func(f Facts) bool { return f.drifted() && f.Protected }, Write, nil},
	{Facts.drifted, Restore, nil},
	{func(f Facts) bool { return f.Rejected }, Clean, nil},
	{func(f Facts) bool { return f.Failed || f.Unread }, Write, nil},
	{func(Facts) bool { return true }, Leave, nil},
}

// unseen reports whether an object may exist that no watch has seen.
func (f Facts) unseen() bool { return !f.Exists && !f.Watched }

func (f Facts) drifted() bool { return f.Drift == drift.Drifted }
