package member

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A blockedDeletion says why an object that is no longer desired, or is to be recreated, is kept
// until a commit allows its deletion.
type blockedDeletion struct {
	why string
	// next is the time at which it is checked again whether the object may be deleted, and
	// tries counts the checks for the backoff. next is zero if only new work can allow the
	// deletion.
	next  time.Time
	tries retry.Backoff
}

// A deletionBlocker knows which deletions are blocked.
type deletionBlocker struct {
	*cluster
	desired.View
	owned    owned.View
	progress progress.View
	// blocked are the objects whose deletion is blocked, with the reason.
	blocked map[api.ID]blockedDeletion
}

// decide decides before a full pass which objects are not deleted: those whose deletion
// the works block and, if the others and the objects to be recreated are too many, all of these.
// deletes reports whether a stale object would be deleted without a user's consent.
func (d *deletionBlocker) decide(ids map[api.ID]bool, deletes func(owned.Stale) bool, recreated []api.ID) {
	before := d.blocked
	d.blocked = map[api.ID]blockedDeletion{}
	going, byWork, total := d.deletionsOf(ids, deletes)
	for id, why := range byWork {
		d.block(id, why)
	}
	d.blockIfTooMany(going, recreated, total)
	d.logBlocked(before)
}

// blockIfTooMany blocks some deletions and all recreations if both together are too many at once.
// total is the number of objects that inventories list.
func (d *deletionBlocker) blockIfTooMany(going []owned.Stale, recreated []api.ID, total int) {
	why := d.cfg.DeletionLimit.TooMuch(len(going)+len(recreated), total)
	if why == "" {
		return
	}
	for _, st := range going {
		d.block(st.ID(), why)
	}
	for _, id := range recreated {
		d.block(id, why)
	}
}

// deletionsOf returns the stale objects among ids that would be deleted without a user's
// consent, the reasons why works block those of others, and how many of ids the inventories list.
func (d *deletionBlocker) deletionsOf(ids map[api.ID]bool, deletes func(owned.Stale) bool) (going []owned.Stale, byWork map[api.ID]string, total int) {
	listing := d.owned.ListingsFor(len(ids))
	for id := range ids {
		all := listing(id)
		total += len(all)
		for _, st := range d.owned.StalesIn(id, all) {
			if !st.PassesOn() && deletes(st) {
				going = append(going, st)
			}
		}
	}
	with := containersByPlacement(going)
	byWork = map[api.ID]string{}
	going = slices.DeleteFunc(going, func(st owned.Stale) bool {
		why := d.owned.DeletionBlocked(st, with[st.Placement()])
		if why != "" {
			byWork[st.ID()] = why
		}
		return why != ""
	})
	return going, byWork, total
}

