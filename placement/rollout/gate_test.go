package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A stage with a soak is finished when its clusters have been available for that time without an interruption, also while other tasks
// are waited for. What is not known to be available begins again, and nothing passes by default.
func TestSoak(t *testing.T) {
	const long = 10 * time.Minute
	newFleet := func(tasks string) *stagedFleet {
		canary := stageOf("canary", 2, tasks, "a", "b")
		canary.Gates = []placement.RunGate{{Name: "soak", Spec: api.RolloutGateSpec{Soak: &api.SoakGate{Duration: "10m"}}}}
		f := newStagedFleet(canary, stageOf("prod", 1, "", "c"))
		f.next()
		f.up("a", "b")
		f.next()
		return f
	}
	for name, test := range map[string]struct {
		tasks  string
		events func(f *stagedFleet)
		passes bool
		says   string
	}{
		"all the time":  {"", func(f *stagedFleet) { f.pass(long) }, true, "available since"},
		"a second less": {"", func(f *stagedFleet) { f.pass(long - 5*time.Second) }, false, "which has to last until"},
		"lost":          {"", func(f *stagedFleet) { f.pass(long / 2); f.report("b", Unavailable); f.pass(long) }, false, "b not known to be available; the 10m begin again"},
		"lost and back": {"", func(f *stagedFleet) {
			f.pass(long / 2)
			f.report("b", Unavailable)
			f.next()
			f.up("b")
			f.pass(long / 2)
		}, false, "which has to last until"},
		"back for the whole time":   {"", func(f *stagedFleet) { f.report("b", Unavailable); f.next(); f.up("b"); f.pass(long) }, true, "available since"},
		"lost between two plans":    {"", func(f *stagedFleet) { f.pass(long - time.Minute); f.up("b"); f.pass(time.Minute) }, false, "which has to last until"},
		"unreachable":               {"", func(f *stagedFleet) { f.bindings["a"].Unreachable = true; f.pass(2 * long) }, false, "a not known to be available"},
		"suspended":                 {"", func(f *stagedFleet) { f.bindings["a"].Suspended = "maintenance"; f.pass(2 * long) }, false, "a not known to be available"},
		"not reported since":        {"", func(f *stagedFleet) { f.bindings["a"].Seen.UpSince = time.Time{}; f.pass(2 * long) }, false, "a not known to be available"},
		"nothing left":              {"", func(f *stagedFleet) { f.drop("a"); f.drop("b"); f.pass(2 * long) }, false, "has no cluster"},
		"stopped":                   {"", func(f *stagedFleet) { f.halted = "it is stopped"; f.pass(2 * long) }, false, "which has to last until"},
		"the content is not known":  {"", func(f *stagedFleet) { f.unknown = "loading"; f.pass(2 * long) }, false, "which has to last until"},
		"the approval is missing":   {"a", func(f *stagedFleet) { f.pass(long) }, false, "available since"},
		"lost before the approval":  {"a", func(f *stagedFleet) { f.pass(long); f.report("a", Failed); f.next(); f.approve(); f.pass(long) }, false, "not all clusters of the stage have been available"},
		"after a wait that is over": {"w", func(f *stagedFleet) { f.pass(long) }, true, "available since"},
	} {
		f := newFleet(test.tasks)
		test.events(f)
		f.next()
		stage := f.run.Stages[0]
		if got := !stage.Finished.IsZero(); got != test.passes || !strings.Contains(stage.Gates[0].Answer, test.says) {
			t.Errorf("%s: finished %v, the gate says %q; want %v, %q", name, got, stage.Gates[0].Answer, test.passes, test.says)
		}
		if f.bindings["c"].Assigned.Hash == "new" != test.passes {
			t.Errorf("%s: the next stage has the content: %v", name, !test.passes)
		}
	}
}

// The plan wakes when a soak ends, and what waits says for which gate, and since when.
func TestSoakIsWaitedFor(t *testing.T) {
	canary := stageOf("canary", 1, "a", "a")
	canary.Gates = []placement.RunGate{{Name: "soak", Spec: api.RolloutGateSpec{Soak: &api.SoakGate{Duration: "10m"}}}}
	f := newStagedFleet(canary, stageOf("prod", 1, "", "c"))
	f.next()
	f.up("a")
	p := f.next()
	if want := f.bindings["a"].Seen.UpSince.Add(10 * time.Minute); !p.Wake.Equal(want) {
		t.Errorf("the plan wakes at %v, want %v", p.Wake, want)
	}
	const want = "run r: stage prod waits for stage canary, which waits for the approval r-after-canary and for the gate soak: " +
		"available since 1970-01-01T00:16:41Z, which has to last until 1970-01-01T00:26:41Z"
	if got := p.Waiting[0].Message; got != want {
		t.Errorf("waits for %q, want %q", got, want)
	}
	if got := f.run.WaitsFor(); len(got) != 1 || !strings.HasPrefix(got[0], "the gate soak: available since") {
		t.Errorf("the run waits for %q", got)
	}
}

// up makes clusters available from now on.
func (f *stagedFleet) up(names ...string) {
	for _, name := range names {
		f.report(name, Available)
		f.bindings[name].Seen.UpSince = f.now
	}
}

// drop makes a cluster leave the placement.
func (f *stagedFleet) drop(name string) { f.bindings[name].Unscheduled = true }

// pass lets time pass, with a plan in the middle and one at the end.
func (f *stagedFleet) pass(d time.Duration) {
	f.now = f.now.Add(d / 2)
	f.next()
	f.now = f.now.Add(d / 2)
	f.next()
}

func (f *stagedFleet) approve() {
	f.approved = append(f.approved, api.ApprovalName("r", "canary", false))
}
