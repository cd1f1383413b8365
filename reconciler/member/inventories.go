package member

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/member/unlisted"
)

// inventories writes what placements own to the cluster.
type inventories struct {
	*cluster
	desired.View
	owned    *owned.State
	progress progress.View
	// failures limits the log lines about failed writes of several inventories.
	failures retry.LogLimiter
	// tampered are the inventories that others have changed or deleted, until they are written again, with the object that this was.
	tampered map[api.PlacementKey]api.ID
}

// load reads the inventories on the cluster.
func (i *inventories) load(ctx context.Context) error {
	all, err := i.store.Load(ctx)
	if err != nil {
		return err
	}
	i.owned.Loaded(all)
	return nil
}

// add adds objects to the inventories of their placements, unless they are listed, are wanted, belong to a
// placement that only compares, or are in a namespace in which the fleet has nothing else: those may be
// copies that a backup tool has made elsewhere, with all metadata. It reports whether a placement got an
// inventory.
func (i *inventories) add(found []unlisted.Object) (news bool) {
	ours := i.namespaces(found)
	for _, o := range found {
		id := o.Item.ID()
		if _, isWanted := i.Wanted().Of(id); isWanted || i.owned.View().IsListed(id) || i.Works().OnlyCompares(o.Placement) {
			continue
		}
		if why := inventory.WithoutRoom(i.owned.Inventories(), slices.Values([]api.PlacementKey{o.Placement}))[o.Placement]; why != nil {
			i.cfg.Log.Warn("object that gitfleet applied is left as it is", "cluster", i.cfg.Name, "placement", o.Placement.String(), "object", id, "why", why)
			continue
		}
		if id.Namespace != "" && !ours[id.Namespace] {
			i.cfg.Log.Warn("object looks like one that gitfleet applied, but the fleet has nothing else in its namespace; it is left as it is", "cluster", i.cfg.Name, "object", id)
			continue
		}
		_, has := i.owned.View().Of(o.Placement)
		news = news || !has
		i.owned.Found(o.Placement, o.Item)
	}
	return news
}

// namespaces returns the namespaces that are the fleet's, or in which it wants or lists objects.
func (i *inventories) namespaces(found []unlisted.Object) map[string]bool {
	out := map[string]bool{}
	add := func(id api.ID) {
		out[id.Namespace] = true
		if id.Group == "" && id.Kind == "Namespace" {
			out[id.Name] = true
		}
	}
	for id := range i.Wanted().All() {
		add(id)
	}
	for _, inv := range i.owned.Inventories() {
		for id := range inv.Items.IDs() {
			add(id)
		}
	}
	for _, o := range found {
		if o.Item.Namespace == "" {
			add(o.Item.ID())
		}
	}
	return out
}

// renameClaim writes the name of the member into the claim if the member was renamed, and reports
// whether it did. Another try follows with the next inventory.
func (i *inventories) renameClaim(ctx context.Context) (renamed bool) {
	before := i.store.Claimant()
	if err := i.store.RenameClaim(ctx); err != nil && ctx.Err() == nil {
		i.cfg.Log.Warn("claim has a former name of the member, and is not written", "cluster", i.cfg.Name, "err", err)
	}
	return i.store.Claimant() != before
}

// unwritten reports whether an inventory should be written as soon as possible.
func (i *inventories) unwritten(inv inventory.View) bool {
	return !inv.Stored() && !i.Works().Suspended(inv.Placement())
}

// adopt marks the inventories that a user has adopted from another fleet: deletions of their objects are blocked from now on.
func (i *inventories) adopt() {
	for _, inv := range i.owned.Inventories() {
		i.store.Adopt(inv)
	}
}

// setBack reports whether inventories on the cluster are earlier ones than were written, or missing.
func (i *inventories) setBack(ctx context.Context) (bool, error) {
	return inventory.SetBackSince(ctx, i.store, i.owned.Inventories())
}

