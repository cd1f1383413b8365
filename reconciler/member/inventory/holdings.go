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
	Fleet string
	// Placement is empty for a damaged bundle of several placements.
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
	left, serials := newUnpacking(ctx), map[string]uint64{}
	for _, first := range chunks {
		if first.GetLabels()[label] != "0" {
			continue
		}
		serials[first.GetName()] = serialOf(first)
		h := Holding{Fleet: first.GetLabels()[api.ManagedByLabel], Placement: first.GetAnnotations()[api.PlacementAnnotation]}
		if inv, err := join(first, chunks, left); err != nil {
			h.Damaged = err.Error()
		} else {
			h.Objects = slices.Collect(inv.Items.All())
		}
		all = append(all, h)
	}
	for _, together := range []struct {
		part string
		add  func([]Holding, *unstructured.Unstructured, map[string]uint64, *unpacking) []Holding
	}{{bundlePart, addBundledHoldings}, {announcementPart, addAnnouncedHoldings}} {
		for _, o := range chunks {
			if o.GetLabels()[label] == together.part {
				all = together.add(all, o, serials, left)
			}
		}
	}
	slices.SortFunc(all, func(a, b Holding) int {
		return cmp.Or(cmp.Compare(a.Fleet, b.Fleet), cmp.Compare(a.Placement, b.Placement))
	})
	return all, nil
}

// addBundledHoldings adds the inventories in a bundle that count. serials are those of inventories by name.
func addBundledHoldings(all []Holding, o *unstructured.Unstructured, serials map[string]uint64, left *unpacking) []Holding {
	fleet := o.GetLabels()[api.ManagedByLabel]
	list, err := listIn(o, left)
	if err != nil {
		return append(all, Holding{Fleet: fleet, Damaged: "bundle of several placements: " + err.Error()})
	}
	for _, inv := range list {
		name := nameOf(fleet, inv.Placement())
		if serials[name] >= inv.serial {
			continue
		}
		serials[name] = inv.serial
		all = slices.DeleteFunc(all, func(h Holding) bool { return h.Fleet == fleet && h.Placement == inv.Placement().String() })
		all = append(all, Holding{Fleet: fleet, Placement: inv.Placement().String(), Objects: slices.Collect(inv.Items.All())})
	}
	return all
}

// addAnnouncedHoldings adds what an announcement lists of inventories that were not written since. One that is damaged
// has nothing.
func addAnnouncedHoldings(all []Holding, o *unstructured.Unstructured, serials map[string]uint64, left *unpacking) []Holding {
	additions, err := listIn(o, left)
	if err != nil {
		return all
	}
	fleet := o.GetLabels()[api.ManagedByLabel]
	for _, a := range additions {
		if serials[nameOf(fleet, a.Placement())] >= a.serial {
			continue
		}
		at := slices.IndexFunc(all, func(h Holding) bool { return h.Fleet == fleet && h.Placement == a.Placement().String() })
		if at < 0 {
			at, all = len(all), append(all, Holding{Fleet: fleet, Placement: a.Placement().String()})
		}
		for it := range a.Items.All() {
			if h := &all[at]; h.Damaged == "" && !slices.ContainsFunc(h.Objects, func(known Item) bool { return known.ID() == it.ID() }) {
				h.Objects = append(h.Objects, it)
			}
		}
		slices.SortFunc(all[at].Objects, func(x, y Item) int { return x.ID().Compare(y.ID()) })
	}
	return all
}
