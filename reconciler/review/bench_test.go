package review

import (
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/plan"
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

// BenchmarkChangeOfOneFile measures what a running daemon does for a commit that changes one
// file, and for a pull request with the same change.
func BenchmarkChangeOfOneFile(b *testing.B) {
	base := largeHub(b)
	s := newStage(b)
	s.begin(hash("b"), base)
	for range 3 {
		s.turn()
	}
	brake := member.Brake{Percent: 30, Objects: 10}
	load := func(b *testing.B, loader *hub.Loader, files fs.FS, hash string) *hub.Snapshot {
		head, err := loader.Load(hub.Commit{Hash: hash}, files)
		if err != nil {
			b.Fatal(err)
		}
		return head
	}
	b.Run("of=commit", func(b *testing.B) {
		loader := hub.NewLoader(hub.Options{})
		load(b, loader, base, hash("b"))
		memo, told := plan.NewMemo(), status.NewMemo()
		plan.Resolve(plan.Input{InForce: s.report.InForce, Past: s.past, Ledger: s.ledger, Now: s.now, Memo: memo, ShortDecisions: true})
		for n := 0; b.Loop(); n++ {
			head := load(b, loader, withChange(b, base, n+2), fmt.Sprintf("%040d", n))
			s.past[head.Commit.Hash] = head
			p := plan.Resolve(plan.Input{InForce: head, Past: s.past, Ledger: s.ledger, Now: s.now, Memo: memo, ShortDecisions: true})
			status.Build(status.Input{Plan: p, InForce: head, Ledger: s.ledger, Now: s.now, Memo: told})
		}
	})
	b.Run("of=pull-request", func(b *testing.B) {
		loader := hub.NewLoader(hub.Options{})
		fleet := forecast.NewRunning(s.report.InForce, s.report.Plan(), s.now)
		if _, _, err := planMerge(fleet, load(b, loader, base, hash("c")), brake); err != nil {
			b.Fatal(err)
		}
		for n := 0; b.Loop(); n++ {
			merged := load(b, loader, withChange(b, base, n+2), fmt.Sprintf("%040d", n))
			r, _, err := planMerge(fleet, merged, brake)
			if err != nil || r.totals().changed != 100 {
				b.Fatal(r, err)
			}
			r.body(subject{})
		}
	})
}