// save writes the inventories that changed, each at most once, and removes empty
// ones whose placement is gone. It reports whether the owners that inventories name have changed.
func (i *inventories) save(ctx context.Context, touched map[api.PlacementKey]bool) (otherOwners bool) {
	for _, inv := range i.owned.Inventories() {
		p := inv.Placement()
		w, known := i.Works().Find(p)
		if known && (i.store.NamesOther(inv) || inv.Abandon != w.Abandon || w.Remove && inv.Items.Len() == 0 || inv.Revision() != w.Revision && i.complete(p)) {
			touched[p] = true
		}
	}
	var all, gone []*inventory.Inventory
	for _, p := range slices.SortedFunc(maps.Keys(touched), func(a, b api.PlacementKey) int { return cmp.Compare(a.String(), b.String()) }) {
		inv := i.owned.Inventories().Of(p)
		if inv == nil || i.Works().Suspended(p) {
			continue
		}
		w, known := i.Works().Find(p)
		if known && w.Remove && inv.Items.Len() == 0 {
			gone = append(gone, inv)
			continue
		}
		if known && i.complete(p) {
			inv.SetRevision(w.Revision)
		}
		if known {
			inv.Abandon = w.Abandon
		}
		i.finishAdoption(inv)
		faults.At("before inventory")
		all = append(all, inv)
	}
	i.saveAll(ctx, all, func(inv *inventory.Inventory, err error) {
		faults.At("after inventory")
		i.written(ctx, inv, err)
	})
	i.removeAll(ctx, gone)
	return i.store.UpdateOwners(i.owned.Inventories())
}

// removeAll removes empty inventories. All but the last are taken out of the announcement and the bundle together; the last one is
// removed after the claim if nothing else is left. A cluster can have very many, so that it ends with its context.
func (i *inventories) removeAll(ctx context.Context, gone []*inventory.Inventory) {
	var failed error
	if len(gone) > 1 {
		failed = inventory.RemoveTogether(ctx, i.store, gone[:len(gone)-1]...)
	}
	for _, inv := range gone {
		if ctx.Err() != nil {
			return
		}
		err := failed
		if failed == nil || !inventory.IsTogether(i.store, inv.Placement()) {
			err = i.remove(ctx, inv)
		}
		i.written(ctx, inv, err)
	}
}

// remove removes an empty inventory, and the claim with the last one.
func (i *inventories) remove(ctx context.Context, inv *inventory.Inventory) error {
	if len(i.owned.Inventories()) == 1 {
		if err := i.store.DeleteClaim(ctx); err != nil {
			return err
		}
	}
	if err := i.store.Delete(ctx, inv); err != nil {
		return err
	}
	i.owned.InventoryDeleted(inv.Placement())
	delete(i.tampered, inv.Placement())
	return nil
}

// saveAll writes inventories, together as far as that saves requests, and calls done for each, except those that were to be written
// together and could not be: they are written again later, and logged together.
func (i *inventories) saveAll(ctx context.Context, all []*inventory.Inventory, done func(inv *inventory.Inventory, err error)) {
	rest, err := inventory.SaveTogether(ctx, i.store, all)
	failed := 0
	for _, inv := range all {
		switch {
		case slices.Contains(rest, inv):
		case err != nil:
			inv.Invalidate()
			failed++
		default:
			done(inv, nil)
		}
	}
	if err == nil {
		i.failures = retry.LogLimiter{}
	} else if ctx.Err() == nil && i.failures.Due(connection.WithoutPort(err)) {
		i.cfg.Log.Warn("inventories not written; trying again", "cluster", i.cfg.Name, "placements", failed, "err", err)
	}
	i.writeAll(ctx, rest, done)
}

// writeAll writes inventories one by one, several at a time, and calls done for each.
func (i *inventories) writeAll(ctx context.Context, all []*inventory.Inventory, done func(inv *inventory.Inventory, err error)) {
	writes, errs := make([]*inventory.Write, len(all)), make([]error, len(all))
	i.inParallel(ctx, len(all), parallelCalls{
		start: func(n int) bool {
			writes[n], errs[n] = i.store.Prepare(ctx, all[n])
			return writes[n] != nil
		},
		do: func(n int) { writes[n].Send(ctx) },
		done: func(n int) {
			if writes[n] != nil {
				errs[n] = i.store.Finish(ctx, writes[n])
				writes[n] = nil
			}
			done(all[n], errs[n])
		},
	})
}

// written records the result of writing an inventory. After an error the inventory is written again
// later; an error that repeats is logged once in a while.
func (i *inventories) written(ctx context.Context, inv *inventory.Inventory, err error) {
	if err == nil {
		inv.Failures = nil
		i.recordRepair(inv.Placement())
		return
	}
	inv.Invalidate()
	if inv.Failures == nil {
		inv.Failures = &retry.LogLimiter{}
	}
	if ctx.Err() == nil && inv.Failures.Due(connection.WithoutPort(err)) {
		i.cfg.Log.Warn("inventory not written; trying again", "cluster", i.cfg.Name, "placement", inv.Placement().String(), "err", err)
	}
}

