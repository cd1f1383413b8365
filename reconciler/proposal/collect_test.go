package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

const smallFleet = `
clusters east/region=eu west/region=us
namespace web
configmap web/one plain
place web
`

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func loaded(t *testing.T, commit string, files fs.FS) *hub.Snapshot {
	t.Helper()
	head, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: commit, Time: now}, files)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// reporting returns the report of a fleet in which the drift of an object is held on some
// clusters.
func reporting(t *testing.T, files fs.FS, drift func(d *protocol.Drift), clusters ...string) *status.Report {
	t.Helper()
	in := holding(t, files, drift, clusters...)
	return status.Build(status.Input{Plan: plan.Resolve(in), InForce: in.InForce, Ledger: in.Ledger, Now: in.Now})
}

// restarted returns the report of such a fleet after a restart, before the commits of the
// clusters are loaded. Other files are in force.
func restarted(t *testing.T, in plan.Input, files fs.FS) *status.Report {
	t.Helper()
	in.InForce = loaded(t, "decade", files)
	in.Memo = plan.NewMemo()
	return status.Build(status.Input{Plan: plan.Resolve(in), InForce: in.InForce, Ledger: in.Ledger, Now: in.Now})
}

// holding returns the input of the plan for a fleet in which the drift of an object is held.
func holding(t *testing.T, files fs.FS, drift func(d *protocol.Drift), clusters ...string) plan.Input {
	t.Helper()
	in := plan.Input{InForce: loaded(t, "c0ffee", files), Ledger: ledger.New(), Now: now, Memo: plan.NewMemo()}
	for _, c := range in.InForce.Clusters {
		in.Ledger.Fold(protocol.ClusterSeen{Cluster: c.Name, At: now, Healthy: true})
	}
	p := plan.Resolve(in)
	p.UpdateLedger(in.Ledger)
	for _, cluster := range clusters {
		for _, w := range p.Works[cluster] {
			d := protocol.Drift{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, Version: "v1", State: api.DriftHeld, Count: 1, FirstSeen: now, LastSeen: now}
			drift(&d)
			in.Ledger.Fold(protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests), Incidents: &protocol.Incidents{Drifts: []protocol.Drift{d}}}})
		}
	}
	return in
}

func valued(value string) func(d *protocol.Drift) {
	return func(d *protocol.Drift) {
		member, _ := json.Marshal(value)
		d.Paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/value", ValueInHub: "plain", ValueInMember: value}, MemberJSON: member}}
	}
}

