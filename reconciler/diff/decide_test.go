package diff

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/golden"
)

// A liveState is a row of the table: a state of the object on the member.
type liveState struct {
	name    string
	facts   Case // what is known without reading the object
	partial int  // what a comparison would find
	full    int
}

var liveStates = []liveState{
	{"absent", Case{Live: Absent}, 1, 1},
	{"foreign equal", Case{Live: Present, Owner: Foreign, Changed: true}, 0, 0},
	{"foreign with extra fields", Case{Live: Present, Owner: Foreign, Changed: true}, 0, 1},
	{"foreign different", Case{Live: Present, Owner: Foreign, Changed: true}, 1, 1},
	{"ours", Case{Live: Present, Owner: Ours}, 0, 0},
	{"ours drifted in a managed field", Case{Live: Present, Owner: Ours, Drifted: true}, 1, 1},
	{"ours with extra fields", Case{Live: Present, Owner: Ours}, 0, 1},
	{"ours, new content", Case{Live: Present, Owner: Ours, Changed: true}, 1, 1},
	{"ours drifted, new content", Case{Live: Present, Owner: Ours, Drifted: true, Changed: true}, 1, 1},
	{"ours, a field moved and back", Case{Live: Present, Owner: Ours, Drifted: true}, 0, 0},
}