// complete reports whether every object that a placement wants here is applied.
func (i *inventories) complete(p api.PlacementKey) bool {
	for _, m := range i.Works().Of(p).Manifests {
		if w, _ := i.Wanted().Of(m.ID); w.Placement != p || i.progress.HasFailed(m.ID) {
			return false
		}
	}
	return !i.Works().Of(p).Keep && !i.Works().Of(p).Remove
}

// finishAdoption removes the mark of an adopted inventory once all of its objects are desired.
func (i *inventories) finishAdoption(inv *inventory.Inventory) {
	if !inv.Adopted || !i.complete(inv.Placement()) {
		return
	}
	for id := range inv.Items.IDs() {
		if w, ok := i.Wanted().Of(id); !ok || w.Placement != inv.Placement() {
			return
		}
	}
	inv.Adopted = false
}

// restore writes inventories again that others have changed or deleted. It returns their ConfigMaps, whose values need not be compared
// any more.
func (i *inventories) restore(ctx context.Context, touched map[api.ID]bool) (compared []api.ID) {
	for id := range touched {
		if isClaim, changed := i.store.ClaimChanged(id); isClaim {
			if !changed {
				continue
			}
			if err := i.store.RestoreClaim(ctx, len(i.owned.Inventories())); err != nil {
				i.cfg.Log.Warn("claim not restored; trying again before the next inventory is written", "cluster", i.cfg.Name, "err", err)
			}
			continue
		}
		placements := i.store.Changed(id, i.progress.IsSuspect(id))
		if len(placements) == 0 {
			continue
		}
		compared = append(compared, id)
		found := false
		var all []*inventory.Inventory
		for _, p := range placements {
			inv := i.owned.Inventories().Of(p)
			if inv == nil {
				continue
			}
			stored := inv.Stored() // otherwise it could not be written after an earlier change
			inv.Invalidate()
			if i.Works().Suspended(p) {
				continue // it is written again once the suspension is over
			}
			found, all = found || stored, append(all, inv)
		}
		if found {
			i.cfg.Log.Warn("inventory was changed by somebody else; putting it back", "cluster", i.cfg.Name, "object", id.String(), "by", changerOf(i.live.Of(id)))
			if i.tampered == nil {
				i.tampered = map[api.PlacementKey]api.ID{}
			}
			for _, inv := range all {
				i.tampered[inv.Placement()] = id
			}
		}
		i.saveAll(ctx, all, func(inv *inventory.Inventory, err error) { i.written(ctx, inv, err) })
	}
	return compared
}

// changerOf returns who has changed an inventory, as far as the object shows. If nobody but gitfleet has ever written it, that was
// another daemon.
func changerOf(l *observed.Object) string {
	switch {
	case l == nil:
		return "unknown, since it was deleted"
	case l.Writer == "":
		return "another daemon of this fleet"
	}
	return l.Writer
}

// recordRepair adds to the history that the inventory of a placement, which others have changed or deleted, is written again. What
// several inventories are in is recorded once.
func (i *inventories) recordRepair(p api.PlacementKey) {
	id, is := i.tampered[p]
	if !is {
		return
	}
	maps.DeleteFunc(i.tampered, func(_ api.PlacementKey, other api.ID) bool { return other == id })
	if i.cfg.Record != nil {
		i.cfg.Record(history.Entry{
			Time: time.Now(), Kind: history.Member, Event: history.Repaired, Cluster: i.cfg.Name, Object: id.String(),
			Message: "somebody else had changed or deleted what gitfleet keeps on the cluster about its objects; it is put back",
		})
	}
}

// announce adds objects to the inventories before they are applied for the first time, so that
// every object on the cluster is in an inventory. It returns the tasks that may continue, for which it uses
// the memory of the list, and the outcomes of those whose inventory could not be written.
func (i *inventories) announce(ctx context.Context, tasks []apply.Task, touched map[api.PlacementKey]bool) (ready []apply.Task, failed []apply.Outcome) {
	added := map[api.PlacementKey][]inventory.Item{}
	for _, t := range tasks {
		if p, id := t.Placement, t.Manifest.ID; t.Item == nil && t.SuspendedReason == "" && !i.Works().OnlyCompares(p) {
			added[p] = append(added[p], cmp.Or(i.ranElsewhere(t), inventory.Item{Group: id.Group, Version: t.Res.Version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}))
		}
	}
	refused := i.withoutRoom(added)
	for p := range added {
		if r := i.Works().Of(p).Revision; r != (placement.Revision{}) {
			// After a restart without the ledger, the cluster must not return to an older
			// revision, which would delete what was added since.
			i.owned.Inventory(p).SetRevision(r)
		}
	}
	errs := i.grow(ctx, added, touched, "announced")
	if i.store.ClaimedByOther() {
		return nil, nil
	}
	ready = tasks[:0]
	for _, t := range tasks {
		if err := cmp.Or(refused[t.Placement], errs[t.Placement]); err != nil && t.Item == nil {
			failed = append(failed, apply.Outcome{Task: t, Cond: diff.ApplyFailed(diff.Create, err), Err: err})
			continue
		}
		if t.Item == nil {
			t.Item = i.owned.View().Item(t.Placement, t.Manifest.ID)
		}
		if !i.progress.HasRun(t.Manifest, t.Item) || i.live.Of(t.Manifest.ID) != nil {
			ready = append(ready, t)
		}
	}
	return ready, failed
}