// logBlocked logs the deletions that were not blocked before, a line for each reason.
func (d *deletionBlocker) logBlocked(before map[api.ID]blockedDeletion) {
	news := map[string][]api.ID{}
	for id, b := range d.blocked {
		if before[id].why != b.why {
			news[b.why] = append(news[b.why], id)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(news)) {
		first := slices.MinFunc(news[why], api.ID.Compare)
		d.cfg.Log.Warn("deletions are blocked until a commit allows them", "cluster", d.cfg.Name, "objects", len(news[why]), "object", first.String(), "why", why)
	}
}

// containersByPlacement returns the stale objects whose deletion would delete others with them,
// by placement.
func containersByPlacement(going []owned.Stale) map[api.PlacementKey][]api.ID {
	out := map[api.PlacementKey][]api.ID{}
	for _, st := range going {
		if id := st.ID(); work.Contains(id.GroupKind()) {
			out[st.Placement()] = append(out[st.Placement()], id)
		}
	}
	return out
}

// containersOf returns the stale objects of a placement whose deletion would delete others with
// them.
func (d *deletionBlocker) containersOf(inv inventory.View) []api.ID {
	var going []owned.Stale
	for id := range inv.IDs() {
		if !work.Contains(id.GroupKind()) {
			continue
		}
		for _, st := range d.owned.Stales(id) {
			if st.Inventory == inv && !st.PassesOn() && d.deletes(st) {
				going = append(going, st)
			}
		}
	}
	return containersByPlacement(going)[inv.Placement()]
}

// deletes reports whether the removal of a stale object would delete it without a user's
// consent, according to the state that its watch reports. For an object that no watch reports
// the answer is yes.
func (d *deletionBlocker) deletes(st owned.Stale) bool {
	l := d.live.Of(st.ID())
	if l == nil && !d.watch.Of(st.Item.GroupVersionKind()).Complete() {
		return !d.owned.DeletionAllowed(st) && !d.owned.Abandons(st)
	}
	return d.deletesLive(st, l)
}

// deletesLive is deletes for an object with a known live state; nil if it does not exist. An
// object that is gone, terminating, no longer ours or only released is not deleted.
func (d *deletionBlocker) deletesLive(st owned.Stale, l *observed.Object) bool {
	return l != nil && l.Fleet == d.cfg.Fleet && !l.Terminating && !d.owned.DeletionAllowed(st) && !d.releases(st, l)
}

// releases reports whether a stale object is released instead of deleted, because it or its
// placement requests that.
func (d *deletionBlocker) releases(st owned.Stale, l *observed.Object) bool {
	return l.Kept || d.owned.Abandons(st)
}

// recreations returns the objects that are to be recreated, except those of placements whose
// deletions a commit allows.
func (d *deletionBlocker) recreations() (ids []api.ID) {
	for id, f := range d.progress.Failures() {
		w, isWanted := d.Wanted().Of(id)
		if f.Recreate && isWanted && f.Hash == w.Manifest.Hash && !d.Works().Of(w.Placement).AllowDelete {
			ids = append(ids, id)
		}
	}
	return ids
}

// blockRecreations blocks all recreations and all deletions if there are too many of both
// together. Blocked deletions still count the next time, and only a full pass releases them.
func (d *deletionBlocker) blockRecreations() {
	before := maps.Clone(d.blocked)
	going, _, total := d.deletionsOf(d.owned.Objects(), d.deletes)
	recreated := d.recreations()
	for _, id := range recreated {
		d.unblock(id)
	}
	d.blockIfTooMany(going, recreated, total)
	d.logBlocked(before)
}

// block keeps an object until a commit allows its deletion.
func (d *deletionBlocker) block(id api.ID, why string) { d.blocked[id] = blockedDeletion{why: why} }

// unblock forgets an object that is gone, or is not to be deleted any more.
func (d *deletionBlocker) unblock(id api.ID) { delete(d.blocked, id) }

// blockAndRecheck keeps an object because of the state of the cluster, and schedules checks of that state:
// soon at first, then every few minutes.
func (d *deletionBlocker) blockAndRecheck(id api.ID, why string) {
	b := d.blocked[id]
	if b.why == "" {
		d.cfg.Log.Warn("deletion is blocked until a commit allows it", "cluster", d.cfg.Name, "object", id.String(), "why", why)
	}
	b.why = why
	b.next = time.Now().Add(b.tries.Next(firstRecheck, lastRecheck))
	d.blocked[id] = b
}

// The shortest and longest time between two such checks.
const (
	firstRecheck = 10 * time.Second
	lastRecheck  = 5 * time.Minute
)

// recheckBlocked schedules checks of objects whose deletion is blocked if the reason may have
// changed, according to watch events about the object itself or about a deletion in its
// namespace, and retries of failed deletions of such namespaces. It adds those objects to touched.
func (d *deletionBlocker) recheckBlocked(touched map[api.ID]bool, retryNow func(api.ID) bool) {
	now := time.Now()
	for _, id := range slices.Collect(maps.Keys(touched)) {
		if b, blocked := d.blocked[id]; blocked && !b.next.IsZero() {
			b.next = now
			d.blocked[id] = b
		}
		if d.live.Of(id) != nil || id.Namespace == "" {
			continue
		}
		namespace := api.ID{Kind: "Namespace", Name: id.Namespace}
		if b, blocked := d.blocked[namespace]; blocked && !b.next.IsZero() {
			b.next, touched[namespace] = now, true
			d.blocked[namespace] = b
		}
		if retryNow(namespace) {
			touched[namespace] = true
		}
	}
}

// stillBlocked reports whether an object exists, its deletion is blocked, and the next check is
// not due.
func (d *deletionBlocker) stillBlocked(it *inventory.Item) bool {
	b, blocked := d.blocked[it.ID()]
	gone := d.live.Of(it.ID()) == nil && d.watch.Of(it.GroupVersionKind()).Complete()
	return blocked && !gone && (b.next.IsZero() || time.Now().Before(b.next))
}
