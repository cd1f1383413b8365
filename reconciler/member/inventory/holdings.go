package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Holding is the content of an inventory on a cluster.
type Holding struct {
	Fleet     string
	Placement string
	// Objects are sorted. A damaged inventory has none.
	Objects []HeldObject
	// Damaged is the reason why the inventory cannot be read; empty if it can.
	Damaged string
}

// A HeldObject is one object of an inventory.
type HeldObject struct {
	api.ID
	Version string
}

// GroupVersionKind returns the kind of the object in the version in which it was applied.
func (o HeldObject) GroupVersionKind() schema.GroupVersionKind {
	return o.ID.GroupKind().WithVersion(o.Version)
}

// Holdings reads the inventories of all fleets on a cluster, sorted by fleet and placement.
func Holdings(ctx context.Context, cfg *rest.Config) ([]Holding, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	chunks := map[string]*unstructured.Unstructured{}
	opts := metav1.ListOptions{LabelSelector: label, Limit: 100}
	for {
		page, err := client.Resource(ConfigMaps.GroupVersionResource).Namespace(api.Namespace).List(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("read inventories: %w", connection.Plain(err))
		}
		for i := range page.Items {
			chunks[page.Items[i].GetName()] = &page.Items[i]
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	var all []Holding
	for name, first := range chunks {
		if first.GetLabels()[label] == "0" {
			all = append(all, holdingOf(name, first, chunks))
		}
	}
	slices.SortFunc(all, func(a, b Holding) int {
		return cmp.Or(cmp.Compare(a.Fleet, b.Fleet), cmp.Compare(a.Placement, b.Placement))
	})
	return all, nil
}

func holdingOf(name string, first *unstructured.Unstructured, chunks map[string]*unstructured.Unstructured) Holding {
	h := Holding{Fleet: first.GetLabels()[api.ManagedByLabel], Placement: first.GetAnnotations()[api.PlacementAnnotation]}
	parts, err := partsOf(first)
	var inv *Inventory
	if err == nil {
		inv, err = join(name, parts, chunks)
	}
	if err != nil {
		h.Damaged = err.Error()
		return h
	}
	for it := range inv.Items.All() {
		h.Objects = append(h.Objects, HeldObject{it.ID(), it.Version})
	}
	slices.SortFunc(h.Objects, func(a, b HeldObject) int { return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Version, b.Version)) })
	return h
}
