package diff

import "github.com/gitfleet/gitfleet/placement/api"

// An Operation is what to do with one object.
type Operation string

// The operations. Writes use server-side apply.
const (
	// Create applies an object that does not exist.
	Create Operation = "Create"
	// Apply applies an owned object.
	Apply Operation = "Apply"
	// TakeOver applies an object that already existed, and makes it owned.
	TakeOver Operation = "TakeOver"
	// Nothing sends no request. If Diffs is above zero, there is drift to report that an apply
	// could not repair.
	Nothing Operation = "Nothing"
	// NeedRead reads the live object if it is not known yet, compares it (also if it does not
	// exist), and calls Decide again.
	NeedRead Operation = "NeedRead"
	// Report writes nothing and reports Diffs.
	Report Operation = "ReportDiff"
	// Refuse writes nothing; the Refusal is the reason.
	Refuse Operation = "Refuse"
)

// A Presence says whether an object exists on the member. The zero value is unknown.
type Presence string

// The presences.
const (
	Unseen  Presence = ""
	Absent  Presence = "absent"
	Present Presence = "present"
)

// A Case is the input of Decide.
type Case struct {
	Live Presence
	// Owner is the owner of the object, if it exists.
	Owner Owner
	// CoOwned says that the live object has owner references.
	CoOwned bool
	// Changed says that the desired content differs from the last applied one, or that the last
	// applied one is not known.
	Changed bool
	// Drifted says that somebody changed an owned field since the last apply.
	Drifted bool
	// Compared says that the live object was compared as the strategy's ComparisonOption
	// requires. Diffs is the number of differences.
	Compared bool
	Diffs    int
	// Strategy must have its defaults set.
	Strategy api.ApplyStrategy
}

// Decide returns what to do with one object, and the reason if the operation is Refuse. Facts
// that do not matter under the strategy may be unknown. If a fact that matters is missing, the
// result is NeedRead; it is not for an object that was read and compared.
func Decide(c Case) (Operation, Refusal) {
	for _, r := range rules {
		if r.when(c) {
			return r.do, r.why
		}
	}
	panic("diff: no rule fits") // the last rule matches every case
}

// rules are read from the top; the first match decides.
var rules = []struct {
	when func(Case) bool
	do   Operation
	why  Refusal
}{
	{func(c Case) bool { return c.Live == Unseen }, NeedRead, ""},

	// ReportDiff compares and writes nothing, whatever the owner and whether the object exists.
	{func(c Case) bool { return c.reportsOnly() && !c.Compared }, NeedRead, ""},
	{Case.reportsOnly, Report, ""},

	// A missing object is created, even if somebody has deleted it: only an existing object can
	// drift or be taken over.
	{func(c Case) bool { return c.Live == Absent }, Create, ""},

	// Owned objects. New content overwrites drift once. Without new content, IfNotDrifted
	// protects the drift.
	{func(c Case) bool { return c.ours() && c.coOwned() }, Refuse, CoOwned},
	{func(c Case) bool { return c.ours() && c.Changed }, Apply, ""},
	{func(c Case) bool { return c.ours() && c.always() && c.Drifted }, Apply, ""},
	{func(c Case) bool { return c.ours() && c.always() && c.partial() }, Nothing, ""},
	{func(c Case) bool { return c.ours() && c.partial() && !c.Drifted }, Nothing, ""},
	{func(c Case) bool { return c.ours() && !c.Compared }, NeedRead, ""},
	{func(c Case) bool { return c.ours() && c.always() }, Nothing, ""},
	{func(c Case) bool { return c.ours() && c.Diffs > 0 }, Refuse, Drifts},
	// A changed field has its old value again. It has to be applied to be owned again;
	// otherwise the next change would not be noticed.
	{func(c Case) bool { return c.ours() && c.Drifted }, Apply, ""},
	{Case.ours, Nothing, ""},

	// Objects that are not owned.
	{func(c Case) bool { return c.Strategy.WhenToTakeOver == api.TakeOverNever }, Refuse, NotOurs},
	{Case.coOwned, Refuse, OwnedBySome},
	{func(c Case) bool { return c.otherPlacement() && !c.Strategy.AllowCoOwnership }, Refuse, OwnedBySome},
	{Case.otherPlacement, Refuse, OwnedByPlacement},
	{func(c Case) bool { return c.ifNoDiff() && !c.Compared }, NeedRead, ""},
	{func(c Case) bool { return c.ifNoDiff() && c.Diffs > 0 }, Refuse, WouldOverwrite},
	{func(Case) bool { return true }, TakeOver, ""},
}

func (c Case) ours() bool           { return c.Owner == Ours }
func (c Case) otherPlacement() bool { return c.Owner == OtherPlacement || c.Owner == OtherFleet }

// coOwned reports whether there are other owners although the strategy does not allow them.
func (c Case) coOwned() bool { return c.CoOwned && !c.Strategy.AllowCoOwnership }

func (c Case) reportsOnly() bool { return c.Strategy.Type == api.ReportDiff }
func (c Case) partial() bool     { return c.Strategy.ComparisonOption != api.FullComparison }
func (c Case) always() bool      { return c.Strategy.WhenToApply != api.ApplyIfNotDrifted }
func (c Case) ifNoDiff() bool    { return c.Strategy.WhenToTakeOver == api.TakeOverIfNoDiff }

// CompareAfter reports whether an apply under this strategy is followed by a comparison that
// reports drift.
func CompareAfter(s api.ApplyStrategy) bool {
	return s.Type != api.ReportDiff && s.ComparisonOption == api.FullComparison
}

// Force reports whether an apply under this strategy overrides other managers. ClientSideApply
// does, since client-side apply has no conflicts.
func Force(s api.ApplyStrategy) bool {
	if s.Type != api.ServerSideApply {
		return true
	}
	return s.ServerSideApplyConfig != nil && s.ServerSideApplyConfig.ForceConflicts
}

// A Refusal is the reason why an object is not applied.
type Refusal string

// The refusals.
const (
	// NotOurs: it existed before and may not be taken over.
	NotOurs Refusal = "not ours"
	// OwnedBySome: it has other owners, and co-ownership is not allowed.
	OwnedBySome Refusal = "owned by others"
	// OwnedByPlacement: another placement or fleet owns it.
	OwnedByPlacement Refusal = "owned by another placement"
	// WouldOverwrite: it may be taken over only if it does not differ, but it differs.
	WouldOverwrite Refusal = "differs"
	// Drifts: it has drifted and may not be overwritten.
	Drifts Refusal = "drifted"
	// CoOwned: it is owned, but now has other owners too.
	CoOwned Refusal = "co-owned"
)
