package member

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An object is suspect if its values may have changed without a trace in the metadata: after
// any write that is not ours, but not after a change of the status.
func TestWrittenByOthers(t *testing.T) {
	was := observed.Object{UID: "1", Version: 5, Generation: 2, Applied: 100, Others: 7}
	tests := map[string]struct {
		now  observed.Object
		full bool
		want bool
	}{
		"what we know":                        {was, true, false},
		"a new status":                        {observed.Object{UID: "1", Version: 6, Generation: 2, Applied: 100, Others: 7}, true, false},
		"an apply under our name":             {observed.Object{UID: "1", Version: 6, Generation: 2, Applied: 101, Others: 7}, true, true},
		"the same within the second":          {observed.Object{UID: "1", Version: 6, Generation: 3, Applied: 100, Others: 7}, true, true},
		"another writer":                      {observed.Object{UID: "1", Version: 6, Generation: 2, Applied: 100, Others: 8}, true, true},
		"older than what we know":             {observed.Object{UID: "1", Version: 4, Generation: 1, Applied: 90, Others: 6}, true, false},
		"another object of the name":          {observed.Object{UID: "2", Version: 6, Generation: 1, Applied: 101, Others: 7}, true, false},
		"without generations, whole":          {observed.Object{UID: "1", Version: 6, Applied: 100, Others: 7}, true, false},
		"without generations, metadata alone": {observed.Object{UID: "1", Version: 6, Applied: 100, Others: 7}, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			id := cm("one")
			m := &work.Manifest{Object: &api.Object{ID: id, Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.wanted = wantsOf([]work.Work{{Placement: web, Manifests: []*work.Manifest{m}}}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer s.watch.Wait()
			defer cancel()
			s.watch.Start(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, inventory.ConfigMaps, test.full)
			old := was
			if test.now.Generation == 0 {
				old.Generation = 0
			}
			if got := s.observer.writtenByOthers(id, &old, &test.now); got != test.want {
				t.Errorf("written by others: %t", got)
			}
		})
	}
}

// After a restart, the time in the inventory shows whether somebody has applied under our name
// since.
func TestWrittenWhileAway(t *testing.T) {
	id := cm("one")
	m := &work.Manifest{Object: &api.Object{ID: id, Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
	s := sessionAt(t, http.NotFoundHandler())
	s.wanted = wantsOf([]work.Work{{Placement: web, Manifests: []*work.Manifest{m}}}, nil)
	if s.observer.writtenByOthers(id, nil, &observed.Object{Applied: 200}) {
		t.Error("without an inventory it is written by others")
	}
	s.live.Put(inventory.FirstPart(s.cfg.Fleet, web), &observed.Object{Applied: 100})
	for applied, want := range map[int64]bool{50: false, 100: false, 102: false, 103: true} {
		if got := s.observer.writtenByOthers(id, nil, &observed.Object{Applied: applied}); got != want {
			t.Errorf("applied at %d: written by others %t", applied, got)
		}
	}
	if s.observer.writtenByOthers(cm("other"), nil, &observed.Object{Applied: 200}) {
		t.Error("what nobody wants is written by others")
	}
}

// If an object was accepted with the value of somebody else, our part of the ownership does not
// show changes of that field. After a restart, it is still noticed that they have written to
// it.
func TestWrittenWhileAwayAfterItWasAccepted(t *testing.T) {
	m := oneManifest()
	id := m.ID
	accepted := observed.Object{UID: "1", Generation: 2, Others: 7, Managed: "ours"}
	tests := map[string]struct {
		now  observed.Object
		want bool
	}{
		"as it was accepted":        {observed.Object{UID: "1", Generation: 2, Others: 7, Managed: "ours", Version: 9}, false},
		"without generations":       {observed.Object{UID: "1", Others: 7, Managed: "ours", Version: 9}, true},
		"somebody has updated it":   {observed.Object{UID: "1", Generation: 3, Others: 8, Managed: "ours"}, true},
		"somebody has scaled it":    {observed.Object{UID: "1", Generation: 3, Others: 7, Managed: "ours"}, true},
		"updated, and without one":  {observed.Object{UID: "1", Generation: 2, Others: 8, Managed: "ours"}, true},
		"applied by us in the past": {observed.Object{UID: "1", Generation: 2, Others: 7, Managed: "ours", Applied: 50}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.wanted = wantsOf([]work.Work{{Placement: web, Manifests: []*work.Manifest{m}}}, nil)
			s.works = map[api.PlacementKey]work.Work{web: {Placement: web}}
			s.drifts.memory = drift.Memory{}
			was := &inventory.Inventory{Placement: web}
			was.Items.Put(inventory.Item{Version: "v1", Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, Hash: "old", UID: "1"})
			s.inv[web] = was
			t0 := task{wanted: wanted{web, m}, item: was.Items.Of(id)}
			s.applier.recordAccepted(&outcome{task: t0, accepted: &accepted}, map[api.PlacementKey]bool{})
			if err := s.store.Save(t.Context(), was); err != nil {
				t.Fatal(err)
			}
			if err := s.inventories.load(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.live.Put(inventory.FirstPart(s.cfg.Fleet, web), &observed.Object{Applied: 100})
			if got := s.observer.writtenByOthers(id, nil, &test.now); got != test.want {
				t.Errorf("written by Others: %t", got)
			}
		})
	}
}

// A write that changed nothing is neither recorded as drift nor counted for a contest.
func TestWhatChangedNothingIsNoRepair(t *testing.T) {
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
func TestAlteredIsRememberedUntilItEnds(t *testing.T) {
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