// The table has every decision for every strategy and every state on the member.
func TestDecide(t *testing.T) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		line := strings.TrimRight(fmt.Sprintln(cells...), "\n")
		if !strings.HasPrefix(line, "#") {
			line = strings.ReplaceAll(line, "|", "\t")
		}
		fmt.Fprintln(w, line)
	}
	row("# What the member has | is it read first? | operation | condition, and what is listed beside it")
	for _, strategy := range strategies() {
		row()
		row("#", describe(strategy))
		for _, state := range liveStates {
			c := state.facts
			c.Strategy = strategy
			do, why, read := ask(c, state)
			row(fmt.Sprintf("%s|%s|%s|%s", state.name, read, do, outcome(do, why, c, state)))
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/decide.txt", trimmed(out.String()))
}

// ask does what a member does: it calls Decide, reads and compares the object if Decide needs
// that, and calls it again.
func ask(c Case, state liveState) (do Operation, why Refusal, read string) {
	do, why = Decide(c)
	if do != NeedRead {
		return do, why, "-"
	}
	c.Compared, c.Diffs = true, state.diffs(c.Strategy)
	do, why = Decide(c)
	return do, why, "read"
}

func (s liveState) diffs(strategy api.ApplyStrategy) int {
	if strategy.ComparisonOption == api.FullComparison {
		return s.full
	}
	return s.partial
}

// outcome returns the reason of the condition, and whether differences are reported.
func outcome(do Operation, why Refusal, c Case, state liveState) string {
	diffs := state.diffs(c.Strategy)
	switch {
	case do == Report:
		return "DiffReported " + Reported(diffs, false).Reason
	case do == Refuse && why == WouldOverwrite:
		return "Applied " + Refused(why, "", false).Reason + ", diffs"
	case do == Refuse && why == Drifts:
		return "Applied " + Refused(why, "", false).Reason + ", drifts"
	case do == Refuse:
		return "Applied " + Refused(why, "", false).Reason
	case do == Nothing && diffs > 0 && c.Strategy.ComparisonOption == api.FullComparison:
		return "Applied Applied, drifts"
	case CompareAfter(c.Strategy) && do != Nothing:
		return "Applied Applied, compare after"
	default:
		return "Applied Applied"
	}
}

func strategies() []api.ApplyStrategy {
	var list []api.ApplyStrategy
	for _, takeOver := range []api.WhenToTakeOver{api.TakeOverAlways, api.TakeOverIfNoDiff, api.TakeOverNever} {
		for _, comparison := range []api.ComparisonOption{api.PartialComparison, api.FullComparison} {
			for _, apply := range []api.WhenToApply{api.ApplyAlways, api.ApplyIfNotDrifted} {
				list = append(list, api.ApplyStrategy{Type: api.ServerSideApply, WhenToTakeOver: takeOver, ComparisonOption: comparison, WhenToApply: apply})
			}
		}
	}
	for _, comparison := range []api.ComparisonOption{api.PartialComparison, api.FullComparison} {
		list = append(list, api.ApplyStrategy{Type: api.ReportDiff, WhenToTakeOver: api.TakeOverAlways, ComparisonOption: comparison, WhenToApply: api.ApplyAlways})
	}
	return list
}

func describe(s api.ApplyStrategy) string {
	if s.Type == api.ReportDiff {
		return fmt.Sprintf("type: ReportDiff, comparisonOption: %s", s.ComparisonOption)
	}
	return fmt.Sprintf("whenToTakeOver: %s, comparisonOption: %s, whenToApply: %s", s.WhenToTakeOver, s.ComparisonOption, s.WhenToApply)
}

func TestDecideKeepsOffWhatOthersOwn(t *testing.T) {
	tests := []struct {
		owner     Owner
		coOwned   bool
		allow     bool
		takeOver  api.WhenToTakeOver
		operation Operation
		why       Refusal
	}{
		{Foreign, true, false, api.TakeOverAlways, Refuse, OwnedBySome},
		{Foreign, true, false, api.TakeOverIfNoDiff, Refuse, OwnedBySome},
		{Foreign, true, false, api.TakeOverNever, Refuse, NotOurs},
		{Foreign, true, true, api.TakeOverAlways, TakeOver, ""},
		{Foreign, true, true, api.TakeOverIfNoDiff, NeedRead, ""},
		{OtherPlacement, false, false, api.TakeOverAlways, Refuse, OwnedBySome},
		{OtherPlacement, false, true, api.TakeOverAlways, Refuse, OwnedByPlacement},
		{OtherPlacement, true, true, api.TakeOverIfNoDiff, Refuse, OwnedByPlacement},
		{OtherPlacement, false, false, api.TakeOverNever, Refuse, NotOurs},
		{OtherFleet, false, false, api.TakeOverAlways, Refuse, OwnedBySome},
		{OtherFleet, false, true, api.TakeOverAlways, Refuse, OwnedByPlacement},
		{OtherFleet, false, true, api.TakeOverNever, Refuse, NotOurs},
		{Ours, true, false, api.TakeOverAlways, Refuse, CoOwned},
		{Ours, true, true, api.TakeOverAlways, Nothing, ""},
	}
	for _, test := range tests {
		c := Case{Live: Present, Owner: test.owner, CoOwned: test.coOwned,
			Strategy: api.ApplyStrategy{WhenToTakeOver: test.takeOver, AllowCoOwnership: test.allow}}
		if do, why := Decide(c); do != test.operation || why != test.why {
			t.Errorf("Decide(%+v) = %s %q, want %s %q", c, do, why, test.operation, test.why)
		}
		c.Strategy.Type = api.ReportDiff
		if do, _ := Decide(c); do != NeedRead {
			t.Errorf("a report of %+v = %s, want %s: it compares, whoever owns it", c, do, NeedRead)
		}
	}
}

// For every case: an object of which nothing is known is read first, reading it is enough to
// decide, a report never writes, and an object that is not owned is overwritten only if the
// strategy allows it.
func TestDecideIsSafe(t *testing.T) {
	everyCase(func(c Case) {
		do, why := Decide(c)
		writes := do == Create || do == Apply || do == TakeOver
		switch {
		case c.Live == Unseen && do != NeedRead:
			t.Errorf("Decide(%+v) = %s for what nobody has seen", c, do)
		case c.Live != Unseen && c.Compared && do == NeedRead:
			t.Errorf("Decide(%+v) wants to read what was read", c)
		case (do == Refuse) != (why != ""):
			t.Errorf("Decide(%+v) = %s %q", c, do, why)
		case c.Strategy.Type == api.ReportDiff && writes:
			t.Errorf("Decide(%+v) = %s, but only a report was wanted", c, do)
		case (do == Create) != (writes && c.Live == Absent):
			t.Errorf("Decide(%+v) = %s", c, do)
		case do == Apply && c.Owner != Ours:
			t.Errorf("Decide(%+v) = %s what is not ours", c, do)
		case do == TakeOver && (c.Owner != Foreign || c.Strategy.WhenToTakeOver == api.TakeOverNever || c.CoOwned && !c.Strategy.AllowCoOwnership):
			t.Errorf("Decide(%+v) = %s against the strategy", c, do)
		case do == TakeOver && c.Strategy.WhenToTakeOver == api.TakeOverIfNoDiff && (!c.Compared || c.Diffs > 0):
			t.Errorf("Decide(%+v) = %s what differs", c, do)
		case do == Apply && !c.Changed && c.Compared && c.Diffs > 0 && c.Strategy.WhenToApply == api.ApplyIfNotDrifted:
			t.Errorf("Decide(%+v) = %s over a drift", c, do)
		}
	})
}

func everyCase(f func(Case)) {
	both := []bool{false, true}
	for _, live := range []Presence{Unseen, Absent, Present} {
		for _, owner := range []Owner{Foreign, Ours, OtherPlacement, OtherFleet} {
			for bits := range 64 {
				for _, s := range strategies() {
					for _, s.AllowCoOwnership = range both {
						c := Case{Live: live, Owner: owner, Strategy: s,
							CoOwned: bits&1 > 0, Changed: bits&2 > 0, Drifted: bits&4 > 0, Compared: bits&8 > 0}
						if bits&16 > 0 {
							c.Diffs = 3
						}
						if bits&32 > 0 && s.Type != api.ReportDiff {
							c.Strategy.Type = api.ClientSideApply
						}
						f(c)
					}
				}
			}
		}
	}
}

func TestForce(t *testing.T) {
	tests := []struct {
		s    api.ApplyStrategy
		want bool
	}{
		{api.ApplyStrategy{}, true},
		{api.ApplyStrategy{Type: api.ClientSideApply}, true},
		{api.ApplyStrategy{Type: api.ServerSideApply}, false},
		{api.ApplyStrategy{Type: api.ServerSideApply, ServerSideApplyConfig: &api.ServerSideApplyConfig{}}, false},
		{api.ApplyStrategy{Type: api.ServerSideApply, ServerSideApplyConfig: &api.ServerSideApplyConfig{ForceConflicts: true}}, true},
	}
	for _, test := range tests {
		if got := Force(test.s); got != test.want {
			t.Errorf("Force(%+v) = %t", test.s, got)
		}
	}
}

func trimmed(text string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Join(lines, "\n")
}
