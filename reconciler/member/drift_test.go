package member

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// After a restart an agent continues the drifts that the ledger has: each is reported as before,
// and is neither new nor counted once more when it is observed again.
func TestRestoredDriftsContinue(t *testing.T) {
	seen := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	recorded := func(name string, state api.DriftState) protocol.Drift {
		return protocol.Drift{
			ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: name}, Version: "v1", State: state, Count: 3, FirstSeen: seen, Since: seen, LastSeen: seen,
			Paths: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/key", ValueInMember: "2", ValueInHub: "1"}}},
		}
	}
	shop := api.PlacementKey{Namespace: "shop", Name: "web"}
	drifts := map[api.PlacementKey][]protocol.Drift{
		web:  {recorded("one", api.DriftHeld), recorded("two", api.DriftEnded)},
		shop: {recorded("one", api.DriftContested)},
	}
	for range 60 { // more than an agent remembers
		drifts[shop] = append(drifts[shop], recorded(fmt.Sprintf("other-%02d", len(drifts[shop])), api.DriftRepaired))
	}
	given := len(drifts[shop])
	a := New(Config{})
	a.SetRecord(protocol.MemberRecord{Drifts: drifts})

	if got, want := a.drifted.View().List(web), drifts[web]; !reflect.DeepEqual(got, want) {
		t.Errorf("restored: %+v\nwant %+v", got, want)
	}
	if of := a.drifted.View().List(shop); len(of) >= given || a.drifted.View().Change(shop, recorded("one", "").ID).State != api.DriftContested {
		t.Errorf("of %d drifts %d are remembered, and not those that still differ first", given, len(of))
	}
	if len(drifts[shop]) != given || drifts[web][0].Count != 3 {
		t.Error("what was given is changed")
	}

	observed := &work.Manifest{Object: &api.Object{ID: recorded("one", "").ID, Content: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
	a.drifted.Observed(web, observed, api.DriftHeld, protocol.Drift{Rule: "propose"}, false)
	d := a.drifted.View().Change(web, observed.ID)
	if d.Count != 3 || !d.FirstSeen.Equal(seen) || !d.Since.Equal(seen) || !d.LastSeen.After(seen) || len(d.Paths) != 1 {
		t.Errorf("observed again: %+v", d)
	}
	if drifts[web][0].Rule != "" {
		t.Error("what was given is changed")
	}
}

// A write that changed nothing is neither recorded as drift nor counted for a contest.
func TestWriteWithoutAChangeIsNoRepair(t *testing.T) {
	s := sessionAt(t, http.NotFoundHandler())
	m := &work.Manifest{Object: &api.Object{ID: cm("one"), Hash: "h", Content: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
	tk := apply.Task{Object: desired.Object{Placement: web, Manifest: m}, Item: &inventory.Item{Kind: "ConfigMap", Version: "v1", Namespace: "default", Name: "one", Hash: "h", UID: "1"}, Drift: true}
	found := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}
	outcomeAt := func(version uint64) *apply.Outcome {
		return &apply.Outcome{Task: tk, Snapshot: apply.Snapshot{Live: found}, Before: protocol.Drift{Generation: 1},
			Written: &observed.Object{Version: version}}
	}
	s.drifts.countUndone(tk, &observed.Object{Version: 7})
	if s.drift.Undone(cm("one")).Total != 1 {
		t.Fatalf("undone: %+v", s.drift.Undone(cm("one")))
	}
	s.drifts.recordOutcome(outcomeAt(7))
	if got := s.drift.List(web); len(got) > 0 || s.drift.Undone(cm("one")).Total != 0 {
		t.Errorf("it remembers %+v, and counts %d", got, s.drift.Undone(cm("one")).Total)
	}
	s.drifts.countUndone(tk, &observed.Object{Version: 8})
	s.drifts.recordOutcome(outcomeAt(9))
	if got := s.drift.Change(web, cm("one")); got.State != api.DriftRepaired || got.Count != 1 || s.drift.Undone(cm("one")).Total != 1 {
		t.Errorf("it remembers %+v, and counts %d", got, s.drift.Undone(cm("one")).Total)
	}
}

// Fields that a cluster alters at each apply are recorded until it does not alter them any
// more. An earlier record of the object continues to count.
func TestAlteredFieldsAreRecordedUntilTheyEnd(t *testing.T) {
	s := sessionAt(t, http.NotFoundHandler())
	m := &work.Manifest{Object: &api.Object{ID: cm("one"), Content: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
	tk := apply.Task{Object: desired.Object{Placement: web, Manifest: m}}
	paths := []api.PatchDetail{{Path: "/data/key", ValueInHub: "a", ValueInMember: "b"}}
	s.drifts.state.Loaded(web, protocol.Drift{ID: cm("one"), State: api.DriftRepaired, Count: 3})
	s.drifts.recordAltered(tk, 1, nil)
	if got := s.drift.Change(web, cm("one")); got.State != api.DriftRepaired {
		t.Errorf("nothing altered: %+v", got)
	}
	s.drifts.recordAltered(tk, 1, paths)
	if got := s.drift.Change(web, cm("one")); got.State != api.DriftAltered || got.Count != 3 || len(s.drift.Altered(web, cm("one"))) != 1 {
		t.Errorf("altered: %+v", got)
	}
	s.drifts.recordAltered(tk, 1, nil)
	if got := s.drift.Change(web, cm("one")); got.State != api.DriftEnded || got.Message != "" || s.drift.Altered(web, cm("one")) != nil {
		t.Errorf("over: %+v", got)
	}
}

// What is recorded of the drift of an object, and counted as a new drift, depends on whether the
// object was written, left or found as it should be.
func TestRecordedDrift(t *testing.T) {
	path := []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/key", ValueInHub: "git", ValueInMember: "edited"}}}
	written := &observed.Object{Version: 8}
	live := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}
	replicas := []autoscaler.Rival{{Rival: diff.Rival{Path: "/spec/replicas", Wanted: "2", Value: "5"}, Name: "the HorizontalPodAutoscaler web"}}
	applied := &inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one", Hash: "hash"}
	tests := map[string]struct {
		work    work.Work
		was     api.DriftState // recorded before
		outcome apply.Outcome
		want    api.DriftState // recorded afterwards
		count   int            // how often the object has drifted
		undone  float64        // the metric
		repairs string         // the change that is counted as reverted
	}{
		"as in Git":                     {outcome: apply.Outcome{Task: apply.Task{Item: applied}}},
		"reverted":                      {outcome: apply.Outcome{Task: apply.Task{Item: applied, Drift: true}, Written: written, Snapshot: apply.Snapshot{Live: live}, Before: protocol.Drift{Paths: path}}, want: api.DriftRepaired, count: 1, repairs: "edited"},
		"a deletion is reverted":        {outcome: apply.Outcome{Task: apply.Task{Item: applied, Drift: true}, Written: written, Before: protocol.Drift{Deleted: true}}, want: api.DriftRepaired, count: 1, repairs: "deleted"},
		"a held drift is reverted":      {was: api.DriftHeld, outcome: apply.Outcome{Task: apply.Task{Item: applied, Drift: true}, Written: written, Snapshot: apply.Snapshot{Live: live}, Before: protocol.Drift{Paths: path}}, want: api.DriftRepaired, repairs: "edited"},
		"left":                          {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Diffs: path}, want: api.DriftStanding, count: 1, undone: 1},
		"left as before":                {was: api.DriftStanding, outcome: apply.Outcome{Task: apply.Task{Item: applied}, Diffs: path}, want: api.DriftStanding},
		"held":                          {outcome: apply.Outcome{Task: apply.Task{Item: applied, Drift: true, Step: decide.Hold}, Diffs: path}, want: api.DriftHeld, count: 1, undone: 1},
		"held as before":                {was: api.DriftHeld, outcome: apply.Outcome{Task: apply.Task{Item: applied, Drift: true, Step: decide.Hold}, Diffs: path}, want: api.DriftHeld},
		"a deletion is held":            {outcome: apply.Outcome{Task: apply.Task{Item: applied, Drift: true, Step: decide.Hold}, Gone: true}, want: api.DriftHeld, count: 1, undone: 1},
		"scaled by an autoscaler":       {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Snapshot: apply.Snapshot{Live: live, Rivals: replicas}}, want: api.DriftContested, count: 1},
		"scaled as before":              {was: api.DriftContested, outcome: apply.Outcome{Task: apply.Task{Item: applied}, Snapshot: apply.Snapshot{Live: live, Rivals: replicas}}, want: api.DriftContested},
		"altered by the server":         {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Written: written, Altered: []api.PatchDetail{path[0].PatchDetail}}, want: api.DriftAltered},
		"no longer altered":             {was: api.DriftAltered, outcome: apply.Outcome{Task: apply.Task{Item: applied}, Written: written}, want: api.DriftEnded},
		"differs, and was not applied":  {outcome: apply.Outcome{Task: apply.Task{Item: &inventory.Item{}}, Diffs: path}},
		"differs, and is not ours":      {outcome: apply.Outcome{Diffs: path}},
		"differs, and is only compared": {work: work.Work{Strategy: api.ApplyStrategy{Type: api.ReportDiff}}, outcome: apply.Outcome{Task: apply.Task{Item: applied}, Diffs: path}},
		"could not be compared":         {outcome: apply.Outcome{Task: apply.Task{Item: applied}, Err: errors.New("no"), Diffs: path}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, m := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"}), oneManifest()
			test.work.Placement, test.work.Manifests = web, []*work.Manifest{m}
			s.setWorks([]*work.Work{&test.work})
			if test.was != "" {
				s.drifts.state.Loaded(web, protocol.Drift{ID: m.ID, State: test.was, Deleted: test.outcome.Gone})
			}
			o := test.outcome
			o.Object = desired.Object{Placement: web, Manifest: m}
			s.drifts.recordOutcome(&o)
			if d := s.drift.Change(web, m.ID); d.State != test.want || d.Count != test.count {
				t.Errorf("recorded: %q, drifted %d times, want %q and %d", d.State, d.Count, test.want, test.count)
			}
			if n := s.cfg.Metrics.Drifts.Value("east"); n != test.undone {
				t.Errorf("%v drifts are counted, want %v", n, test.undone)
			}
			for _, change := range []string{"edited", "deleted"} {
				if n := s.cfg.Metrics.Repairs.Value("east", change); (n == 1) != (test.repairs == change) {
					t.Errorf("%v reverted drifts are counted as %s", n, change)
				}
			}
		})
	}
}

