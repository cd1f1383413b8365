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
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A braked object is no longer desired, or is to be recreated, and is kept until a commit
// allows its deletion.
type braked struct {
	why string
	// next is the time at which it is checked again whether the object may be deleted, and
	// tries counts the checks for the backoff. next is zero if only new work can allow the
	// deletion.
	next  time.Time
	tries retry.Backoff
}

// A deletionBrake knows which deletions are held.
type deletionBrake struct {
	*cluster
	desired.View
	owned    *ownership
	progress progress.View
	// braked are the objects whose deletion is held, with the reason.
	braked map[api.ID]braked
}

// decide decides before a full pass which objects are not deleted: those that the works hold
// and, if the others and the objects to be recreated are too many, all of these. deletes
// reports whether a stale object would be deleted without a user's consent.
func (d *deletionBrake) decide(ids map[api.ID]bool, deletes func(stale) bool, recreated []api.ID) {
	before := d.braked
	d.braked = map[api.ID]braked{}
	going, held, total := d.deletionsOf(ids, deletes)
	for id, why := range held {
		d.braked[id] = braked{why: why}
	}
	d.holdIfTooMany(going, recreated, total)
	d.logBraked(before)
}

// holdIfTooMany holds some deletions and all recreations if both together are too many at once.
// total is the number of objects that inventories list.
func (d *deletionBrake) holdIfTooMany(going []stale, recreated []api.ID, total int) {
	why := d.cfg.Brake.TooMuch(len(going)+len(recreated), total)
	if why == "" {
		return
	}
	for _, st := range going {
		d.braked[st.item.ID()] = braked{why: why}
	}
	for _, id := range recreated {
		d.braked[id] = braked{why: why}
	}
}

// deletionsOf returns the stale objects among ids that would be deleted without a user's
// consent, the reasons why works hold others, and how many of ids the inventories list.
func (d *deletionBrake) deletionsOf(ids map[api.ID]bool, deletes func(stale) bool) (going []stale, held map[api.ID]string, total int) {
	listing := d.owned.listingsFor(len(ids))
	for id := range ids {
		all := listing(id)
		total += len(all)
		for _, st := range d.owned.stalesIn(id, all) {
			if !st.passesOn() && deletes(st) {
				going = append(going, st)
			}
		}
	}
	with := containersByPlacement(going)
	held = map[api.ID]string{}
	going = slices.DeleteFunc(going, func(st stale) bool {
		why := d.owned.deletionBlocked(st, with[st.inv.Placement()])
		if why != "" {
			held[st.item.ID()] = why
		}
		return why != ""
	})
	return going, held, total
}

