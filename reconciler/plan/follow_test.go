package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// A reportingFleet is a fleet whose members send random reports, in random order.
type reportingFleet struct {
	*rapid.T
	tb       testing.TB
	in       Input
	last     *Plan
	loader   *hub.Loader
	commits  map[string]*hub.Snapshot
	down     map[string]bool
	followed *int
}

func newReportingFleet(t *rapid.T, tb testing.TB, followed *int) *reportingFleet {
	f := &reportingFleet{T: t, tb: tb, loader: hub.NewLoader(hub.Options{}), commits: map[string]*hub.Snapshot{}, down: map[string]bool{}, followed: followed,
		in: Input{Lost: map[string]error{}, Ledger: ledger.New(), Memo: NewMemo(), Now: noon, RepairAfter: 30 * time.Second, ShortDecisions: true}}
	f.in.Past, f.in.AvailableTimeout = f.commits, rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "timeout")
	f.in.Memo.Check(func(key api.PlacementKey, difference string) {
		if *f.followed++; difference != "" {
			t.Fatalf("%s is not what it is when it is planned again: %s", key, difference)
		}
	})
	f.commit()
	for _, c := range f.in.InForce.Clusters {
		f.probe(c.Name)
	}
	return f
}

func (f *reportingFleet) commit() {
	clusters := append([]string{"a"}, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"b", "c", "d"}), 1, 3, rapid.ID).Draw(f.T, "clusters")...)
	text := "clusters " + strings.Join(clusters, " ") + "\n"
	for _, n := range []string{"red", "green"} {
		text += fmt.Sprintf("namespace %s\nconfigmap %s/one %s\n", n, n, rapid.SampledFrom([]string{"1", "2"}).Draw(f.T, "value"))
	}
	draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(f.T, what) }
	text += fmt.Sprintf("place one of %s unavailable %s %s%s\n", draw("of", "red", "red", "red,green"), draw("unavailable", "1", "25%", "100%"), draw("policy", "", "", "pick 2 "), draw("how", "", "", "", "report", "goes-on"))
	if rapid.IntRange(0, 3).Draw(f.T, "window") == 0 {
		text += "place two of green\n" + `window noon "5 12 * * *" 1m` + "\n"
	} else {
		text += fmt.Sprintf("place two of green %s\n", draw("strategy", "period 0", "period 30", "external"))
	}
	name := fmt.Sprintf("v%d", len(f.commits)+1)
	head, err := f.loader.Load(hub.Commit{Hash: name, Time: f.in.Now}, world.Files(f.tb, text))
	if err != nil {
		f.Fatal(err)
	}
	f.commits[name], f.in.InForce = head, head
}

func (f *reportingFleet) probe(cluster string) {
	f.in.Ledger.Fold(protocol.ClusterSeen{Cluster: cluster, At: f.in.Now, Healthy: !f.down[cluster], Properties: map[string]string{}})
}

// report makes a member report something about one of its works.
func (f *reportingFleet) report(cluster string) {
	works := f.last.Works[cluster]
	if len(works) == 0 || f.down[cluster] {
		return
	}
	w := works[rapid.IntRange(0, len(works)-1).Draw(f.T, "work")]
	o := report(cluster, w, f.in.Now)
	switch what := rapid.SampledFrom([]string{"fine", "fine", "fine", "fine", "begun", "slow", "stuck", "failed", "pending", "untracked", "suspended", "held", "written"}).Draw(f.T, "what"); what {
	case "begun":
		o.Done = false
	case "untracked":
		o.Untrackable = 1
	case "held":
		o.Removed, o.Incidents = false, &protocol.Incidents{BlockedDeletions: []protocol.BlockedDeletion{{ID: api.ID{Kind: "ConfigMap", Name: "old"}, Why: "it is guarded"}}}
	case "written":
		o.Wrote = true
	case "slow", "stuck", "failed", "pending", "suspended":
		if len(w.Manifests) > 0 {
			o.Exceptions = []protocol.ObjectState{exception(what, w.Manifests[0])}
		}
	}
	f.in.Ledger.Fold(o)
}

