package member

import (
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// After a restart an agent continues the drifts that the ledger has: each is reported as before,
// and is neither new nor counted once more when it is observed again.
func TestRestoredDriftsContinue(t *testing.T) {
	seen := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	recorded := func(name string, state api.DriftState) ledger.Drift {
		return ledger.Drift{
			ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: name}, Version: "v1", State: state, Count: 3, FirstSeen: seen, Since: seen, LastSeen: seen,
			Paths: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/key", ValueInMember: "2", ValueInHub: "1"}}},
		}
	}
	shop := api.PlacementKey{Namespace: "shop", Name: "web"}
	drifts := map[api.PlacementKey][]ledger.Drift{
		web:  {recorded("one", api.DriftHeld), recorded("two", api.DriftEnded)},
		shop: {recorded("one", api.DriftContested)},
	}
	for range 60 { // more than an agent remembers
		drifts[shop] = append(drifts[shop], recorded(fmt.Sprintf("other-%02d", len(drifts[shop])), api.DriftRepaired))
	}
	given := len(drifts[shop])
	a := New(Config{})
	a.RestoreDrifts(drifts)

	if got, want := a.drifted.memory.List(web), drifts[web]; !reflect.DeepEqual(got, want) {
		t.Errorf("restored: %+v\nwant %+v", got, want)
	}
	if of := a.drifted.memory.List(shop); len(of) >= given || a.drifted.memory.State(shop, recorded("one", "").ID) != api.DriftContested {
		t.Errorf("of %d drifts %d are remembered, and not those that still differ first", given, len(of))
	}
	if len(drifts[shop]) != given || drifts[web][0].Count != 3 {
		t.Error("what was given is changed")
	}

	observed := &work.Manifest{Object: &api.Object{ID: recorded("one", "").ID, Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
	a.drifted.memory.Record(web, observed, api.DriftHeld, ledger.Drift{Mode: "propose"}, false)
	d := a.drifted.memory[web][observed.ID]
	if d.Count != 3 || !d.FirstSeen.Equal(seen) || !d.Since.Equal(seen) || !d.LastSeen.After(seen) || len(d.Paths) != 1 {
		t.Errorf("observed again: %+v", d)
	}
	if drifts[web][0].Mode != "" {
		t.Error("what was given is changed")
	}
}

// A write that changed nothing is neither recorded as drift nor counted for a contest.
func TestWriteWithoutAChangeIsNoRepair(t *testing.T) {
	s := sessionAt(t, http.NotFoundHandler())
	m := &work.Manifest{Object: &api.Object{ID: cm("one"), Hash: "h", Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
	tk := task{wanted: wanted{web, m}, item: &inventory.Item{Kind: "ConfigMap", Version: "v1", Namespace: "default", Name: "one", Hash: "h", UID: "1"}, drift: true}
	found := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}
	outcomeAt := func(version string) *outcome {
		return &outcome{task: tk, snapshot: snapshot{live: found}, before: ledger.Drift{Generation: 1},
			written: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, CreationTimestamp: metav1.NewTime(time.Unix(1, 0))}}}
	}
	s.drifts.undone(tk, &observed.Object{Version: 7})
	if s.drifts.flips[cm("one")].Total != 1 {
		t.Fatalf("flips: %+v", s.drifts.flips)
	}
	s.drifts.recordOutcome(outcomeAt("7"))
	if got := s.drifts.memory[web]; len(got) > 0 || s.drifts.flips[cm("one")].Total != 0 {
		t.Errorf("it remembers %+v, and counts %d", got, s.drifts.flips[cm("one")].Total)
	}
	s.drifts.undone(tk, &observed.Object{Version: 8})
	s.drifts.recordOutcome(outcomeAt("9"))
	if got := s.drifts.memory[web][cm("one")]; got.State != api.DriftRepaired || got.Count != 1 || s.drifts.flips[cm("one")].Total != 1 {
		t.Errorf("it remembers %+v, and counts %d", got, s.drifts.flips[cm("one")].Total)
	}
}

// Fields that a cluster alters at each apply are recorded until it does not alter them any
// more. An earlier record of the object continues to count.
func TestAlteredFieldsAreRecordedUntilTheyEnd(t *testing.T) {
	s := sessionAt(t, http.NotFoundHandler())
	m := &work.Manifest{Object: &api.Object{ID: cm("one"), Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
	tk := task{wanted: wanted{web, m}}
	paths := []api.PatchDetail{{Path: "/data/key", ValueInHub: "a", ValueInMember: "b"}}
	s.drifts.memory.Put(web, ledger.Drift{ID: cm("one"), State: api.DriftRepaired, Count: 3})
	s.drifts.recordAltered(tk, 1, nil)
	if got := s.drifts.memory[web][cm("one")]; got.State != api.DriftRepaired {
		t.Errorf("nothing altered: %+v", got)
	}
	s.drifts.recordAltered(tk, 1, paths)
	if got := s.drifts.memory[web][cm("one")]; got.State != api.DriftAltered || got.Count != 3 || len(s.drifts.memory.Altered(web, cm("one"))) != 1 {
		t.Errorf("altered: %+v", got)
	}
	s.drifts.recordAltered(tk, 1, nil)
	if got := s.drifts.memory[web][cm("one")]; got.State != api.DriftEnded || got.Message != "" || s.drifts.memory.Altered(web, cm("one")) != nil {
		t.Errorf("over: %+v", got)
	}
}
