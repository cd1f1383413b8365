package member

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
)

// An observer passes what watches report to the recorder, and starts and ends watches.
type observer struct {
	*cluster
	desired.View
	owned    owned.View
	progress progress.View
	record   *recorder
	// established are the groups with a newly established definition that was not processed
	// yet.
	established map[string]bool
}

// recordChanges records the changes that the watches reported, unless a later write of our own is
// known. It returns the objects that have changed since the last call.
func (o *observer) recordChanges() map[api.ID]bool {
	news := o.watch.Changes.Drain()
	for _, k := range slices.Clone(o.watch.All()) {
		if k.Unserved() {
			o.record.kindUnserved(k.GVK)
		}
	}
	touched := o.record.progress.TakeUnprocessed()
	for kind, all := range news.Lists {
		for _, id := range o.record.listed(kind, all) {
			touched[id] = true
		}
	}
	for id, l := range news.Seen {
		old := o.live.Of(id)
		if old != nil && l.Version > 0 && l.Version < old.Version && old.Version <= news.Lists[id.GroupKind()].Version {
			// A restore may raise the version of the cluster beyond all that were known, which makes watches list again.
			o.watch.Changes.SetRestored(fmt.Sprintf("the cluster was restored to an earlier state (%s has the resource version %d in a list, and had %d before)", id, l.Version, old.Version))
		}
		if old != nil && (l.Version < old.Version || l.Version == old.Version && *l == *old) {
			continue // already known or superseded
		}
		if id.GroupKind() == discovery.Definitions && l.Health.State == health.Available && (old == nil || old.Health.State != health.Available || old.Generation != l.Generation) {
			o.definitionEstablished(id)
		}
		if o.writtenByOthers(id, old, l) {
			o.record.progress.Suspect(id)
		}
		o.record.seen(id, l)
		touched[id] = true
	}
	for id, last := range news.Gone {
		if old := o.live.Of(id); old != nil && (last.Version == 0 || last.Version >= old.Version) {
			o.record.vanished(id, last)
			touched[id] = true
		}
	}
	for _, id := range o.pods.Answers() {
		touched[id] = true
	}
	return touched
}

// clockSkew is the maximum difference between the clocks of a cluster's API servers.
const clockSkew = 2 // seconds

// writtenWhileAway reports whether an object of which only the inventory is known may have been
// changed while the agent was not running: it is another object, it was applied under our name after the
// inventory was last written, it was accepted with the values of others and they have written to it
// since, or they may have added something to it.
func (o *observer) writtenWhileAway(id api.ID, now *observed.Object) bool {
	w, isWanted := o.Wanted().Of(id)
	if !isWanted {
		return false
	}
	if it := o.owned.Item(w.Placement, id); it != nil && (it.UID != "" && it.UID != now.UID || it.OthersState != "" && it.OthersState != now.OthersState()) {
		return true
	}
	if now.Extended && o.cfg.Additions.Looks() {
		return true
	}
	inv, found := o.owned.Of(w.Placement)
	return found && inv.Applied() > 0 && now.Applied > inv.Applied()+clockSkew
}

// writtenByOthers reports whether others have written an object since its state was last known,
// so that its values may have changed. Changes of its status do not count.
func (o *observer) writtenByOthers(id api.ID, old, now *observed.Object) bool {
	if old == nil {
		return o.writtenWhileAway(id, now)
	}
	if old.UID != now.UID {
		return true // somebody has created it again, for example from a backup, which may also have its managedFields
	}
	if now.Version <= old.Version {
		return false
	}
	if o.store.Has(id) {
		return now.Applied != old.Applied
	}
	if now.Applied != old.Applied || now.Others != old.Others || now.Generation != old.Generation {
		return true
	}
	if now.Generation > 0 {
		return false
	}
	// A watch of metadata without generations sees each version as new content, since such
	// kinds have no relevant status.
	w, isWanted := o.Wanted().Of(id)
	if !isWanted {
		return false
	}
	k := o.watch.Of(w.GVK())
	return k != nil && !k.Full
}

// definitionEstablished records that a definition was established, or that an established one
// has changed. The definition's name ends with its group.
func (o *observer) definitionEstablished(definition api.ID) {
	if o.established == nil {
		o.established = map[string]bool{}
	}
	_, group, _ := strings.Cut(definition.Name, ".")
	o.established[group] = true
}

