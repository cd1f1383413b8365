package member

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
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