// withoutRoom removes from added the placements that cannot get an inventory, and returns why.
func (i *inventories) withoutRoom(added map[api.PlacementKey][]inventory.Item) map[api.PlacementKey]error {
	refused := inventory.WithoutRoom(i.owned.Inventories(), maps.Keys(added))
	maps.DeleteFunc(added, func(p api.PlacementKey, _ []inventory.Item) bool { return refused[p] != nil })
	return refused
}

// announceRecreation records in the inventory that the object of a task is created again, so that its absence is no
// drift, and writes that. The object may be deleted if this succeeds.
func (i *inventories) announceRecreation(ctx context.Context, t apply.Task) error {
	inv := i.owned.Inventories().Of(t.Placement)
	i.owned.Unapplied(t.Placement, t.Item)
	err := i.store.Save(ctx, inv)
	if err != nil {
		i.owned.StillThere(t.Placement, t.Item)
		inv.Invalidate() // parts of it may be
	}
	return err
}

// ranElsewhere returns the object of a task as another inventory lists it, if it has run with the
// same content and is gone; zero otherwise.
func (i *inventories) ranElsewhere(t apply.Task) inventory.Item {
	if controllers.RunOf(t.Manifest.Object.Content) != nil && i.live.Of(t.Manifest.ID) == nil {
		for _, inv := range i.owned.Inventories() {
			if it := inv.Items.Of(t.Manifest.ID); i.progress.HasRun(t.Manifest, it) {
				return *it
			}
		}
	}
	return inventory.Item{}
}

// grow adds items to inventories and records that on the cluster: with one request for several placements, after which their
// inventories are written with the next save, or else in each inventory. It returns the inventories that could not be written,
// which have their items as before.
func (i *inventories) grow(ctx context.Context, added map[api.PlacementKey][]inventory.Item, touched map[api.PlacementKey]bool, fault string) map[api.PlacementKey]error {
	failed := map[api.PlacementKey]error{}
	var all []*inventory.Inventory
	for p, items := range added {
		inv := i.owned.Inventory(p)
		for _, it := range items {
			inv.Items.Put(it)
		}
		inv.Abandon, touched[p] = i.Works().Of(p).Abandon, true
		all = append(all, inv)
	}
	// With the deletion of the announcement, two placements would save no request.
	if len(all) > 2 && inventory.Announce(ctx, i.store, all, added) {
		for _, inv := range all {
			inv.Invalidate()
		}
		faults.At(fault)
		return failed
	}
	i.writeAll(ctx, all, func(inv *inventory.Inventory, err error) {
		if failed[inv.Placement()] = err; err != nil {
			for _, it := range added[inv.Placement()] {
				inv.Items.Drop(it.ID())
			}
			inv.Invalidate() // some parts may have been written
		}
		faults.At(fault)
	})
	return failed
}

// handOver adds objects to the inventories of the placements that wait for them, before they
// are removed from the old inventories. It returns the placements whose inventories could not be
// written, whose objects stay where they are.
func (i *inventories) handOver(ctx context.Context, stales []owned.Stale, touched map[api.PlacementKey]bool) (failed map[api.PlacementKey]error) {
	added := map[api.PlacementKey][]inventory.Item{}
	for _, st := range stales {
		if st.NewOwner == (api.PlacementKey{}) || i.owned.View().Owns(st.NewOwner, st.ID()) {
			continue
		}
		it := *st.Item
		if it.End == "" || i.live.Of(it.ID()) != nil {
			it.Hash = "" // the new owner has yet to apply it
		}
		added[st.NewOwner] = append(added[st.NewOwner], it)
	}
	refused := i.withoutRoom(added)
	failed = i.grow(ctx, added, touched, "handed-over")
	maps.Copy(failed, refused)
	for p, err := range failed {
		if err != nil {
			failed[p] = fmt.Errorf("hand over to %s: %w", p, err)
		}
	}
	return failed
}
