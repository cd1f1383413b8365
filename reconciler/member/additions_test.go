package member_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// What somebody adds to an object is reported and left as it is, without a write, whatever happens to the
// object afterwards: a commit, a reverted change, a restart. It ends once it is gone.
func TestAdditionsAreReportedAndLeft(t *testing.T) {
	const add = `{"data":{"more":"theirs"}}`
	run := func(name string, mode api.AdditionsMode, want string, writes int, do func(*watched)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook, _, a := newMutated(t)
				a.additions = mode
				a.start()
				time.Sleep(time.Minute)
				hook.applies()
				do(a)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := driftText(a.drifts()); got != want {
					t.Errorf("it is recorded as %s, want %s", got, want)
				}
				if n := hook.applies(); n != writes {
					t.Errorf("it was written %d times, want %d", n, writes)
				}
				a.stop()
			})
		})
	}
	edit := func(patch string) func(*watched) {
		return func(a *watched) { a.edit(patch); time.Sleep(time.Minute); synctest.Wait() }
	}
	then := func(all ...func(*watched)) func(*watched) {
		return func(a *watched) {
			for _, do := range all {
				do(a)
			}
		}
	}
	commit := func(a *watched) {
		a.hash = "h2"
		a.content = a.configMap()
		a.content.Object["data"] = map[string]any{"key": "new"}
		a.Set(a.works())
		time.Sleep(time.Minute)
		synctest.Wait()
	}
	restart := func(meanwhile func(*watched)) func(*watched) {
		return func(a *watched) {
			a.record.Drifts = map[api.PlacementKey][]protocol.Drift{{Name: "web"}: a.drifts()}
			a.stop()
			meanwhile(a)
			a.start()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
	}
	nothing := func(*watched) {}
	const added = "added once: /data/more=theirs by kubectl-edit"
	run("a key", api.AdditionsReport, added, 0, edit(add))
	run("a label", api.AdditionsReport, "added once: /metadata/labels/team=blue by kubectl-edit", 0, edit(`{"metadata":{"labels":{"team":"blue"}}}`))
	run("ignored", api.AdditionsIgnore, "", 0, edit(add))
	run("an annotation", api.AdditionsReport, "", 0, edit(`{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}`))
	run("a second one", api.AdditionsReport, "added 2 times: /data/last=x, /data/more=theirs by kubectl-edit", 0, then(edit(add), edit(`{"data":{"last":"x"}}`)))
	run("another value", api.AdditionsReport, "added once: /data/more=other by kubectl-edit", 0, then(edit(add), edit(`{"data":{"more":"other"}}`)))
	run("removed", api.AdditionsReport, "ended once: /data/more=theirs by kubectl-edit", 0, then(edit(add), edit(`{"data":{"more":null}}`)))
	run("with a change", api.AdditionsReport, "repaired once: /data/key=theirs by kubectl-edit; "+added, 1, edit(`{"data":{"key":"theirs","more":"theirs"}}`))
	run("before a change", api.AdditionsReport, "repaired once: /data/key=theirs by kubectl-edit; "+added, 1, then(edit(add), edit(`{"data":{"key":"theirs"}}`)))
	run("before a commit", api.AdditionsReport, added, 1, then(edit(add), commit))
	run("right before a commit", api.AdditionsReport, added, 1, then(func(a *watched) { a.edit(add) }, commit))
	run("before a restart", api.AdditionsReport, added, 0, then(edit(add), restart(nothing)))
	run("before a commit and a restart", api.AdditionsReport, added, 1, then(edit(add), commit, restart(nothing)))
	run("while nobody looked", api.AdditionsReport, added, 0, restart(edit(add)))
	run("removed while nobody looked", api.AdditionsReport, "ended once: /data/more=theirs by kubectl-edit", 1, then(edit(add), commit, restart(edit(`{"data":{"more":null}}`))))
	run("a held change beside", api.AdditionsReport, "held once: /data/key=theirs by kubectl-edit; "+added, 0, func(a *watched) {
		a.mode = api.DriftReport
		restart(edit(`{"data":{"key":"theirs","more":"theirs"}}`))(a)
	})
}

// What an object had when it was taken over is no addition.
func TestWhatIsThereAlreadyIsNoAddition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, direct, a := newMutated(t)
		a.additions = api.AdditionsReport
		o := a.configMap()
		o.Object["data"] = map[string]any{"key": "sent", "before": "x"}
		if _, err := mapsOf(t, direct).Create(t.Context(), o, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // times in managedFields are in whole seconds
		a.start()
		time.Sleep(time.Minute)
		a.Check()
		synctest.Wait()
		if got := a.drifts(); len(got) > 0 {
			t.Errorf("recorded: %s", driftText(got))
		}
		a.stop()
	})
}

