package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Holding is the content of an inventory on a cluster.
type Holding struct {
	Fleet     string
	Placement string
	// Objects are sorted by ID. A damaged inventory has none.
	Objects []Item
	// Damaged is the reason why the inventory cannot be read; empty if it can.
	Damaged string
}

// Holdings reads the inventories of all fleets on a cluster, sorted by fleet and placement.
func Holdings(ctx context.Context, cfg *rest.Config) ([]Holding, error) {
	client, err := dynamic.NewForConfig(connection.Bounded(cfg))
	if err != nil {
		return nil, err
	}
	chunks := map[string]*unstructured.Unstructured{}
	at := connection.Listing{ListOptions: metav1.ListOptions{LabelSelector: label, Limit: 100}, Kept: true}
	for {
		page, err := client.Resource(ConfigMaps.GroupVersionResource).Namespace(api.Namespace).List(ctx, at.ListOptions)
		if err != nil {
			return nil, fmt.Errorf("read inventories: %w", connection.Plain(err))
		}
		for i := range page.Items {
			if err := keepChunk(&at, &page.Items[i]); err != nil {
				return nil, err
			}
			chunks[page.Items[i].GetName()] = &page.Items[i]
		}
		more, err := at.Next(page, len(page.Items))
		if err != nil {
			return nil, fmt.Errorf("read inventories: %w", err)
		}
		if !more {
			break
		}
	}
	var all []Holding
	left := newUnpacking(ctx)
	for _, first := range chunks {
		if first.GetLabels()[label] != "0" {
			continue
		}
		h := Holding{Fleet: first.GetLabels()[api.ManagedByLabel], Placement: first.GetAnnotations()[api.PlacementAnnotation]}
		if inv, err := join(first, chunks, left); err != nil {
			h.Damaged = err.Error()
		} else {
			h.Objects = slices.Collect(inv.Items.All())
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b Holding) int {
		return cmp.Or(cmp.Compare(a.Fleet, b.Fleet), cmp.Compare(a.Placement, b.Placement))
	})
	return all, nil
}