// An object that is changed again and again is reverted at once at first, and later only after a
// delay. The same change counts once, however often it is seen.
func TestContestedObjectsAreRevertedLater(t *testing.T) {
	s, m := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"}), oneManifest()
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
	tk := apply.Task{Object: desired.Object{Placement: web, Manifest: m}, Item: &inventory.Item{Hash: "hash", Managed: "m", UID: "1"}}
	for version := uint64(1); version < diff.Contest; version++ {
		for range 3 {
			if _, contested := s.drifts.countUndone(tk, &observed.Object{Version: version, Writer: "kubectl"}); contested {
				t.Fatalf("change %d is not reverted at once", version)
			}
		}
	}
	bad, contested := s.drifts.countUndone(tk, &observed.Object{Version: diff.Contest, Writer: "kubectl", Generation: 9})
	if !contested {
		t.Fatal("a contested object is reverted at once")
	}
	if bad.Cond.Reason != api.Contested || !strings.Contains(bad.Cond.Message(), "kubectl keeps undoing what the manifest sets: put back 2 times so far") || !bad.Next.After(time.Now()) || bad.Generation != 9 {
		t.Errorf("the object has %+v", bad)
	}
	if state := s.drift.Change(web, m.ID).State; state != api.DriftContested {
		t.Errorf("recorded: %s", state)
	}
	if n := s.cfg.Metrics.Drifts.Value("east"); n != diff.Contest {
		t.Errorf("%v drifts are counted, want %d", n, diff.Contest)
	}
}