// driftText prints records of drift, with their paths and first actors.
func driftText(all []protocol.Drift) string {
	var lines []string
	for _, d := range all {
		var paths []string
		for _, p := range d.Paths {
			paths = append(paths, p.Path+"="+p.ValueInMember)
		}
		times := "once"
		if d.Count != 1 {
			times = fmt.Sprintf("%d times", d.Count)
		}
		line := fmt.Sprintf("%s %s: %s", d.State, times, strings.Join(paths, ", "))
		if len(d.By) > 0 {
			line += " by " + d.By[0].Manager
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// An addition that is offered stays until somebody decides. If it is rejected, it is removed and nothing else, also if it is
// made again, and only as it was rejected. If Git adopts it, nothing is written.
func TestOfferedAdditionsAreAdoptedOrRemoved(t *testing.T) {
	const add = `{"data":{"more":"theirs"}}`
	reject := func(a *watched) {
		d := a.drifts()[len(a.drifts())-1]
		a.SetDriftDecisions(protocol.DriftDecisions{{Placement: api.PlacementKey{Name: "web"}, ID: d.ID, Addition: true}: {
			Fingerprint: protocol.Fingerprint(d.Paths, d.Digest), PutBack: true, Message: "https://git.example.com/pulls/1 was closed without merging",
		}})
		time.Sleep(time.Minute)
		synctest.Wait()
	}
	edit := func(patch string) func(*watched) {
		return func(a *watched) { a.edit(patch); time.Sleep(time.Minute); synctest.Wait() }
	}
	commit := func(data map[string]any) func(*watched) {
		return func(a *watched) {
			a.hash = "h2"
			a.content = a.configMap()
			a.content.Object["data"] = data
			a.Set(a.works())
			time.Sleep(time.Minute)
			synctest.Wait()
		}
	}
	suspend := func(reason string) func(*watched) {
		return func(a *watched) {
			w := a.work()
			w.Suspended = reason
			a.Set([]*work.Work{w})
			time.Sleep(time.Minute)
			synctest.Wait()
		}
	}
	const left = "added once: /data/more=theirs by kubectl-edit"
	tests := map[string]struct {
		do     []func(*watched)
		want   string
		data   string
		writes int
	}{
		"nobody decides":                 {[]func(*watched){edit(add)}, left, "map[key:sent more:theirs]", 0},
		"rejected":                       {[]func(*watched){edit(add), reject}, "repaired once: /data/more=theirs by kubectl-edit", "map[key:sent]", 1},
		"made once more":                 {[]func(*watched){edit(add), reject, edit(add), reject}, "repaired 2 times: /data/more=theirs by kubectl-edit", "map[key:sent]", 2},
		"rejected, then another":         {[]func(*watched){edit(add), reject, edit(`{"data":{"more":"other"}}`)}, "added 2 times: /data/more=other by kubectl-edit", "map[key:sent more:other]", 1},
		"rejected while it is suspended": {[]func(*watched){edit(add), suspend("maintenance"), reject}, left, "map[key:sent more:theirs]", 0},
		"resumed after that":             {[]func(*watched){edit(add), suspend("maintenance"), reject, suspend("")}, "repaired once: /data/more=theirs by kubectl-edit", "map[key:sent]", 1},
		"adopted":                        {[]func(*watched){edit(add), commit(map[string]any{"key": "sent", "more": "theirs"})}, "ended once: /data/more=theirs by kubectl-edit", "map[key:sent more:theirs]", 0},
		"another commit":                 {[]func(*watched){edit(add), commit(map[string]any{"key": "new"})}, left, "map[key:new more:theirs]", 1},
		"another commit, then rejected":  {[]func(*watched){edit(add), commit(map[string]any{"key": "new"}), reject}, "repaired once: /data/more=theirs by kubectl-edit", "map[key:new]", 2},
		"not offered any more": {[]func(*watched){edit(add), func(a *watched) {
			w := a.work()
			w.Drift = "report"
			a.Set([]*work.Work{w})
			time.Sleep(time.Minute)
			synctest.Wait()
			if d := a.drifts()[0]; d.Rule != "" {
				a.t.Errorf("its rule is %s", d.Rule)
			}
		}, reject}, left, "map[key:sent more:theirs]", 0},
		"beside a change that is held": {[]func(*watched){edit(`{"data":{"key":"theirs","more":"theirs"}}`), reject}, "held once: /data/key=theirs by kubectl-edit; repaired once: /data/more=theirs by kubectl-edit", "map[key:theirs]", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook, _, a := newMutated(t)
				a.additions, a.mode = api.AdditionsPropose, api.DriftPropose
				a.start()
				time.Sleep(time.Minute)
				hook.applies()
				for _, do := range test.do {
					do(a)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := driftText(a.drifts()); got != test.want {
					t.Errorf("it is recorded as %s, want %s", got, test.want)
				}
				if got := fmt.Sprint(get(t, mapsOf(t, a.config)).Object["data"]); got != test.data {
					t.Errorf("the data is %s, want %s", got, test.data)
				}
				if n := hook.applies(); n != test.writes {
					t.Errorf("it was written %d times, want %d", n, test.writes)
				}
				a.stop()
			})
		})
	}
}

// A controller that makes a rejected addition again and again is not answered each time: the removals get rarer, and the
// drift says who it is, how often the addition was removed, and when it is removed next.
func TestRejectedAdditionThatIsMadeAgainAndAgainIsRemovedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook, _, a := newMutated(t)
		a.additions = api.AdditionsPropose
		a.start()
		time.Sleep(time.Minute)
		hook.applies()
		said := ""
		for range 900 {
			a.edit(`{"data":{"more":"theirs"}}`)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if d := a.drifts()[0]; d.State == api.DriftAdded {
				a.SetDriftDecisions(protocol.DriftDecisions{{Placement: api.PlacementKey{Name: "web"}, ID: d.ID, Addition: true}: {
					Fingerprint: protocol.Fingerprint(d.Paths, d.Digest), PutBack: true, Message: "closed",
				}})
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if d := a.drifts()[0]; strings.Contains(d.Message, "keeps adding") {
				said = d.Message
			}
		}
		if n := hook.applies(); n < 6 || n > 12 {
			t.Errorf("within an hour it was removed %d times", n)
		}
		if !strings.HasPrefix(said, "kubectl-edit keeps adding what was rejected: removed ") || !strings.Contains(said, "next at ") {
			t.Errorf("the drift says %q", said)
		}
		a.stop()
	})
}