// Equal changes are one change, whichever clusters have them. If other clusters have the object
// too, the edit is an override.
func TestCollect(t *testing.T) {
	files := world.Files(t, smallFleet)
	load := func(files fs.FS) (*hub.Snapshot, error) {
		return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
	}
	offered := func(drift func(*protocol.Drift), clusters ...string) *change {
		t.Helper()
		c := &collector{fleet: "shop", load: load}
		offers, others := c.collect(reporting(t, files, drift, clusters...), files)
		if len(offers) != 1 || len(others) != 0 {
			t.Fatalf("%d offers, others %+v", len(offers), others)
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
	// What the report does not show of a change makes it another one as well.
	digest := func(digest string) func(*protocol.Drift) {
		return func(d *protocol.Drift) {
			valued("x")(d)
			d.Digest = digest
		}
	}
	if a, b := offered(digest("a"), "east"), offered(digest("b"), "east"); a.hash == b.hash || a.hash == one.hash {
		t.Errorf("changes that differ in what is not shown: %s and %s", a.hash, b.hash)
	}
	gone := offered(func(d *protocol.Drift) { d.Deleted = true }, "east", "west")
	if !gone.deleted || gone.files[0].After != nil || len(gone.files) != 1 {
		t.Errorf("the removal is %+v", gone.files)
	}
}

// A change that no edit can express is offered with the reason. A file that cannot be read at
// the moment is not such a reason.
func TestWhatCannotBeOffered(t *testing.T) {
	files := world.Files(t, smallFleet)
	tests := map[string]struct {
		load            error
		reason, message string
	}{
		"it does not load":  {&hub.LoadError{Problems: problem.List{{Severity: problem.Error, Message: "broken"}}}, "the edited files would not load: broken", ""},
		"it cannot be read": {errors.New("disk error"), "", "the file cannot be read from the commit in force"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &collector{fleet: "shop", load: func(fs.FS) (*hub.Snapshot, error) { return nil, test.load }}
			offers, others := c.collect(reporting(t, files, valued("x"), "east", "west"), files)
			if test.reason != "" && (len(offers) != 1 || !strings.HasPrefix(fmt.Sprint(offers[0].reason), test.reason) || offers[0].source.Line == 0) {
				t.Errorf("offers: %+v", offers)
			}
			if test.message != "" && (len(others) != 1 || len(others[0].change.drifts) != 2 || !strings.HasPrefix(others[0].message, test.message)) {
				t.Errorf("others: %+v", others)
			}
		})
	}
}

// After a restart, drift on a cluster that is behind the commit in force is not reverted before
// the assigned content is known, and the pull request stays open.
func TestUnknownContentPutsNothingBack(t *testing.T) {
	const fleet = `
clusters east west
namespace web
configmap web/one plain
configmap web/two %s
place web unavailable 1
`
	files, next := world.Files(t, fmt.Sprintf(fleet, "old")), world.Files(t, fmt.Sprintf(fleet, "new"))
	in := holding(t, files, valued("x"), "east", "west")
	load := func(files fs.FS) (*hub.Snapshot, error) {
		return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
	}
	p := newProposing(10)
	p.collector.load = load
	offers, _ := p.collector.collect(status.Build(status.Input{Plan: plan.Resolve(in), InForce: in.InForce, Ledger: in.Ledger, Now: in.Now}), files)
	p.after(t, 3*time.Minute, offers...)
	p.restart(10)
	p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) { return next, nil }
	p.collector.load = load
	p.report = restarted(t, in, next)
	p.group(t.Context())
	p.after(t, 3*time.Minute, p.follower.known.offers...)
	p.says(t, "east", "held: left as it is; what Git wants on east is not known yet")
	if got := p.forge.Pulls; len(got) != 1 || got[0].State != forge.Open {
		t.Errorf("pull requests: %+v", got)
	}

	in.Past = map[string]*hub.Snapshot{in.InForce.Commit.Hash: in.InForce}
	p.report = restarted(t, in, next)
	p.group(t.Context())
	p.after(t, 3*time.Minute, p.follower.known.offers...)
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
}

// A cluster that the rollout has not reached also counts as getting the object, even while its
// assigned content is not known. So a change that all other clusters have is still an override.
func TestClustersThatTheRolloutHasNotReached(t *testing.T) {
	const fleet = `
clusters east west
namespace web
configmap web/one plain
configmap web/two %s
place web unavailable 1
`
	files, next := world.Files(t, fmt.Sprintf(fleet, "old")), world.Files(t, fmt.Sprintf(fleet, "new"))
	for name, drift := range map[string]func(*protocol.Drift){"changed": valued("x"), "deleted": func(d *protocol.Drift) { d.Deleted = true }} {
		t.Run(name, func(t *testing.T) {
			in := holding(t, files, drift, "east", "west")
			w := plan.Resolve(in).Works["west"][0]
			in.Ledger.Fold(protocol.WorkSeen{Cluster: "west", Placement: w.Placement, At: in.Now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests)}})
			reached := in
			reached.Past = map[string]*hub.Snapshot{in.InForce.Commit.Hash: in.InForce}
			reached.InForce = loaded(t, "decade", next)
			plan.Resolve(reached).UpdateLedger(in.Ledger)
			c := &collector{fleet: "shop", load: func(files fs.FS) (*hub.Snapshot, error) {
				return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
			}}
			offers, others := c.collect(restarted(t, in, next), next)
			if len(offers) != 1 || len(others) != 0 {
				t.Fatalf("%d offers, others %+v", len(offers), others)
			}
			if got := offers[0]; !strings.HasPrefix(got.override, "ResourceOverride one-") {
				t.Errorf("override %q, %s: %s", got.override, got.files[0].Path, got.files[0].After)
			}
		})
	}
}
