package member

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A stale object is removed even if another placement compares it: a placement that only
// reports differences takes over nothing.
func TestComparingIsNotTakingOver(t *testing.T) {
	left, compares := api.PlacementKey{Name: "left"}, api.PlacementKey{Name: "compares"}
	m := oneManifest()
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.inv[left] = &inventory.Inventory{Placement: left}
	s.inv[left].Items.Put(inventory.Item{Version: "v1", Kind: m.ID.Kind, Namespace: m.ID.Namespace, Name: m.ID.Name})
	s.want([]work.Work{
		{Placement: left, Remove: true},
		{Placement: compares, Strategy: api.ApplyStrategy{Type: api.ReportDiff}, Manifests: []*work.Manifest{m}},
	})
	if stales := s.stales(m.ID); len(stales) != 1 || stales[0].handedOver {
		t.Errorf("it is left with %+v", stales)
	}
}

// After a change between applying and reporting differences, the work is not done yet although
// the revision is the same.
func TestAnotherStrategyTypeIsNotCarriedOutYet(t *testing.T) {
	web, m := api.PlacementKey{Name: "web"}, oneManifest()
	s := sessionAt(t, apiserver.NewConfigMaps())
	for _, typ := range []api.ApplyStrategyType{api.ReportDiff, api.ServerSideApply, api.ReportDiff} {
		s.want([]work.Work{{Placement: web, Strategy: api.ApplyStrategy{Type: typ}, Manifests: []*work.Manifest{m}}})
		if s.done[web] {
			t.Errorf("%s counts as done before it was tried", typ)
		}
		s.done[web] = true
		s.want([]work.Work{{Placement: web, Strategy: api.ApplyStrategy{Type: typ}, Manifests: []*work.Manifest{m}}})
		if !s.done[web] {
			t.Errorf("%s does not count as done after it was told again", typ)
		}
	}
}

// An inventory has the revision that added an object as soon as it lists the object. After the
// ledger was lost, the cluster is not returned to the revision before, which would delete the
// object.
func TestInventoryNamesTheRevisionThatBroughtAnObject(t *testing.T) {
	web, v2 := api.PlacementKey{Name: "web"}, placement.Revision{Commit: "v2", Hash: "2"}
	shelf := apiserver.NewConfigMaps()
	before, after := sessionAt(t, shelf), sessionAt(t, shelf)
	before.works = map[api.PlacementKey]work.Work{web: {Placement: web, Revision: v2}}
	before.inv[web] = &inventory.Inventory{Placement: web, Revision: placement.Revision{Commit: "v1", Hash: "1"}}
	before.inventories.announce(t.Context(), []task{{wanted: wanted{web, oneManifest()}, res: inventory.ConfigMaps}}, map[api.PlacementKey]bool{})

	if err := after.inventories.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := after.inv[web]; got == nil || got.Revision != v2 {
		t.Errorf("the cluster says %+v", got)
	}
}

func oneManifest() *work.Manifest {
	id := api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}
	return &work.Manifest{Object: &api.Object{ID: id, Hash: "hash", Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "web"},
	}}}}
}

// Objects that are being deleted are reported, and also which of them wait for the garbage
// collector, since a user may not be able to do anything about that.
func TestWhoeverWaitsForTheCollectorSaysSo(t *testing.T) {
	web, one := api.PlacementKey{Name: "web"}, oneManifest().ID
	tests := map[string]struct {
		finalizers           []string
		going                bool
		lingering, collected []api.ID
	}{
		"it stays":                    {nil, false, nil, nil},
		"something of its own":        {[]string{"example.com/log"}, true, []api.ID{one}, nil},
		"the collector":               {[]string{"foregroundDeletion"}, true, []api.ID{one}, []api.ID{one}},
		"both":                        {[]string{"example.com/log", "foregroundDeletion"}, true, []api.ID{one}, []api.ID{one}},
		"a finalizer, and no removal": {[]string{"foregroundDeletion"}, false, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.holding(oneManifest(), web)
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: one.Name, Namespace: one.Namespace, Finalizers: test.finalizers}}
			if test.going {
				o.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			s.live.Put(one, observed.Of(o))
			var told ledger.WorkSeen
			s.cfg.Report = func(o ledger.Observation) { told = o.(ledger.WorkSeen) }
			for _, remove := range []bool{true, false} { // the whole placement is removed, or only the object
				s.works[web] = work.Work{Placement: web, Remove: remove}
				s.reporter.report(t.Context(), web)
				if !slices.Equal(told.Lingering, test.lingering) || !slices.Equal(told.Collecting, test.collected) {
					t.Errorf("remove %t: it waits for %v, of these the collector for %v", remove, told.Lingering, told.Collecting)
				}
			}
			s.want([]work.Work{{Placement: web, Manifests: []*work.Manifest{oneManifest()}}})
			if s.reporter.report(t.Context(), web); told.Lingering != nil {
				t.Errorf("it waits for %v, which is wanted", told.Lingering)
			}
		})
	}
}

// An object that was deleted stays in the inventory until it is gone, even if other objects of
// its placement stay.
func TestInventoryListsADeletedObjectUntilItIsGone(t *testing.T) {
	web, m := api.PlacementKey{Name: "web"}, oneManifest()
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.holding(m, web)
	s.works[web] = work.Work{Placement: web, AllowDelete: true}
	ctx, cancel := context.WithCancel(t.Context())
	defer s.watch.Wait()
	defer cancel()
	k := s.watch.Start(ctx, m.Object.Object.GroupVersionKind(), inventory.ConfigMaps, false)
	if !s.watch.WaitForLists(ctx, []*watch.Kind{k}, time.Minute) {
		t.Fatal("nothing is listed")
	}
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: m.ID.Name, Namespace: m.ID.Namespace, Labels: map[string]string{api.ManagedByLabel: "prod"},
		DeletionTimestamp: &metav1.Time{Time: time.Now()}, Finalizers: []string{"example.com/log"},
	}}
	s.live.Put(m.ID, observed.Of(o))
	s.kinds.Add(inventory.ConfigMaps.GroupVersion().WithKind("ConfigMap"), inventory.ConfigMaps)
	for _, gone := range []bool{false, true} {
		if gone {
			s.live.Drop(m.ID)
		}
		s.pruner.prune(t.Context(), s.stales(m.ID), map[api.PlacementKey]bool{})
		if listed := s.inv[web].Items.Has(m.ID); listed == gone {
			t.Errorf("gone: %t, and in the inventory: %t", gone, listed)
		}
	}
}
