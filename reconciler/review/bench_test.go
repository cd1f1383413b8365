package review

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// largeHub returns a hub with 1,000 placements on 100 clusters.
func largeHub(t testing.TB) fstest.MapFS {
	var text strings.Builder
	text.WriteString("clusters")
	for i := range 100 {
		fmt.Fprintf(&text, " c%03d", i)
	}
	text.WriteString("\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "namespace n%04d\nconfigmap n%04d/one v1\nplace n%04d unavailable 100%%\n", i, i, i)
	}
	return files(t, text.String())
}

// withChange returns a hub in which one file has another text.
func withChange(t testing.TB, base fstest.MapFS, n int) fstest.MapFS {
	out := maps.Clone(base)
	maps.Copy(out, files(t, fmt.Sprintf("configmap n0500/one v%d\n", n)))
	return out
}

// BenchmarkChangeOfOneFile measures what a running daemon does for a commit that changes one file,
// until every cluster has its new work, and what it does for a pull request with the same change.
func BenchmarkChangeOfOneFile(b *testing.B) {
	base := largeHub(b)
	s := newSimulatedFleet(b)
	statusMemo := status.NewMemo()
	turn := func(head *hub.Snapshot) {
		s.past[head.Commit.Hash] = head
		s.ledger.SetInForce(head.Commit.Hash)
		p := plan.Resolve(plan.Input{InForce: head, Past: s.past, Ledger: s.ledger, Now: s.now, Memo: s.memo, ShortDecisions: true})
		p.UpdateLedger(s.ledger)
		s.report = statusMemo.Build(status.Input{Plan: p, InForce: head, Ledger: s.ledger, Now: s.now})
		s.report.UpdateLedger(s.ledger)
	}
	// reported folds the reports of all clusters that have applied a placement into the ledger.
	reported := func(key api.PlacementKey) {
		for cluster, works := range s.report.Plan().Works {
			i := slices.IndexFunc(works, func(w *work.Work) bool { return w.Placement == key })
			s.ledger.Fold(protocol.WorkSeen{Cluster: cluster, Placement: key, At: s.now, WorkState: protocol.WorkState{Revision: works[i].Revision, Done: true, Total: len(works[i].Manifests)}})
		}
	}
	loader := hub.NewLoader(hub.Options{})
	load := func(b *testing.B, files fs.FS, hash string) *hub.Snapshot {
		head, err := loader.Load(hub.Commit{Hash: hash, Time: s.now}, files)
		if err != nil {
			b.Fatal(err)
		}
		return head
	}
	s.begin(hash("b"), base)
	head := load(b, base, hash("b"))
	turn(head)
	turn(head)
	for _, p := range head.Placements {
		reported(p.Key)
	}
	turn(head)
	commit := func(b *testing.B, n int) {
		delete(s.past, fmt.Sprintf("%040d", n-2)) // no cluster is assigned to it any more
		head = load(b, withChange(b, base, n), fmt.Sprintf("%040d", n))
		turn(head)
	}
	answer := func(b *testing.B) {
		for cluster, works := range s.report.Plan().Works {
			if w := works[500]; w.Revision.Commit != head.Commit.Hash {
				b.Fatal(cluster, w.Revision)
			}
		}
		reported(api.PlacementKey{Name: "n0500"})
		turn(head)
	}
	commit(b, 2)
	answer(b)
	b.Run("of=commit", func(b *testing.B) {
		for n := 3; b.Loop(); n++ {
			commit(b, n)
			b.StopTimer()
			answer(b)
			b.StartTimer()
		}
	})
	b.Run("of=pull-request", func(b *testing.B) {
		limit := member.DeletionLimit{Percent: 30, Objects: 10}
		of := subject{lineURL: func(commit, path string, line int) string { return fmt.Sprint(commit, "/", path, "#L", line) }}
		loader = hub.NewLoader(hub.Options{}) // a daemon has one for pull requests
		fleet := forecast.NewRunning(head, s.report.Plan(), s.now)
		if _, _, err := planMerge(fleet, load(b, base, hash("c")), limit); err != nil {
			b.Fatal(err)
		}
		for n := 0; b.Loop(); n++ {
			merged := load(b, withChange(b, base, -n), fmt.Sprintf("%040x", 1<<40+n))
			r, _, err := planMerge(fleet, merged, limit)
			if t := r.totals(); err != nil || t.changed != 1 || t.clusters != 100 {
				b.Fatalf("%+v, %v", t, err)
			}
			r.body(of)
		}
	})
}
