package member

import (
	"context"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// announce adds objects to the inventories before they are applied for the first time, so that
// every object on the cluster is in an inventory. It returns the tasks that may continue.
func (s *session) announce(ctx context.Context, tasks []task, touched map[api.PlacementKey]bool) []task {
	grown := map[api.PlacementKey]*inventory.Inventory{}
	for _, t := range tasks {
		if t.item == nil && t.spared == "" && !s.works.reports(t.placement) {
			grown[t.placement] = s.inventory(t.placement)
		}
	}
	failed := map[api.PlacementKey]error{}
	for p, inv := range grown {
		added := s.addItems(inv, p, tasks)
		inv.Abandon = s.works[p].Abandon
		if r := s.works[p].Revision; r != (placement.Revision{}) {
			// After a restart without the ledger, the cluster must not return to an older
			// revision, which would delete what was added since.
			inv.Revision = r
		}
		touched[p] = true
		if err := s.store.Save(ctx, inv); err != nil {
			if s.store.Foreign() {
				return nil
			}
			for _, id := range added {
				inv.Items.Drop(id)
			}
			failed[p] = err
		}
		faults.At("announced")
	}
	ready := tasks[:0]
	for _, t := range tasks {
		if err := failed[t.placement]; err != nil && t.item == nil {
			s.fail(outcome{task: t, cond: diff.ApplyFailed(diff.Create, err), err: err})
			continue
		}
		if t.item == nil {
			if inv := s.inv[t.placement]; inv != nil {
				t.item = inv.Items.Of(t.manifest.ID)
			}
		}
		ready = append(ready, t)
	}
	return ready
}

func (s *session) addItems(inv *inventory.Inventory, p api.PlacementKey, tasks []task) (added []api.ID) {
	for _, t := range tasks {
		if t.placement != p || t.item != nil || t.spared != "" {
			continue
		}
		id := t.manifest.ID
		inv.Items.Put(inventory.Item{Group: id.Group, Version: t.res.Version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name})
		added = append(added, id)
	}
	return added
}
