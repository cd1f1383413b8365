package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// settle plans until nothing changes. Clusters with the content of the run are available, except those on which the update fails.
func (f *stagedFleet) settle(fails ...string) (last Plan) {
	for range 12 {
		last = f.next()
		for name, b := range f.bindings {
			if b.Assigned.Hash != "new" || b.Unreachable {
				continue
			}
			health := Available
			if slices.Contains(fails, name) {
				health = Failed
			}
			f.report(name, health)
			b.Seen.UpSince = b.AssignedAt
		}
	}
	return last
}

// finished are the stages that are finished, and "run" if it is.
func (f *stagedFleet) finished() string {
	var out []string
	for _, s := range f.run.Stages {
		if !s.Finished.IsZero() {
			out = append(out, s.Name)
		}
	}
	if !f.run.Finished.IsZero() {
		out = append(out, "run")
	}
	return strings.Join(out, " ")
}

// A failed update keeps a run from going on, unless the strategy says on how many clusters of the stage and of the run that may be. The clusters stay
// as they are, are recorded, and do not count any more once they have recovered.
func TestFailedClustersOfAStage(t *testing.T) {
	for name, test := range map[string]struct {
		perStage, perRun string
		fails            []string
		finished, stuck  string
	}{
		"none fails":                     {"", "", nil, "one two run", "[]"},
		"without limits":                 {"", "", []string{"a"}, "", "[a]"},
		"none may fail":                  {"0", "0", []string{"a"}, "", "[a]"},
		"one of a stage":                 {"1", "", []string{"a"}, "one two run", "[]"},
		"the last one":                   {"1", "", []string{"d"}, "one two run", "[]"},
		"two of a stage":                 {"1", "", []string{"a", "b"}, "", "[a b]"},
		"one of each stage":              {"1", "", []string{"b", "d"}, "one two run", "[]"},
		"a share of the stage, rounded":  {"60%", "", []string{"b"}, "one two run", "[]"},
		"a share that is less than one":  {"40%", "", []string{"b"}, "", "[b]"},
		"one of the run":                 {"", "1", []string{"b"}, "one two run", "[]"},
		"two of the run, in two stages":  {"", "1", []string{"b", "d"}, "one", "[d]"},
		"a share of the run":             {"", "50%", []string{"b", "d"}, "one two run", "[]"},
		"both limits, the stage decides": {"0", "2", []string{"b"}, "", "[b]"},
		"both limits, the run decides":   {"1", "1", []string{"b", "d"}, "one", "[d]"},
		"everything fails":               {"100%", "", []string{"a", "b", "c", "d"}, "", "[a b]"},
		"a whole stage fails":            {"100%", "", []string{"a", "c", "d"}, "one", "[c d]"},
	} {
		f := newStagedFleet(stageOf("one", 1, "", "a", "b"), stageOf("two", 1, "", "c", "d"))
		f.run.FailedPerStage, f.run.FailedPerRun = test.perStage, test.perRun
		p := f.settle(test.fails...)
		if got, stuck := f.finished(), fmt.Sprint(p.Progress.Failed); got != test.finished || stuck != test.stuck {
			t.Errorf("%s: finished %q, stuck on %s, want %q and %s", name, got, stuck, test.finished, test.stuck)
		}
		if got := f.run.FailedClusters(); test.stuck == "[]" && !slices.Equal(got, test.fails) {
			t.Errorf("%s: recorded as failed are %v", name, got)
		}
		for _, c := range test.fails {
			if b := f.bindings[c]; b.Assigned.Hash == "new" && slices.IndexFunc(p.Assign, func(a Assignment) bool { return a.Cluster == c && !a.Changed }) < 0 {
				t.Errorf("%s: %s is updated again", name, c)
			}
		}
		f.settle()
		if got := f.finished(); got != "one two run" || len(f.run.FailedClusters()) > 0 {
			t.Errorf("%s: finished %q after all have recovered, failed %v", name, got, f.run.FailedClusters())
		}
	}
}

// A failed cluster takes no place of maxConcurrency, and one that leaves does not count.
func TestAFailedClusterThatLeaves(t *testing.T) {
	f := newStagedFleet(stageOf("one", 1, "", "a", "b"), stageOf("two", 1, "", "c", "d"))
	f.run.FailedPerRun = "1"
	f.settle("a", "c")
	if got := f.finished(); got != "one" {
		t.Fatalf("finished %q", got)
	}
	f.bindings["a"].Unscheduled = true
	f.settle("c")
	if got := f.finished(); got != "one two run" || !slices.Equal(f.run.FailedClusters(), []string{"c"}) {
		t.Errorf("finished %q, failed %v", got, f.run.FailedClusters())
	}
}

// Unreachable clusters do not count as failed, and failed ones not as unreachable.
func TestUnreachableIsNotFailed(t *testing.T) {
	for name, test := range map[string]struct {
		unreachable, failed string
		want                string
	}{
		"both may be":           {"1", "1", "one run"},
		"none may fail":         {"2", "", ""},
		"none may be away":      {"", "2", ""},
		"none may be either":    {"", "", ""},
		"more than there are":   {"3", "3", "one run"},
		"shares of the cluster": {"34%", "34%", "one run"},
	} {
		f := newStagedFleet(stageOf("one", 1, "", "a", "b", "c"))
		f.run.UnreachablePerStage, f.run.FailedPerStage = test.unreachable, test.failed
		f.bindings["b"].Unreachable = true
		p := f.settle("a")
		if got := f.finished(); got != test.want {
			t.Errorf("%s: finished %q, want %q", name, got, test.want)
		}
		if test.want == "" && test.failed != "" && !slices.Equal(p.Progress.NotAwaited, []string{"a"}) {
			t.Errorf("%s: not waited for are %v", name, p.Progress.NotAwaited)
		}
	}
}

// Gates do not judge clusters on which the update may fail, and do not pass if that is all clusters. One that fails after it was available is
// judged.
func TestGatesOfAStageWithFailedClusters(t *testing.T) {
	all := intstr.FromString("100%")
	for name, test := range map[string]struct {
		fails     []string
		later     []string
		continues bool
		want      string
	}{
		"one fails":               {[]string{"a"}, []string{"a"}, false, "one run"},
		"all fail":                {[]string{"a", "b"}, []string{"a", "b"}, false, ""},
		"all fail, it continues":  {[]string{"a", "b"}, []string{"a", "b"}, true, "one run"},
		"it was available before": {nil, []string{"a"}, false, ""},
	} {
		s := stageOf("one", 2, "", "a", "b")
		s.MaxConcurrency = &all
		s.Gates = []placement.RunGate{{Name: "calm", Spec: api.RolloutGateSpec{Soak: &api.SoakGate{Duration: "1h"}}}}
		f := newStagedFleet(s)
		f.run.FailedPerStage = "100%"
		if test.continues {
			f.run.OnFailure = api.OnFailureContinue
		}
		f.settle(test.fails...)
		if got := f.finished(); got != "" {
			t.Fatalf("%s: finished %q before the gate has passed", name, got)
		}
		f.settle(test.later...)
		f.now = f.now.Add(2 * time.Hour)
		f.settle(test.later...)
		if got := f.finished(); got != test.want {
			t.Errorf("%s: finished %q, want %q: %s", name, got, test.want, f.run.Stages[0].Gates[0].Answer)
		}
	}
}