// logBraked logs the deletions that were not held before, a line for each reason.
func (d *deletionBrake) logBraked(before map[api.ID]braked) {
	news := map[string][]api.ID{}
	for id, b := range d.braked {
		if before[id].why != b.why {
			news[b.why] = append(news[b.why], id)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(news)) {
		first := slices.MinFunc(news[why], api.ID.Compare)
		d.cfg.Log.Warn("deletions are held until a commit allows them", "cluster", d.cfg.Name, "objects", len(news[why]), "object", first.String(), "why", why)
	}
}

// containersByPlacement returns the stale objects whose deletion would delete others with them,
// by placement.
func containersByPlacement(going []stale) map[api.PlacementKey][]api.ID {
	out := map[api.PlacementKey][]api.ID{}
	for _, st := range going {
		if id := st.item.ID(); work.Contains(id.GroupKind()) {
			out[st.inv.Placement()] = append(out[st.inv.Placement()], id)
		}
	}
	return out
}

// containersOf returns the stale objects of a placement whose deletion would delete others with
// them.
func (d *deletionBrake) containersOf(inv *inventory.Inventory) []api.ID {
	var going []stale
	for id := range inv.Items.IDs() {
		if !work.Contains(id.GroupKind()) {
			continue
		}
		for _, st := range d.owned.stales(id) {
			if st.inv == inv && !st.passesOn() && d.deletes(st) {
				going = append(going, st)
			}
		}
	}
	return containersByPlacement(going)[inv.Placement()]
}

// deletes reports whether the removal of a stale object would delete it without a user's
// consent, according to the state that its watch reports. For an object that no watch reports
// the answer is yes.
func (d *deletionBrake) deletes(st stale) bool {
	l := d.live.Of(st.item.ID())
	if l == nil && !d.watch.Of(st.item.GroupVersionKind()).Complete() {
		return !d.owned.allowed(st) && !d.owned.abandons(st)
	}
	return d.deletesLive(st, l)
}

// deletesLive is deletes for an object with a known live state; nil if it does not exist. An
// object that is gone, terminating, no longer ours or only released is not deleted.
func (d *deletionBrake) deletesLive(st stale, l *observed.Object) bool {
	return l != nil && l.Fleet == d.cfg.Fleet && !l.Terminating && !d.owned.allowed(st) && !d.releases(st, l)
}

// releases reports whether a stale object is released instead of deleted, because it or its
// placement requests that.
func (d *deletionBrake) releases(st stale, l *observed.Object) bool {
	return l.Kept || d.owned.abandons(st)
}

// recreations returns the objects that are to be recreated, except those of placements whose
// deletions a commit allows.
func (d *deletionBrake) recreations() (ids []api.ID) {
	for id, f := range d.progress.Failures() {
		w, isWanted := d.Wanted().Of(id)
		if f.Recreate && isWanted && f.Hash == w.Manifest.Hash && !d.Works().Of(w.Placement).AllowDelete {
			ids = append(ids, id)
		}
	}
	return ids
}

// brakeRecreations holds all recreations and all deletions if there are too many of both
// together. Held deletions still count the next time, and only a full pass releases them.
func (d *deletionBrake) brakeRecreations() {
	before := maps.Clone(d.braked)
	going, _, total := d.deletionsOf(d.owned.inventoried(), d.deletes)
	recreated := d.recreations()
	for _, id := range recreated {
		delete(d.braked, id)
	}
	d.holdIfTooMany(going, recreated, total)
	d.logBraked(before)
}

// hold keeps an object because of the state of the cluster, and schedules checks of that state:
// soon at first, then every few minutes.
func (d *deletionBrake) hold(id api.ID, why string) {
	b := d.braked[id]
	if b.why == "" {
		d.cfg.Log.Warn("deletion is held until a commit allows it", "cluster", d.cfg.Name, "object", id.String(), "why", why)
	}
	b.why = why
	b.next = time.Now().Add(b.tries.Next(firstRecheck, lastRecheck))
	d.braked[id] = b
}

// The shortest and longest time between two such checks.
const (
	firstRecheck = 10 * time.Second
	lastRecheck  = 5 * time.Minute
)

// recheckHeld schedules checks of held objects whose reason may have changed, according to
// watch events about the object itself or about a deletion in its namespace, and retries of failed deletions of such namespaces. It
// adds those objects to touched.
func (d *deletionBrake) recheckHeld(touched map[api.ID]bool, retryNow func(api.ID) bool) {
	now := time.Now()
	for _, id := range slices.Collect(maps.Keys(touched)) {
		if b, held := d.braked[id]; held && !b.next.IsZero() {
			b.next = now
			d.braked[id] = b
		}
		if d.live.Of(id) != nil || id.Namespace == "" {
			continue
		}
		namespace := api.ID{Kind: "Namespace", Name: id.Namespace}
		if b, held := d.braked[namespace]; held && !b.next.IsZero() {
			b.next, touched[namespace] = now, true
			d.braked[namespace] = b
		}
		if retryNow(namespace) {
			touched[namespace] = true
		}
	}
}

// stillHeld reports whether an object exists, its deletion is held, and the next check is not
// due.
func (d *deletionBrake) stillHeld(it *inventory.Item) bool {
	b, held := d.braked[it.ID()]
	gone := d.live.Of(it.ID()) == nil && d.watch.Of(it.GroupVersionKind()).Complete()
	return held && !gone && (b.next.IsZero() || time.Now().Before(b.next))
}
