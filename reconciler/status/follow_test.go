package status_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// observed returns a report of a member about its work, of a random kind.
func observed(t *rapid.T, cluster string, w *work.Work, at time.Time) protocol.WorkSeen {
	o := protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: at, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Removed: w.Remove, Total: len(w.Manifests)}}
	if len(w.Manifests) == 0 {
		return o
	}
	id := w.Manifests[0].ID
	fine, not := protocol.Verdict{OK: true}, protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: "0 of 1 replicas available"}
	switch rapid.SampledFrom([]string{"fine", "fine", "fine", "begun", "slow", "stuck", "failed", "untracked", "held", "drifted", "foreign"}).Draw(t, "what") {
	case "begun":
		o.Done = false
	case "untracked":
		o.Untrackable = 1
	case "slow":
		o.Exceptions = []protocol.ObjectState{{ID: id, Applied: fine, Available: not}}
	case "stuck":
		o.Exceptions = []protocol.ObjectState{{ID: id, Applied: fine, Available: not, Failure: "the image cannot be pulled"}}
	case "failed":
		o.Exceptions = []protocol.ObjectState{{ID: id, Applied: protocol.Verdict{Reason: api.ManifestApplyFailed, Cause: "no"}}}
	case "held":
		o.Removed, o.Incidents = false, &protocol.Incidents{BlockedDeletions: []protocol.BlockedDeletion{{ID: api.ID{Kind: "ConfigMap", Name: "old"}, Why: "it is guarded"}}}
	case "drifted":
		o.Incidents = &protocol.Incidents{Drifts: []protocol.Drift{{ID: id, State: api.DriftRepaired, Count: 1, FirstSeen: at, LastSeen: at}}}
	case "foreign":
		o.Exceptions = []protocol.ObjectState{{ID: id, Applied: fine, Available: fine, Diffs: []api.Difference{{}}, FirstSeen: at, LastSeen: at}}
	}
	return o
}

// Whatever members report, in any order, and whatever else changes: a report that shares with the one before what has not changed
// says what a report says that shares nothing.
func TestReportsSayWhatOnesFromScratchSay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newScene(t)
		s.in.ShortDecisions = rapid.Bool().Draw(rt, "short decisions")
		commit := func(n int) {
			draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, what) }
			s.commit(fmt.Sprint("v", n), world.Files(t, fmt.Sprintf("clusters a b %s\nnamespace one\nconfigmap one/x %s\nnamespace two\nplace one unavailable %s %s\nplace two %s\n",
				draw("clusters", "c", "c d", "d"), draw("value", "1", "2"), draw("unavailable", "1", "100%"), draw("policy", "", "", "pick 2"), draw("two", "", "pick 1", "external", "report"))))
		}
		probe := func(cluster string, healthy bool) {
			s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: cluster, At: s.now, Healthy: healthy, Error: map[bool]string{false: "no answer"}[healthy], Properties: map[string]string{}})
		}
		commit(0)
		for i := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s.now = s.now.Add(time.Second)
			cluster := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "cluster")
			switch step := rapid.SampledFrom([]string{"report", "report", "report", "report", "all", "all", "wait", "commit", "answers", "is silent", "is suspended", "is a copy"}).Draw(rt, "step"); {
			case step == "commit":
				commit(i + 1)
			case step == "wait":
				s.now = s.now.Add(70 * time.Second)
			case step == "is suspended":
				s.in.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: cluster}, Until: s.now.Add(time.Minute)})
			case step == "is a copy":
				s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: cluster, At: s.now, Healthy: true, UID: "1"})
			case step == "answers" || step == "is silent" || i == 0:
				probe(cluster, step != "is silent")
			default:
				for name, works := range s.last.Works {
					for _, w := range works {
						if step == "all" || name == cluster {
							s.in.Ledger.Fold(observed(rt, name, w, s.now))
						}
					}
				}
			}
			s.resolve()
			report := s.build()
			s.remember(report)
			scratch := status.Build(status.Input{Plan: s.last, InForce: s.in.InForce, Ledger: s.in.Ledger, Now: s.now})
			got, want := report.Whole(), scratch.Whole()
			for what, same := range map[string]bool{
				"placements": reflect.DeepEqual(got.Placements, want.Placements), "details": reflect.DeepEqual(got.Details, want.Details),
				"drifts": reflect.DeepEqual(got.Drifts, want.Drifts), "clusters": reflect.DeepEqual(withoutTimes(got.Clusters), withoutTimes(want.Clusters)),
			} {
				if !same {
					rt.Fatalf("the %s are not those of a report from scratch:\n%s\nwant\n%s", what, text(got), text(want))
				}
			}
		}
	})
}

// withoutTimes returns clusters without the times at which their conditions have changed. That of a cluster that has never answered
// is the time of the first report.
func withoutTimes(all []*api.MemberCluster) (out []*api.MemberCluster) {
	for _, c := range all {
		timeless := *c
		timeless.Status.Conditions = slices.Clone(c.Status.Conditions)
		for i := range timeless.Status.Conditions {
			timeless.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		out = append(out, &timeless)
	}
	return out
}

// A turn after a report about one cluster allocates little for placements about which nothing was reported, however many there are.
func TestAReportTakesNoMemoryForTheFleet(t *testing.T) {
	perTurn := func(placements int) uint64 {
		const turns = 100
		s := settledOn(t, 20, placements, "")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range turns {
			s.now = s.now.Add(time.Millisecond)
			s.says("c0003", s.last.Works["c0003"][7], i%2)
			s.resolve()
			s.remember(s.build())
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / turns
	}
	if few, many := perTurn(50), perTurn(400); many > few*3/2 {
		t.Errorf("with 400 placements a turn allocates %d bytes, with 50 it allocates %d", many, few)
	}
}

func text(r *status.Report) (out string) {
	for i, p := range r.Placements {
		out += fmt.Sprintf("%+v\n%+v\n", p.Status, r.Details[i])
	}
	return out + fmt.Sprintf("%+v", r.Drifts)
}
