package member

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// An object that was deleted and still exists keeps those of later waves, also without a watch of its
// kind. The report says what waits for what, until when it is gone.
func TestDeletionsWaitForEarlierWaves(t *testing.T) {
	config := simulated.New(simulated.Options{}).Cluster("east").Config()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := sessionOf(t, config)
	services := connection.Resource{GroupVersionResource: inventory.ConfigMaps.GroupVersion().WithResource("services"), Namespaced: true}
	create := func(res connection.Resource, kind string, finalizers ...string) api.ID {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "one", "namespace": "default"}}}
		o.SetLabels(map[string]string{api.ManagedByLabel: "prod"})
		o.SetFinalizers(finalizers)
		stored, err := client.Resource(res.GroupVersionResource).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.kinds.Add(o.GroupVersionKind(), res)
		s.inventories.owned.Inventory(web).Items.Put(inventory.Item{Version: "v1", Kind: kind, Namespace: "default", Name: "one", UID: stored.GetUID(), Hash: "h"})
		return api.IDOf(o)
	}
	service, config1 := create(services, "Service", "example.com/drain"), create(inventory.ConfigMaps, "ConfigMap")
	s.setWorks([]*work.Work{{Placement: web, Remove: true}})
	var seen protocol.WorkSeen
	s.cfg.Report = func(o protocol.Observation) { seen = o.(protocol.WorkSeen) }
	exists := func(res connection.Resource) bool {
		_, err := client.Resource(res.GroupVersionResource).Namespace("default").Get(t.Context(), "one", metav1.GetOptions{})
		return err == nil
	}
	for range 2 {
		s.pruner.prune(t.Context(), append(s.owned.Stales(service), s.owned.Stales(config1)...), map[api.PlacementKey]bool{})
		if s.reporter.report(t.Context(), web); !exists(inventory.ConfigMaps) || !exists(services) {
			t.Fatal("an object of a later wave is gone")
		}
		if len(seen.Unusual().Waiting) != 1 || seen.Unusual().Waiting[0] != (protocol.DeletionWait{Objects: 1, Example: config1, For: service, Of: web}) {
			t.Fatalf("it waits for %+v", seen.Unusual().Waiting)
		}
	}
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.Resource(services.GroupVersionResource).Namespace("default").Patch(t.Context(), "one", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.record.progress.RetryAll() // it is read again
	s.pruner.prune(t.Context(), s.owned.Stales(service), map[api.PlacementKey]bool{})
	if s.reporter.report(t.Context(), web); exists(inventory.ConfigMaps) || len(seen.Unusual().Waiting) > 0 || s.inventories.owned.Inventory(web).Items.Len() > 0 {
		t.Errorf("once the first object is gone: %+v", seen)
	}
}