// retryWaiting makes retries due at once of objects that waited for a namespace that has changed, or
// for a kind whose definition was established.
func (o *observer) retryWaiting(touched map[api.ID]bool) {
	for id := range touched {
		if o.live.Of(id) != nil && id.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			for _, other := range o.record.progress.RetryNamespace(id.Name) {
				touched[other] = true
			}
		}
	}
	if o.established == nil {
		return
	}
	o.kinds.RetryLookups(o.established)
	for _, id := range o.record.progress.RetryKinds(o.established) {
		touched[id] = true
	}
	o.established = nil
}

// prepareKinds determines how the cluster serves the kinds of some objects, and watches them. It
// adds to ids the objects that have waited for one of these kinds.
func (o *observer) prepareKinds(ctx context.Context, ids map[api.ID]bool) error {
	gvks := map[schema.GroupVersionKind]bool{{Version: "v1", Kind: "ConfigMap"}: true}
	whole, listing := map[schema.GroupVersionKind]bool{}, o.owned.ListingsFor(len(ids))
	for id := range ids {
		if w, ok := o.Wanted().Of(id); ok {
			gvk := w.GVK()
			gvks[gvk] = true
			whole[gvk] = whole[gvk] || needsWholeObject(w.Manifest)
		}
		for _, inv := range listing(id) {
			gvk, _ := inv.GroupVersionKind(id)
			gvks[gvk] = true
		}
	}
	o.addWaiting(ids, gvks, whole)
	if slices.ContainsFunc(slices.Collect(maps.Keys(gvks)), func(gvk schema.GroupVersionKind) bool { return o.watch.Of(gvk) == nil }) {
		defer acquireSlot(ctx, o.cfg.Arrivals, lateAnswer)()
	}
	asking, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	if err := o.kinds.Resolve(asking, gvks); err != nil {
		return o.conn.RecordResult(err)
	}
	var started []*watch.Kind
	for gvk := range gvks {
		res, ok := o.kinds.Of(gvk)
		k := o.watch.Of(gvk)
		if k != nil && whole[gvk] && !k.Full {
			o.watch.End(k) // metadata is no longer enough
			k = nil
		}
		if ok && k == nil {
			started = append(started, o.watch.Start(ctx, gvk, res, whole[gvk]))
		}
	}
	o.waitForLists(ctx, started)
	return nil
}

// addWaiting adds to ids the objects that wait for one of the kinds, and to whole those kinds whose
// whole objects they need. If the kind is known now, they are processed too. One that waits for another object is of
// another kind.
func (o *observer) addWaiting(ids map[api.ID]bool, gvks, whole map[schema.GroupVersionKind]bool) {
	for id, f := range o.progress.Failures() {
		if !gvks[f.Unknown] || ids[id] {
			continue
		}
		if w, ok := o.Wanted().Of(id); ok {
			ids[id], gvks[w.GVK()], whole[w.GVK()] = true, true, whole[w.GVK()] || needsWholeObject(w.Manifest)
		}
	}
}

// needsWholeObject reports whether more than the metadata of an object must be watched.
func needsWholeObject(m *work.Manifest) bool {
	return availability.NeedsStatus(m) || controllers.RunOf(m.Object.Content) != nil
}

// waitForLists gives new watches time for their first list, so that existing objects are known
// before anything is written.
func (o *observer) waitForLists(ctx context.Context, started []*watch.Kind) {
	if len(started) == 0 || !o.watch.WaitForLists(ctx, started, o.cfg.Timeout) {
		return
	}
	o.record.progress.Postpone(o.recordChanges())
	o.watch.Changes.Notify()
}

// unwatch ends the watches of kinds that have no objects here any more.
func (o *observer) unwatch() {
	used := map[schema.GroupVersionKind]bool{{Version: "v1", Kind: "ConfigMap"}: true}
	for _, w := range o.Wanted().All() {
		used[w.GVK()] = true
	}
	o.owned.AddKinds(used)
	for _, k := range slices.Clone(o.watch.All()) {
		if !used[k.GVK] {
			o.watch.End(k)
		}
	}
}
