package proposal

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

const smallFleet = `
clusters east/region=eu west/region=us
namespace web
configmap web/one plain
place web
`

// reporting is the report of a fleet on which an object is held as it is on some clusters.
func reporting(t *testing.T, files fs.FS, drift func(d *ledger.Drift), clusters ...string) *status.Report {
	t.Helper()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	head, err := hub.Load(hub.Commit{Hash: "c0ffee", Time: now}, files, hub.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Head: head, Ledger: ledger.New(), Now: now, Memo: plan.NewMemo()}
	for _, c := range head.Clusters {
		in.Ledger.Fold(ledger.ClusterSeen{Cluster: c.Name, At: now, Healthy: true})
	}
	p := plan.Resolve(in)
	p.UpdateLedger(in.Ledger)
	for _, cluster := range clusters {
		for _, w := range p.Works[cluster] {
			d := ledger.Drift{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, Version: "v1", State: api.DriftHeld, Count: 1, FirstSeen: now, LastSeen: now}
			drift(&d)
			in.Ledger.Fold(ledger.WorkSeen{Cluster: cluster, Placement: w.Placement, At: now, Revision: w.Revision, Done: true, Total: len(w.Manifests), Drifts: []ledger.Drift{d}})
		}
	}
	return status.Build(status.Input{Plan: plan.Resolve(in), Head: head, Ledger: in.Ledger, Now: now})
}

func valued(value string) func(d *ledger.Drift) {
	return func(d *ledger.Drift) {
		member, _ := json.Marshal(value)
		d.Paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/value", ValueInHub: "plain", ValueInMember: value}, MemberJSON: member}}
	}
}

// The same change is one offer, whichever clusters have it: as an override if some others
// have the object too.
func TestCollect(t *testing.T) {
	files := world.Files(t, smallFleet)
	load := func(files fs.FS) (*hub.Snapshot, error) { return hub.Load(hub.Commit{}, files, hub.Options{}) }
	offered := func(drift func(*ledger.Drift), clusters ...string) *offer {
		t.Helper()
		c := &collector{fleet: "shop", load: load}
		offers, verdicts := c.collect(reporting(t, files, drift, clusters...), files)
		if len(offers) != 1 || len(verdicts) != 0 {
			t.Fatalf("%d offers, verdicts %+v", len(offers), verdicts)
		}
		return offers[0]
	}
	one, both := offered(valued("x"), "east"), offered(valued("x"), "east", "west")
	if one.override == "" || both.override != "" || one.hash != both.hash {
		t.Errorf("override %q, then %q; hash %s, then %s", one.override, both.override, one.hash, both.hash)
	}
	if other := offered(valued("y"), "east"); other.hash == one.hash {
		t.Error("another value is the same change")
	}
	gone := offered(func(d *ledger.Drift) { d.Deleted = true }, "east", "west")
	if !gone.deleted || gone.changes[0].After != nil || len(gone.changes) != 1 {
		t.Errorf("the removal is %+v", gone.changes)
	}
}

// What cannot be offered is put back; but nothing is because a file cannot be read now.
func TestWhatCannotBeOffered(t *testing.T) {
	files := world.Files(t, smallFleet)
	tests := map[string]struct {
		load    error
		putBack bool
		message string
	}{
		"it does not load":  {&hub.LoadError{Problems: hub.Problems{{Severity: hub.Error, Message: "broken"}}}, true, "put back, since it cannot be offered as a pull request: the edited files would not load: broken"},
		"it cannot be read": {errors.New("disk error"), false, "the file cannot be read from the commit in force"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &collector{fleet: "shop", load: func(fs.FS) (*hub.Snapshot, error) { return nil, test.load }}
			_, verdicts := c.collect(reporting(t, files, valued("x"), "east", "west"), files)
			if len(verdicts) != 2 || verdicts[0].putBack != test.putBack || !strings.HasPrefix(verdicts[0].message, test.message) {
				t.Errorf("verdicts: %+v", verdicts)
			}
		})
	}
}
