package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A stagedFleet is a fleet with a staged run, in virtual time.
type stagedFleet struct {
	run         placement.Run
	approved    []string
	halted      string
	unknown     string
	bindings    map[string]*Target
	now         time.Time
	repairAfter time.Duration
}

func newStagedFleet(stages ...placement.RunStage) *stagedFleet {
	f := &stagedFleet{run: placement.Run{Name: "r", Stages: stages, Started: time.Unix(1, 0)}, bindings: map[string]*Target{}, now: time.Unix(1000, 0)}
	for _, s := range stages {
		for _, name := range s.Clusters {
			f.join(name)
		}
	}
	return f
}

func (f *stagedFleet) join(name string) {
	f.bindings[name] = &Target{Binding: placement.Binding{Cluster: name, Assigned: placement.Revision{Commit: "v1", Hash: "old"}, WasAvailable: true},
		Latest: placement.Revision{Commit: "v2", Hash: "new"}, Seen: Seen{Hash: "old", Health: Available, Since: f.now}}
}

func (f *stagedFleet) next() Plan {
	f.run.Halted = f.halted
	in := Input{Wanted: len(f.bindings), Strategy: api.RolloutStrategy{Type: api.External}, Now: f.now, RepairAfter: f.repairAfter, Run: &StagedRun{Run: f.run, Approved: f.approved, Unknown: f.unknown}}
	for _, b := range f.bindings {
		in.Targets = append(in.Targets, *b)
	}
	p := Next(in)
	for _, a := range p.Assign {
		b := f.bindings[a.Cluster]
		if b.Assigned, b.WasAvailable = a.Revision, a.WasAvailable; a.Changed {
			b.AssignedAt, b.Seen = f.now, Seen{}
		}
	}
	for _, name := range p.Remove {
		delete(f.bindings, name)
	}
	f.run = *p.Run
	f.now = f.now.Add(time.Second)
	return p
}

func (f *stagedFleet) report(name string, h Health) {
	b := f.bindings[name]
	b.Seen = Seen{Hash: b.Assigned.Hash, Health: h, Since: f.now}
	if h == Failed {
		b.Seen.Failure = "no"
	}
}

