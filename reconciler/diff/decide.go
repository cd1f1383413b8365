package diff

import "github.com/gitfleet/gitfleet/placement/api"

// An Operation is what is to be done about one object.
type Operation string

// The operations. Each is written by server-side apply, or not at all.
const (
	// Create applies an object that is not there.
	Create Operation = "Create"
	// Apply applies an object that is ours.
	Apply Operation = "Apply"
	// TakeOver applies an object that was there before us, and makes it ours.
	TakeOver Operation = "TakeOver"
	// Nothing sends no request. With Diffs above zero, they are drifts to
	// report, which applying could not repair.
	Nothing Operation = "Nothing"
	// NeedRead reads the live object, if that was not done yet, compares, also
	// with nothing, and asks again.
	NeedRead Operation = "NeedRead"
	// Report writes nothing and reports Diffs.
	Report Operation = "ReportDiff"
	// Refuse leaves the object alone; the Refusal says why.
	Refuse Operation = "Refuse"
)

// A Presence says whether an object is in the member. The zero value is not to
// know.
type Presence string

// The presences.
const (
	Unseen  Presence = ""
	Absent  Presence = "absent"
	Present Presence = "present"
)

// A Case is all that Decide looks at.
type Case struct {
	Live Presence
	// Owner is whose the object is, if it is present.
	Owner Owner
	// CoOwned says that the live object has owner references: something in the
	// member owns it too, or instead.
	CoOwned bool
	// Changed says that the wanted content is not what we last applied here,
	// or that it is not known what we last applied.
	Changed bool
	// Drifted says that someone moved a field that we own since our last apply.
	Drifted bool
	// Compared says that the live object was read and compared as the
	// strategy's ComparisonOption demands, and Diffs is how many differences
	// that found.
	Compared bool
	Diffs    int
	// Strategy has its defaults filled in.
	Strategy api.ApplyStrategy
}

// Decide says what to do about one object, and why not, if the answer is
// Refuse. Facts that the strategy does not ask for are not looked at, so they
// need not be known; where one is missing that it does ask for, the answer is
// NeedRead, and never again for the same case with the facts filled in.
func Decide(c Case) (Operation, Refusal) {
	for _, r := range rules {
		if r.when(c) {
			return r.do, r.why
		}
	}
	panic("diff: no rule fits") // the last one fits everything
}

// rules are read from the top; the first that fits decides.
var rules = []struct {
	when func(Case) bool
	do   Operation
	why  Refusal
}{
	{Case.unseen, NeedRead, ""},

	// Whoever owns it, and if it exists at all or not, a report compares and
	// touches nothing.
	{all(Case.reportsOnly, Case.notCompared), NeedRead, ""},
	{Case.reportsOnly, Report, ""},

	// What is missing is created, also when someone deleted it: only an
	// object that exists can drift or be taken over.
	{Case.absent, Create, ""},

	// Ours. A new version overwrites drift once; drift is only protected
	// between versions.
	{all(Case.ours, Case.coOwned), Refuse, CoOwned},
	{all(Case.ours, Case.changed), Apply, ""},
	{all(Case.ours, Case.always, Case.drifted), Apply, ""},
	{all(Case.ours, Case.always, Case.partial), Nothing, ""},
	{all(Case.ours, Case.partial, not(Case.drifted)), Nothing, ""},
	{all(Case.ours, Case.notCompared), NeedRead, ""},
	{all(Case.ours, Case.always), Nothing, ""},
	{all(Case.ours, Case.differs), Refuse, Drifts},
	// Somebody moved a field and it is back where it was: apply, to own it
	// again, or its next move would go unnoticed.
	{all(Case.ours, Case.drifted), Apply, ""},
	{Case.ours, Nothing, ""},

	// Not ours.
	{Case.never, Refuse, NotOurs},
	{Case.coOwned, Refuse, OwnedBySome},
	{all(Case.otherPlacement, not(Case.allowsCoOwners)), Refuse, OwnedBySome},
	{Case.otherPlacement, Refuse, OwnedByPlacement},
	{all(Case.ifNoDiff, Case.notCompared), NeedRead, ""},
	{all(Case.ifNoDiff, Case.differs), Refuse, WouldOverwrite},
	{func(Case) bool { return true }, TakeOver, ""},
}

func (c Case) unseen() bool      { return c.Live == Unseen }
func (c Case) absent() bool      { return c.Live == Absent }
func (c Case) changed() bool     { return c.Changed }
func (c Case) drifted() bool     { return c.Drifted }
func (c Case) notCompared() bool { return !c.Compared }
func (c Case) differs() bool     { return c.Diffs > 0 }

func (c Case) ours() bool           { return c.Owner == Ours }
func (c Case) otherPlacement() bool { return c.Owner == OtherPlacement || c.Owner == OtherFleet }

// coOwned reports whether there are other owners where there may be none.
func (c Case) coOwned() bool        { return c.CoOwned && !c.Strategy.AllowCoOwnership }
func (c Case) allowsCoOwners() bool { return c.Strategy.AllowCoOwnership }

func (c Case) reportsOnly() bool { return c.Strategy.Type == api.ReportDiff }
func (c Case) partial() bool     { return c.Strategy.ComparisonOption != api.FullComparison }
func (c Case) always() bool      { return c.Strategy.WhenToApply != api.ApplyIfNotDrifted }
func (c Case) never() bool       { return c.Strategy.WhenToTakeOver == api.TakeOverNever }
func (c Case) ifNoDiff() bool    { return c.Strategy.WhenToTakeOver == api.TakeOverIfNoDiff }

// CompareAfter reports whether an apply under this strategy is followed by a
// comparison, whose differences are drifts of an object that is applied all
// the same.
func CompareAfter(s api.ApplyStrategy) bool {
	return s.Type != api.ReportDiff && s.ComparisonOption == api.FullComparison
}

// Force reports whether an apply under this strategy overrides other managers.
// ClientSideApply means that it does, as client-side apply knew no conflicts.
func Force(s api.ApplyStrategy) bool {
	if s.Type != api.ServerSideApply {
		return true
	}
	return s.ServerSideApplyConfig != nil && s.ServerSideApplyConfig.ForceConflicts
}

func all(conditions ...func(Case) bool) func(Case) bool {
	return func(c Case) bool {
		for _, holds := range conditions {
			if !holds(c) {
				return false
			}
		}
		return true
	}
}

func not(holds func(Case) bool) func(Case) bool {
	return func(c Case) bool { return !holds(c) }
}
