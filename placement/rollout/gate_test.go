package rollout

import (
	"fmt"
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
		f.checkGate(t, name, test.passes, test.says)
	}
}

// checkGate checks what the gate of the first stage says, and whether the stage has finished and the next one begun.
func (f *stagedFleet) checkGate(t *testing.T, name string, passes bool, says string) {
	t.Helper()
	stage := f.run.Stages[0]
	if got := !stage.Finished.IsZero(); got != passes || !strings.Contains(stage.Gates[0].Answer, says) {
		t.Errorf("%s: finished %v, the gate says %q; want %v, %q", name, got, stage.Gates[0].Answer, passes, says)
	}
	if f.bindings["c"].Assigned.Hash == "new" != passes {
		t.Errorf("%s: the next stage has the content: %v", name, !passes)
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
	if got := f.run.PendingGates(); len(got) != 1 || !strings.HasPrefix(got[0], "the gate soak: available since") {
		t.Errorf("the run waits for %q", got)
	}
}

// A gate that others answer passes when its answers have been good for its time, and fails when more of them are bad than it tolerates.
// Answers about other content, from before the clusters were updated, and those that cannot be evaluated let nothing pass.
func TestAskedGates(t *testing.T) {
	const minute = time.Minute
	for name, test := range map[string]struct {
		tolerated int
		long      string
		events    func(f *askedFleet)
		passes    bool
		says      string
	}{
		"not asked":             {0, "", func(f *askedFleet) { f.pass(time.Hour) }, false, "it has not been answered yet"},
		"a good answer":         {0, "", func(f *askedFleet) { f.answer(placement.GateGood) }, true, "because Good"},
		"a good one of several": {0, "2m", func(f *askedFleet) { f.answer(placement.GateGood) }, false, "because Good, for 0s of 2m"},
		"good for the time":     {0, "2m", func(f *askedFleet) { f.answers(3, minute, placement.GateGood) }, true, "because Good, for 2m"},
		"good with an outage":   {0, "2m", func(f *askedFleet) { f.answers(2, 5*minute, placement.GateGood) }, false, "for 0s of 2m"},
		"cannot be evaluated":   {0, "", func(f *askedFleet) { f.answers(3, minute, placement.GateUnknown) }, false, "cannot be evaluated since 1970-01-01T00:16:42Z: because Unknown"},
		"unknown in between": {0, "3m", func(f *askedFleet) {
			f.answers(2, minute, placement.GateGood)
			f.answer(placement.GateUnknown)
			f.answers(2, minute, placement.GateGood)
		}, false, "for 2m of 3m"},
		"unknown at the end":   {0, "1m", func(f *askedFleet) { f.answer(placement.GateGood); f.answer(placement.GateUnknown) }, false, "cannot be evaluated"},
		"a bad answer":         {0, "", func(f *askedFleet) { f.answer(placement.GateBad); f.answers(9, minute, placement.GateGood) }, false, "it has failed: because Bad; bad answers: 1, tolerated: 0"},
		"a tolerated one":      {1, "1m", func(f *askedFleet) { f.answer(placement.GateBad) }, false, "because Bad, for 0s of 60s; 1 of 1 tolerated failures"},
		"good after it":        {1, "1m", func(f *askedFleet) { f.answer(placement.GateBad); f.answers(2, minute, placement.GateGood) }, true, "because Good"},
		"more than tolerated":  {1, "1m", func(f *askedFleet) { f.answers(2, minute, placement.GateBad); f.answers(9, minute, placement.GateGood) }, false, "it has failed"},
		"about other content":  {0, "", func(f *askedFleet) { f.content = "older"; f.answer(placement.GateGood) }, false, "it has not been answered yet"},
		"about another stage":  {0, "", func(f *askedFleet) { f.stage = "prod"; f.answer(placement.GateGood) }, false, "it has not been answered yet"},
		"from an earlier time": {0, "", func(f *askedFleet) { f.earlier = time.Second; f.answer(placement.GateGood) }, false, "it has not been answered yet"},
		"while it is stopped":  {0, "", func(f *askedFleet) { f.halted = "it is stopped"; f.next(); f.answer(placement.GateGood) }, false, "it has not been answered yet"},
		"the clock is set back": {0, "1m", func(f *askedFleet) {
			f.answer(placement.GateGood)
			f.now = f.now.Add(-time.Hour)
			f.answer(placement.GateGood)
		}, false, "for 0s of 60s"},
		"a cluster joins": {0, "", func(f *askedFleet) { f.joinCanary("b"); f.answer(placement.GateGood) }, false, "not all clusters of the stage"},
		"it has joined":   {0, "", func(f *askedFleet) { f.joinCanary("b"); f.up("b"); f.next(); f.answer(placement.GateGood) }, true, "because Good"},
	} {
		f := newAskedFleet(test.tolerated, test.long)
		test.events(f)
		f.next()
		f.checkGate(t, name, test.passes, test.says)
	}
}

// A gate that runs a Job passes when one has completed on each cluster, and fails when more have failed than it tolerates, however often
// that is reported. What has ended is not forgotten when a cluster joins, or when the gate is asked again.
func TestJobGates(t *testing.T) {
	done := func(clusters ...string) (jobs []placement.GateJob) {
		for _, name := range clusters {
			jobs = append(jobs, placement.GateJob{Cluster: name, Completed: true})
		}
		return jobs
	}
	failed := func(n int) []placement.GateJob { return []placement.GateJob{{Cluster: "a", Failed: n}} }
	for name, test := range map[string]struct {
		tolerated int
		events    func(f *askedFleet)
		passes    bool
		says      string
		jobs      string
	}{
		"running":        {0, func(f *askedFleet) { f.jobs(placement.GateWaiting) }, false, "because Waiting", "[]"},
		"completed":      {0, func(f *askedFleet) { f.jobs(placement.GateGood, done("a")...) }, true, "because Good", "[{a 0 true}]"},
		"failed":         {0, func(f *askedFleet) { f.jobs(placement.GateBad, failed(1)...) }, false, "it has failed: because Bad; failed Jobs: 1, tolerated: 0", "[{a 1 false}]"},
		"tolerated":      {1, func(f *askedFleet) { f.jobs(placement.GateBad, failed(1)...) }, false, "because Bad; 1 of 1 tolerated failures", "[{a 1 false}]"},
		"reported twice": {1, func(f *askedFleet) { f.jobs(placement.GateBad, failed(1)...); f.jobs(placement.GateBad, failed(1)...) }, false, "because Bad; 1 of 1 tolerated failures", "[{a 1 false}]"},
		"one after it": {1, func(f *askedFleet) {
			f.jobs(placement.GateBad, failed(1)...)
			f.jobs(placement.GateWaiting, failed(1)...)
		}, false, "because Waiting; 1 of 1 tolerated failures", "[{a 1 false}]"},
		"another failure":    {1, func(f *askedFleet) { f.jobs(placement.GateBad, failed(1)...); f.jobs(placement.GateBad, failed(2)...) }, false, "failed Jobs: 2, tolerated: 1", "[{a 2 false}]"},
		"completed after it": {1, func(f *askedFleet) { f.jobs(placement.GateBad, failed(1)...); f.jobs(placement.GateGood, done("a")...) }, true, "because Good", "[{a 1 true}]"},
		"cannot be told":     {0, func(f *askedFleet) { f.jobs(placement.GateUnknown, done("a")...) }, false, "cannot be evaluated since 1970-01-01T00:16:42Z: because Unknown", "[{a 0 true}]"},
		"a cluster joins":    {0, func(f *askedFleet) { f.jobs(placement.GateWaiting, done("a")...); f.joinCanary("b") }, false, "not all clusters of the stage", "[{a 0 true}]"},
		"asked again":        {0, func(f *askedFleet) { f.jobs(placement.GateBad, failed(1)...); f.run.ResetFailedGates() }, false, "it has not been answered yet", "[{a 1 false}]"},
		"and fails again": {0, func(f *askedFleet) {
			f.jobs(placement.GateBad, failed(1)...)
			f.run.ResetFailedGates()
			f.jobs(placement.GateBad, failed(1)...)
			f.jobs(placement.GateBad, failed(2)...)
		}, false, "failed Jobs: 1, tolerated: 0", "[{a 2 false}]"},
	} {
		f := newAskedFleet(0, "")
		f.run.Stages[0].Gates[0].Spec = api.RolloutGateSpec{Job: &api.JobGate{ToleratedFailures: test.tolerated}}
		test.events(f)
		f.next()
		f.checkGate(t, name, test.passes, test.says)
		if got := fmt.Sprint(f.run.Stages[0].Gates[0].Asked.Jobs); got != test.jobs {
			t.Errorf("%s: known of Jobs is %s, want %s", name, got, test.jobs)
		}
	}
}

// Nothing is recorded again while the answer is the same, so that a Job that runs for long saves nothing.
func TestARunningJobIsNoNews(t *testing.T) {
	f := newAskedFleet(0, "")
	f.run.Stages[0].Gates[0].Spec = api.RolloutGateSpec{Job: &api.JobGate{}}
	for i, step := range []struct {
		verdict placement.GateVerdict
		jobs    []placement.GateJob
		news    bool
	}{
		{placement.GateWaiting, nil, true}, {placement.GateWaiting, nil, false},
		{placement.GateWaiting, []placement.GateJob{{Cluster: "a", Failed: 1}}, true}, {placement.GateWaiting, []placement.GateJob{{Cluster: "a", Failed: 1}}, false},
		{placement.GateUnknown, nil, true}, {placement.GateUnknown, nil, false},
	} {
		f.now = f.now.Add(time.Minute)
		if got := f.record(step.verdict, step.jobs...); got != step.news {
			t.Errorf("answer %d (%s): it changes something: %v", i, step.verdict, got)
		}
	}
}

// A failed gate stays failed, and with on-failure: continue the next stage begins all the same.
func TestAFailedGate(t *testing.T) {
	for _, continues := range []bool{false, true} {
		f := newAskedFleet(0, "")
		if continues {
			f.run.OnFailure = api.OnFailureContinue
		}
		f.answer(placement.GateBad)
		p := f.next()
		if len(p.Progress.FailedGates) != 1 && !continues {
			t.Errorf("failed are %v", p.Progress.FailedGates)
		}
		if got := !f.run.Stages[0].Finished.IsZero(); got != continues || !f.run.Stages[0].Gates[0].HasFailed() {
			t.Errorf("continues %v: the stage is finished: %v", continues, got)
		}
		if questions := f.run.Questions(api.PlacementKey{Name: "web"}); len(questions) > 0 {
			t.Errorf("continues %v: it is asked again: %v", continues, questions)
		}
	}
}

// An askedFleet has a stage with a gate that is answered by others.
type askedFleet struct {
	*stagedFleet
	content, stage string
	earlier        time.Duration
}

func newAskedFleet(tolerated int, long string) *askedFleet {
	canary := stageOf("canary", 2, "", "a")
	canary.Gates = []placement.RunGate{{Name: "errors", Spec: api.RolloutGateSpec{Prometheus: &api.PrometheusGate{GateSchedule: api.GateSchedule{Duration: long, ToleratedFailures: tolerated}}}}}
	f := &askedFleet{stagedFleet: newStagedFleet(canary, stageOf("prod", 1, "", "c")), stage: "canary"}
	f.next()
	f.up("a")
	f.next()
	return f
}

// answer gives an answer to the gate, and plans.
func (f *askedFleet) answer(v placement.GateVerdict) { f.answers(1, 0, v) }

// answers gives several answers to the gate, with this time between them, and plans after each.
func (f *askedFleet) answers(n int, interval time.Duration, v placement.GateVerdict) {
	for i := range n {
		if i > 0 {
			f.now = f.now.Add(interval - time.Second) // that a plan takes
		}
		f.jobs(v)
	}
}

// jobs gives an answer about Jobs, and plans.
func (f *askedFleet) jobs(v placement.GateVerdict, jobs ...placement.GateJob) {
	f.record(v, jobs...)
	f.next()
}

func (f *askedFleet) record(v placement.GateVerdict, jobs ...placement.GateJob) bool {
	key := api.PlacementKey{Name: "web"}
	f.run = f.run.Clone()
	return f.run.RecordAnswer(key, placement.GateAnswer{
		GateRound: placement.GateRound{Placement: key, Run: "r", Stage: f.stage, Gate: "errors", Content: f.content, Updated: f.run.Stages[0].Updated.Add(-f.earlier).UnixNano()},
		Verdict:   v, Text: "because " + string(v), At: f.now, Jobs: jobs,
	})
}

func (f *askedFleet) joinCanary(name string) {
	f.run = f.run.Clone()
	f.run.Stages[0].Clusters = append(f.run.Stages[0].Clusters, name)
	f.join(name)
	f.next()
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