// exception returns the state of an object that is not as it should be.
func exception(what string, m *work.Manifest) protocol.ObjectState {
	o := protocol.ObjectState{ID: m.ID, Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: "0 of 1 replicas available"}}
	switch what {
	case "stuck":
		o.Failure = "the image cannot be pulled"
	case "failed", "pending":
		o.Applied, o.Pending = protocol.Verdict{Reason: api.ManifestApplyFailed, Cause: "no"}, what == "pending"
	case "suspended":
		o.Applied = protocol.Verdict{Reason: api.Suspended, Cause: "it is suspended"}
	}
	return o
}

func (f *reportingFleet) step() {
	cluster := rapid.SampledFrom(f.in.InForce.Clusters).Draw(f.T, "cluster").Name
	switch rapid.SampledFrom([]string{"report", "report", "report", "report", "calm", "calm", "wait", "commit", "flip", "freeze", "suspend", "resume", "back"}).Draw(f.T, "step") {
	case "report":
		f.report(cluster)
	case "calm":
		for name, works := range f.last.Works {
			for _, w := range works {
				if !f.down[name] {
					f.in.Ledger.Fold(report(name, w, f.in.Now))
				}
			}
		}
	case "wait":
		f.in.Now = f.in.Now.Add(time.Duration(rapid.IntRange(1, 90).Draw(f.T, "seconds")) * time.Second)
	case "commit":
		f.commit()
	case "flip":
		f.down[cluster] = !f.down[cluster]
	case "freeze", "suspend":
		s := ledger.Suspension{Subject: ledger.Subject{Effect: ledger.Freezes}, By: "alice", Reason: "release week", Since: f.in.Now}
		if rapid.Bool().Draw(f.T, "of a cluster") {
			s.Subject = ledger.Subject{Cluster: cluster}
		}
		f.in.Ledger.Suspend(s)
	case "resume":
		for _, s := range slices.Clone(f.in.Ledger.Suspensions()) {
			f.in.Ledger.Resume(s.Subject, f.in.Now)
		}
		f.in.Ledger.ResumeRollout(api.PlacementKey{Name: "one"}, f.in.Now)
	case "back":
		f.in.Now = f.in.Now.Add(-time.Minute)
		f.in.Ledger.Rebase(f.in.Now)
	}
}

// turn plans, also without anything that is known of earlier plans.
func (f *reportingFleet) turn() {
	f.in.Now = f.in.Now.Add(time.Second)
	for _, c := range f.in.InForce.Clusters {
		f.probe(c.Name)
	}
	f.last = Resolve(f.in)
	fresh := f.in
	fresh.Memo = NewMemo()
	again := Resolve(fresh)
	for i, p := range f.last.Placements.All() {
		for j, c := range again.Placements.At(i).Clusters {
			if was := p.Clusters[j].Latest(); was.Hash != "" && was.Hash == c.Latest().Hash {
				c.SetLatest(placement.Revision{Commit: was.Commit, Hash: was.Hash, Labels: c.Latest().Labels}) // the commit is the first of several with the content, which an empty memo does not know
			}
		}
		if differs := p.difference(again.Placements.At(i)); differs != "" {
			f.Fatalf("%s is not what it is with an empty memo: %s", p.Key, differs)
		}
	}
	f.last.UpdateLedger(f.in.Ledger)
}

// Whatever members report, in any order, and whatever else changes: a plan of which only those clusters were planned again that
// members have reported about is the plan that is made of everything.
func TestFollowingIsPlanningAgain(t *testing.T) {
	followed := 0
	rapid.Check(t, func(rt *rapid.T) {
		f := newReportingFleet(rt, t, &followed)
		f.turn()
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			f.step()
			f.turn()
		}
	})
	if followed < 50 && !testing.Short() {
		t.Errorf("only %d plans followed an earlier one", followed)
	}
}
