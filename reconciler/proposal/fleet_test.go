package proposal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// A drifting is a proposing whose drifts come from the reports of a fleet.
type drifting struct {
	*proposing
	in    plan.Input
	files fstest.MapFS
	// loads counts how many times files were loaded. broken is the error if they cannot be.
	loads  int
	broken error
}

// newDrifting returns a fleet of some clusters, each with some ConfigMaps that all have
// different values.
func newDrifting(t *testing.T, clusters, configMaps int) *drifting {
	t.Helper()
	text := "namespace web\nplace web\nclusters"
	for i := range clusters {
		text += fmt.Sprintf(" member-%03d", i)
	}
	for i := range configMaps {
		text += fmt.Sprintf("\nconfigmap web/config-%d plain", i)
	}
	d := &drifting{proposing: newProposing(10), files: world.Files(t, text)}
	d.follower.tracker.cfg.Files = d.readFiles
	loader := hub.NewLoader(hub.Options{})
	d.collector.load = func(files fs.FS) (*hub.Snapshot, error) {
		if d.loads++; d.broken != nil {
			return nil, d.broken
		}
		return loader.Load(hub.Commit{}, files)
	}
	d.in = plan.Input{InForce: loaded(t, "c0ffee", d.files), Ledger: ledger.New(), Now: now, Memo: plan.NewMemo()}
	for _, c := range d.in.InForce.Clusters {
		d.in.Ledger.Fold(protocol.ClusterSeen{Cluster: c.Name, At: now, Healthy: true})
	}
	p := plan.Resolve(d.in)
	p.UpdateLedger(d.in.Ledger)
	for cluster, works := range p.Works {
		for _, w := range works {
			seen := protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests)}}
			var in protocol.Incidents
			for i := range configMaps {
				id := api.ID{Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprint("config-", i)}
				held := protocol.Drift{ID: id, Version: "v1", State: api.DriftHeld, Count: 1, FirstSeen: now, LastSeen: now}
				valued(cluster)(&held)
				in.Drifts = append(in.Drifts, held)
			}
			seen.Incidents = in.OrNil()
			d.in.Ledger.Fold(seen)
		}
	}
	d.report = status.Build(status.Input{Plan: plan.Resolve(d.in), InForce: d.in.InForce, Ledger: d.in.Ledger, Now: now})
	return d
}

func (d *drifting) readFiles(context.Context, string) (fs.FS, error) { return d.files, nil }

// step advances the time and runs one pass.
func (d *drifting) step(t *testing.T, after time.Duration) (next time.Duration) {
	t.Helper()
	d.forge.Now = d.forge.Now.Add(after)
	d.group(t.Context())
	return d.advance(t.Context(), d.forge.Now)
}

// counts returns how many drifts are reverted, how many wait for their edit, and how many are
// held for another reason.
func (d *drifting) counts() (putBack, waiting, held int) {
	for _, all := range d.resolved {
		for _, r := range all {
			switch {
			case r.PutBack:
				putBack++
			case r.Message == errNotTried.Error():
				waiting++
			default:
				held++
			}
		}
	}
	return putBack, waiting, held
}

// 120 different changes on 40 clusters at once: no pass computes more than a few edits, no
// change is reverted or lost meanwhile, no more pull requests are opened than allowed, and few
// requests are sent.
func TestManyDriftsOfAFleet(t *testing.T) {
	const clusters, configMaps, changes = 40, 3, 120
	d := newDrifting(t, clusters, configMaps)
	for pass := 1; ; pass++ {
		before := len(d.collector.edits)
		next := d.step(t, editPause)
		if edits := len(d.collector.edits) - before; edits > maxEdits || edits == 0 {
			t.Fatalf("pass %d made %d edits", pass, edits)
		}
		tried := min(changes, pass*maxEdits)
		if putBack, waiting, held := d.counts(); putBack != 0 || held != tried || waiting != changes-tried {
			t.Fatalf("after pass %d %d are put back, %d wait, and %d are held", pass, putBack, waiting, held)
		}
		if tried == changes {
			break
		}
		if next > editPause {
			t.Fatalf("the pass after the %dth comes in %s", pass, next)
		}
	}
	loads := d.loads
	for range 60 {
		d.step(t, 10*time.Second)
	}
	if d.loads != loads {
		t.Errorf("%d loads of files whose changes are known", d.loads-loads)
	}
	if n, cfg := len(d.forge.Pulls), d.follower.tracker.cfg; n != cfg.MaxOpen || d.forge.pushes > 2*cfg.MaxOpen || d.forge.requests > 5*cfg.MaxOpen {
		t.Errorf("%d pull requests with %d requests and %d pushes", n, d.forge.requests, d.forge.pushes)
	}
	for number := range int64(d.follower.tracker.cfg.MaxOpen) {
		d.forge.End(number+1, forge.Closed)
	}
	d.step(t, time.Minute)
	putBack, waiting, held := d.counts()
	if len(d.forge.Pulls) != 2*d.follower.tracker.cfg.MaxOpen || putBack != d.follower.tracker.cfg.MaxOpen || waiting != 0 || putBack+held != changes {
		t.Errorf("after %d were closed: %d pull requests, %d put back, %d wait, %d held", d.follower.tracker.cfg.MaxOpen, len(d.forge.Pulls), putBack, waiting, held)
	}
}

// Changes whose files cannot be read at the moment do not prevent others from being tried.
func TestChangesThatCannotBeReadKeepNoOthers(t *testing.T) {
	d := newDrifting(t, maxEdits+5, 1)
	d.broken = errors.New("disk error")
	d.step(t, editPause)
	d.broken = nil
	d.step(t, editPause)
	if putBack, waiting, held := d.counts(); putBack+waiting > maxEdits-5 || held < maxEdits {
		t.Errorf("%d are put back, %d wait, and %d are held", putBack, waiting, held)
	}
	d.step(t, editPause)
	d.step(t, 3*time.Minute)
	d.step(t, time.Minute)
	if putBack, waiting, _ := d.counts(); putBack+waiting > 0 || len(d.follower.known.undecided()) > 0 || len(d.forge.Pulls) != d.follower.tracker.cfg.MaxOpen {
		t.Errorf("%d are put back, %d wait, %d are undecided, and %d are offered", putBack, waiting, len(d.follower.known.undecided()), len(d.forge.Pulls))
	}
}