// updated are the clusters that were given the content of the run, sorted.
func (f *stagedFleet) updated() (out []string) {
	for name, b := range f.bindings {
		if b.Assigned.Hash == "new" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func stageOf(name string, limit int, tasks string, clusters ...string) placement.RunStage {
	n := intstr.FromInt(limit)
	s := placement.RunStage{Clusters: clusters}
	s.Name, s.MaxConcurrency = name, &n
	for _, t := range tasks {
		switch t {
		case 'b':
			s.BeforeStageTasks = append(s.BeforeStageTasks, api.StageTask{Type: api.ApprovalTask})
		case 'a':
			s.AfterStageTasks = append(s.AfterStageTasks, api.StageTask{Type: api.ApprovalTask})
		case 'w':
			s.AfterStageTasks = append(s.AfterStageTasks, api.StageTask{Type: api.TimedWait, WaitTime: "1m"})
		}
	}
	return s
}

// Whatever happens, clusters of a stage are updated only when the stages before it are finished, never more at once than
// its maxConcurrency, and only with the approvals; a run that is halted, or whose content is not known, starts nothing.
func TestLawsOfStagedRuns(t *testing.T) {
	for seed := range uint64(400) {
		r, loading := rand.New(rand.NewPCG(seed, 34)), rand.New(rand.NewPCG(seed, 35))
		var stages []placement.RunStage
		for i := range 1 + r.IntN(3) {
			var clusters []string
			for c := range r.IntN(4) {
				clusters = append(clusters, fmt.Sprintf("s%dc%d", i, c))
			}
			stages = append(stages, stageOf(fmt.Sprintf("s%d", i), 1+r.IntN(3), []string{"", "a", "b", "w", "bwa"}[r.IntN(5)], clusters...))
		}
		f := newStagedFleet(stages...)
		for range 80 {
			for name, b := range f.bindings {
				switch r.IntN(6) {
				case 0, 1:
					f.report(name, Available)
				case 2:
					f.report(name, []Health{Unavailable, Failed, Unknown}[r.IntN(3)])
				case 3:
					b.Unreachable = !b.Unreachable
				}
			}
			if s := stages[r.IntN(len(stages))]; r.IntN(4) == 0 {
				f.approved = append(f.approved, api.ApprovalName("r", s.Name, r.IntN(2) == 0))
			}
			f.halted = ""
			if r.IntN(5) == 0 {
				f.halted = "it is stopped"
			}
			f.unknown = ""
			if loading.IntN(6) == 0 {
				f.unknown = "its commit is being loaded"
			}
			before := f.run.Clone()
			f.now = f.now.Add(time.Duration(r.IntN(30)) * time.Second)
			at := f.now
			checkStep(t, seed, before, f.next(), at, f)
			if t.Failed() {
				return
			}
		}
	}
}

func checkStep(t *testing.T, seed uint64, before placement.Run, p Plan, at time.Time, f *stagedFleet) {
	t.Helper()
	for _, a := range p.Assign {
		if !a.Changed {
			continue
		}
		if f.unknown != "" {
			t.Errorf("seed %d: %s was updated to a content that is not known", seed, a.Cluster)
		}
		for i, s := range p.Run.Stages {
			if !slices.Contains(s.Clusters, a.Cluster) {
				if s.Finished.IsZero() {
					t.Errorf("seed %d: %s was updated before stage %d was finished", seed, a.Cluster, i)
				}
				continue
			}
			if s.NeedsApproval(true) && !slices.Contains(f.approved, api.ApprovalName("r", s.Name, true)) {
				t.Errorf("seed %d: %s was updated without the approval of its stage", seed, a.Cluster)
			}
			if f.halted != "" && before.Stages[i].Finished.IsZero() {
				t.Errorf("seed %d: %s was updated while the run was stopped", seed, a.Cluster)
			}
			break
		}
	}
	for i, s := range p.Run.Stages {
		busy := 0
		for _, name := range s.Clusters {
			if b := f.bindings[name]; b != nil && b.Assigned.Hash == "new" && !b.WasAvailable {
				busy++
			}
		}
		if busy > s.Concurrency(len(s.Clusters)) {
			t.Errorf("seed %d: stage %d updates %d at once, more than %d", seed, i, busy, s.Concurrency(len(s.Clusters)))
		}
		if just := !s.Finished.IsZero() && before.Stages[i].Finished.IsZero(); just && len(s.Clusters) > 0 {
			switch {
			case busy > 0 || slices.ContainsFunc(s.Clusters, func(c string) bool { return !slices.Contains(f.updated(), c) }):
				t.Errorf("seed %d: stage %d was finished before all clusters were available", seed, i)
			case s.NeedsApproval(false) && !slices.Contains(f.approved, api.ApprovalName("r", s.Name, false)):
				t.Errorf("seed %d: stage %d was finished without its approval", seed, i)
			case at.Sub(s.Updated) < s.Wait():
				t.Errorf("seed %d: stage %d was finished before its wait was over", seed, i)
			}
		}
	}
}

// A failed update keeps the other clusters of the stage and the later stages from being updated until it recovers.
func TestStagedRunIsStuckWhileAnUpdateFails(t *testing.T) {
	f := newStagedFleet(stageOf("canary", 1, "", "a", "b"), stageOf("all", 5, "", "c"))
	f.next()
	f.report("a", Failed)
	p := f.next()
	const stuck = "The updateRun is stuck waiting for a cluster(s) in stage canary to finish updating, please check placement status for potential errors"
	want := []string{"run r: " + stuck, "run r: stage all waits for stage canary: " + stuck}
	var got []string
	for _, w := range p.Waiting {
		got = append(got, w.Message)
	}
	if !slices.Equal(got, want) {
		t.Errorf("waiting: %q, want %q", got, want)
	}
	f.report("a", Available)
	f.next()
	if got := f.updated(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after the recovery %v are updated", got)
	}
}

// A cluster whose new content waits for a window does not count towards maxConcurrency, and its stage is not done without it.
func TestADeferredClusterDoesNotCountTowardsConcurrency(t *testing.T) {
	f := newStagedFleet(stageOf("canary", 1, "", "a", "b"), stageOf("all", 1, "", "c"))
	f.bindings["a"].Deferral = Deferral{Why: "new content waits: the window is closed"}
	f.next()
	if got := f.updated(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%v are updated, while a is deferred", got)
	}
	f.report("b", Available)
	f.next()
	f.bindings["a"].Deferral = Deferral{}
	f.next()
	if got := f.updated(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v are updated, once a is not deferred", got)
	}
}

// A report of the old content does not finish a stage.
func TestStageIsDoneOnlyForItsContent(t *testing.T) {
	f := newStagedFleet(stageOf("canary", 1, "", "a"), stageOf("all", 1, "", "b"))
	f.next()
	f.bindings["a"].Seen = Seen{Hash: "old", Health: Available, Since: f.now}
	f.next()
	if got := f.updated(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v are updated", got)
	}
}

// What is no longer selected goes after the last stage, and the run ends when it is gone.
func TestStagedRunRemovesAfterTheLastStage(t *testing.T) {
	f := newStagedFleet(stageOf("canary", 1, "", "a"))
	f.join("gone")
	f.bindings["gone"].Unscheduled = true
	if p := f.next(); len(p.Remove) > 0 {
		t.Errorf("%v are removed before the last stage", p.Remove)
	}
	f.report("a", Available)
	if p := f.next(); !slices.Equal(p.Remove, []string{"gone"}) || !p.Run.Finished.IsZero() {
		t.Errorf("removed %v, finished %v", p.Remove, p.Run.Finished)
	}
	if p := f.next(); p.Run.Finished.IsZero() {
		t.Error("the run has not ended")
	}
}

// If no cluster is selected any more, all are cleaned up at once, also if the tasks of a stage whose clusters have left cannot be done.
func TestStagedRunRemovesAtOnceFromAll(t *testing.T) {
	f := newStagedFleet(stageOf("canary", 1, "a", "a"), stageOf("prod", 1, "", "b"))
	f.next()
	f.bindings["a"].Unscheduled = true
	if p := f.next(); len(p.Remove) > 0 {
		t.Errorf("removed from %v, although b waits for stage canary", p.Remove)
	}
	f.bindings["b"].Unscheduled = true
	if p := f.next(); !slices.Equal(p.Remove, []string{"a", "b"}) {
		t.Errorf("removed from %v, want a and b; waits: %v", p.Remove, p.Waiting)
	}
}

// A cluster that joins a finished stage gets the content at once.
func TestClusterThatJoinsAFinishedStage(t *testing.T) {
	f := newStagedFleet(stageOf("canary", 1, "", "a"), stageOf("all", 1, "b", "b"))
	f.next()
	f.report("a", Available)
	f.next()
	f.join("late")
	f.run.Stages[0].Clusters = append(f.run.Stages[0].Clusters, "late")
	f.next()
	if got := f.updated(); !slices.Equal(got, []string{"a", "late"}) {
		t.Errorf("%v are updated", got)
	}
}

func TestConcurrencyOfAStage(t *testing.T) {
	for name, test := range map[string]struct {
		value    intstr.IntOrString
		clusters int
		want     int
	}{
		"a number":              {intstr.FromInt(3), 10, 3},
		"more than there are":   {intstr.FromInt(15), 10, 15},
		"half":                  {intstr.FromString("50%"), 10, 5},
		"a third, rounded down": {intstr.FromString("33%"), 10, 3},
		"a quarter of seven":    {intstr.FromString("25%"), 7, 1},
		"at least one":          {intstr.FromString("10%"), 1, 1},
		"of none":               {intstr.FromString("50%"), 0, 1},
	} {
		s := placement.RunStage{Clusters: make([]string, test.clusters)}
		s.MaxConcurrency = &test.value
		if got := s.Concurrency(len(s.Clusters)); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// Leavers wait for a selected cluster with the content, but not for those in no stage that the strategy ignores. A share of
// a stage is one of the clusters that are still selected.
func TestLeaversAndShares(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		f := newStagedFleet(stageOf("all", 1, "", "a"))
		if ignores {
			f.run.Unmatched = api.UnmatchedIgnore
		}
		f.join("other")
		f.bindings["a"].Unscheduled = true
		f.next()
		if _, kept := f.bindings["a"]; kept == ignores {
			t.Errorf("the last cluster of the stage was removed: %t; ignored: %t", !kept, ignores)
		}
		f.next()
		if done := !f.run.Finished.IsZero(); done != ignores || ignores && !slices.Equal(f.run.Deletion.Clusters, []string{"a"}) {
			t.Errorf("ignored: %t: %+v", ignores, f.run)
		}
	}
	s := stageOf("all", 1, "", "a", "b", "c", "d")
	half := intstr.FromString("50%")
	s.MaxConcurrency = &half
	f := newStagedFleet(s)
	f.bindings["c"].Unscheduled, f.bindings["d"].Unscheduled = true, true
	if f.next(); len(f.updated()) != 1 {
		t.Errorf("%v are updated, half of two", f.updated())
	}
}

// While the content of a run is not known, such as after a restart, nothing changes: no cluster moves, and a wait does not begin
// again.
func TestNothingChangesWhileTheContentIsUnknown(t *testing.T) {
	f := newStagedFleet(stageOf("canary", 1, "w", "a"), stageOf("prod", 1, "", "b"))
	f.next()
	f.report("a", Available)
	f.next()
	since := f.run.Stages[0].Updated
	if since.IsZero() {
		t.Fatal("the canary is not updated")
	}
	latest := f.bindings["a"].Latest
	f.bindings["a"].Latest, f.bindings["b"].Latest = placement.Revision{}, placement.Revision{}
	f.unknown = "its commit is being loaded"
	f.now = f.now.Add(time.Hour)
	p := f.next()
	if !f.run.Stages[0].Updated.Equal(since) || !f.run.Stages[0].Finished.IsZero() || len(p.Waiting) != 1 || p.Waiting[0].Message != "run r: its commit is being loaded" {
		t.Errorf("%+v %+v", f.run.Stages, p.Waiting)
	}
	f.bindings["a"].Latest, f.bindings["b"].Latest, f.unknown = latest, latest, ""
	if f.next(); f.run.Stages[0].Finished.IsZero() || !slices.Equal(f.updated(), []string{"a", "b"}) {
		t.Errorf("%+v", f.run.Stages)
	}
}

// Unreachable clusters hold up their stage, unless the strategy says how many need not be waited for, of the stage and of the run. They get the
// content once they answer, whatever stage it is then.
func TestUnreachableClustersOfAStage(t *testing.T) {
	all := intstr.FromString("100%")
	stage := func(name string, clusters ...string) placement.RunStage {
		return placement.RunStage{StageConfig: api.StageConfig{Name: name, MaxConcurrency: &all}, Clusters: clusters}
	}
	for name, test := range map[string]struct {
		perStage, perRun string
		unreachable      []string
		want             string // the stages that are finished, and whether the run is
	}{
		"all answer":                     {"", "", nil, "one two run"},
		"without limits":                 {"", "", []string{"b"}, ""},
		"one of a stage":                 {"1", "", []string{"b"}, "one two run"},
		"two of a stage":                 {"1", "", []string{"a", "b"}, ""},
		"one of each stage":              {"1", "", []string{"b", "d"}, "one two run"},
		"a share of the stage, rounded":  {"60%", "", []string{"b"}, "one two run"},
		"a share that is less than one":  {"40%", "", []string{"b"}, ""},
		"one of the run":                 {"", "1", []string{"b"}, "one two run"},
		"two of the run, in two stages":  {"", "1", []string{"b", "d"}, "one"},
		"a share of the run":             {"", "50%", []string{"b", "d"}, "one two run"},
		"both limits, the stage decides": {"0", "2", []string{"b"}, ""},
		"both limits, the run decides":   {"1", "1", []string{"b", "d"}, "one"},
		"a stage is unreachable":         {"100%", "", []string{"c", "d"}, "one"},
		"everything is unreachable":      {"100%", "", []string{"a", "b", "c", "d"}, ""},
	} {
		f := newStagedFleet(stage("one", "a", "b"), stage("two", "c", "d"))
		f.run.UnreachablePerStage, f.run.UnreachablePerRun = test.perStage, test.perRun
		for _, c := range test.unreachable {
			f.bindings[c].Unreachable = true
		}
		finished := func() string {
			for range 10 {
				f.next()
				for _, b := range f.bindings {
					if b.Assigned.Hash == "new" && !b.Unreachable {
						b.Seen = Seen{Hash: "new", Health: Available, Since: f.now}
					}
				}
			}
			return f.finished()
		}
		if got := finished(); got != test.want {
			t.Errorf("%s: finished %q, want %q", name, got, test.want)
		}
		for _, c := range test.unreachable {
			if f.bindings[c].Assigned.Hash != "old" {
				t.Errorf("%s: %s has the content", name, c)
			}
		}
		if got := f.next().Progress.NotAwaited; test.want == "one two run" && !slices.Equal(got, test.unreachable) {
			t.Errorf("%s: %v are not waited for", name, got)
		}
		recorded := func() (all []string) {
			for _, s := range f.next().Run.Stages {
				all = append(all, s.Unreachable...)
			}
			return all
		}
		if got := recorded(); test.want == "one two run" && !slices.Equal(got, test.unreachable) {
			t.Errorf("%s: %v are recorded as unreachable", name, got)
		}
		for _, c := range test.unreachable {
			f.bindings[c].Unreachable = false
		}
		if got := recorded(); test.want == "one two run" && !slices.Equal(got, test.unreachable) {
			t.Errorf("%s: %v are recorded as unreachable after all have answered, without the content", name, got)
		}
		if got := finished(); got != "one two run" {
			t.Errorf("%s: finished %q after all have answered", name, got)
		}
		if got := recorded(); got != nil {
			t.Errorf("%s: %v are recorded as unreachable although all have the content", name, got)
		}
		for c, b := range f.bindings {
			if b.Assigned.Hash != "new" {
				t.Errorf("%s: %s has the old content after all have answered", name, c)
			}
		}
	}
}

// A cluster that is lost during its update is waited for a moment, and the plan asks for another turn when that has passed.
func TestALostClusterIsNotWaitedForAfterAMoment(t *testing.T) {
	f := newStagedFleet(placement.RunStage{StageConfig: api.StageConfig{Name: "one"}, Clusters: []string{"a", "b"}})
	f.run.UnreachablePerStage, f.repairAfter = "1", 30*time.Second
	f.next()
	f.report("a", Available)
	f.next()
	b := f.bindings["b"]
	b.Unreachable, b.Risked, b.BlockedSince = true, true, f.now
	if p := f.next(); !p.Run.Stages[0].Finished.IsZero() || !p.Wake.Equal(b.BlockedSince.Add(30*time.Second)) {
		t.Errorf("finished at %v, next turn at %v", p.Run.Stages[0].Finished, p.Wake)
	}
	f.now = b.BlockedSince.Add(30 * time.Second)
	if f.next(); f.run.Stages[0].Finished.IsZero() {
		t.Error("the stage is not finished")
	}
}

// A stage of which all clusters are unreachable says what it waits for.
func TestAStageWaitsUntilAClusterAnswers(t *testing.T) {
	f := newStagedFleet(stageOf("canary", 1, "", "a"), stageOf("prod", 1, "", "b"))
	f.run.UnreachablePerRun = "1"
	f.bindings["a"].Unreachable = true
	p := f.next()
	i := slices.IndexFunc(p.Waiting, func(w Waiting) bool { return w.Cluster == "b" })
	if want := "run r: stage prod waits for stage canary, which waits for one of its clusters to answer"; i < 0 || p.Waiting[i].Message != want {
		t.Errorf("%+v", p.Waiting)
	}
	if len(p.Progress.NotAwaited) > 0 {
		t.Errorf("%v are not waited for", p.Progress.NotAwaited)
	}
}

// With unmatched: ignore, a placement that moves to a cluster in no stage is removed from the other one after the last stage, not before its approval.
func TestStagedRunRemovesAfterTheLastStageFromClustersThatItReplaces(t *testing.T) {
	f := newStagedFleet(stageOf("prod", 1, "a", "a"))
	f.run.Unmatched = api.UnmatchedIgnore
	f.join("b")
	f.next()
	f.bindings["a"].Unscheduled = true
	if p := f.next(); len(p.Remove) > 0 {
		t.Errorf("removed from %v before the approval", p.Remove)
	}
	f.approved = []string{api.ApprovalName("r", "prod", false)}
	if p := f.next(); !slices.Equal(p.Remove, []string{"a"}) {
		t.Errorf("removed from %v, want a; waits: %v", p.Remove, p.Waiting)
	}
}
