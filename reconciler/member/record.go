package member

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A recorder records what has become of objects: what is known of the cluster and of the progress with each object, the
// inventories, drift, the history and the log.
type recorder struct {
	*cluster
	desired.View
	owned       owned.View
	inventories *inventories
	progress    *progress.State
	blocker     *deletionBlocker
	drifts      *driftRecorder
	history     *journal
	// objects are the objects that are known to exist, which other parts only read, and counted is what of them counts for the
	// memory that all clusters share, in bytes.
	objects *observed.Objects
	counted int
	// superseded are manifests to be replaced; see Agent.
	superseded *owned.Superseded
	// ended are the placements whose inventories have an end that was not written yet.
	ended map[api.PlacementKey]bool
	// fresh are the namespaces that this pass has created.
	fresh map[string]bool
	// written are the placements of which something was written since their last report; see Agent.
	written *progress.Placements
}

// overBudget returns an error if the cluster has exceeded the budget of a member.
func (r *recorder) overBudget() error {
	if most := connection.MaxKeptItems; r.objects.Len() > most {
		return connection.Exceeded(most, "objects with the managed-by label")
	}
	if most := connection.MaxKeptText; r.objects.Text() > most {
		return connection.Exceeded(most>>20, "MiB of names and messages of objects with the managed-by label")
	}
	more := r.objects.Bytes() - r.counted
	r.counted += more
	if err := connection.Keep(r.conn.Memory(), more); err != nil {
		return err
	}
	return r.watch.Changes.Exceeded()
}

// outcome records the outcome of a task.
func (r *recorder) outcome(o apply.Outcome, touched map[api.PlacementKey]bool) {
	id := o.Manifest.ID
	before, _ := r.progress.View().Failure(id)
	r.history.addOutcome(o, before, r.drifts.drift.Undone(id).By)
	if old := r.live.Of(id); o.Written != nil && (old == nil || old.Version != o.Written.Version) || o.Err != nil && o.Do != diff.NeedRead {
		r.written.Add(o.Placement)
	}
	if o.Created && id.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		r.fresh[id.Name] = true
		r.progress.RetryNamespace(id.Name) // the watch will not report a change of it
	}
	if o.Written != nil {
		r.progress.Applied(id)
		r.superseded.Applied(id)
		l := o.Written
		l.Health = r.healthAfter(id, o, l)
		r.objects.Put(id, l)
		if r.inventories.owned.Applied(&o) {
			touched[o.Placement] = true
		}
	}
	if k := r.watch.Of(o.GVK()); o.Do == diff.Nothing && o.Snapshot.Live != nil && k.Refused() {
		l := observed.Of(o.Snapshot.Live) // no watch will report it
		l.Health = k.HealthOf(o.Snapshot.Live)
		r.objects.Put(id, l)
	}
	if r.inventories.owned.FieldsLeft(&o) {
		touched[o.Placement] = true
	}
	if o.Accepted != nil {
		r.accepted(&o, touched)
	}
	if connection.Unserved(o.Err) {
		r.kindUnserved(o.GVK())
	}
	if f, _ := r.progress.View().Failure(id); o.Written != nil && f.Recreate {
		r.blocker.unblock(id) // the object no longer has to be recreated
	}
	if o.Err == nil && !o.Gone && o.Cond.Reason != api.AppliedWithFailedDriftDetection && r.verifies(o.Object) {
		r.progress.Verified(id, r.live.OwnershipState(id))
	}
	r.drifts.recordOutcome(&o)
	if o.AsWanted() || o.Cond.Reason == api.ManifestApplied && len(o.Diffs) == 0 && o.Unremoved == nil && !r.Works().OnlyCompares(o.Placement) {
		r.progress.Settled(id)
		return
	}
	r.failure(o)
}

// accepted records in the inventory that an object already equals its new version.
func (r *recorder) accepted(o *apply.Outcome, touched map[api.PlacementKey]bool) {
	r.inventories.owned.AlreadyEqual(o)
	touched[o.Placement] = true
	if d := r.drifts.drift.Change(o.Placement, o.Manifest.ID); d.State != "" { // otherwise only something added was offered
		r.drifts.state.Ended(o.Placement, d)
	}
}

// healthAfter returns the health of an object that has just been written. For kinds that take
// time to become available, it is unknown until the watch reports it.
func (r *recorder) healthAfter(id api.ID, o apply.Outcome, l *observed.Object) health.Health {
	if !availability.NeedsStatus(o.Manifest) {
		return health.OfKind(o.GVK())
	}
	if k := r.watch.Of(o.GVK()); k.Refused() && o.Stored != nil {
		return k.HealthOf(o.Stored)
	}
	if old := r.live.Of(id); old != nil && old.Version == l.Version {
		return old.Health
	}
	return health.Health{State: health.NotAvailableYet, Message: "applied; its status is not known yet"}
}

// verifies reports whether an object must be read to know its state, because it is compared in
// full, an autoscaler may scale it, or it had fields that Git has removed.
func (r *recorder) verifies(w desired.Object) bool {
	it := r.owned.Item(w.Placement, w.Manifest.ID)
	return diff.CompareAfter(r.Works().Of(w.Placement).Strategy) || apply.Scaled(w.Manifest, r.live.Of(w.Manifest.ID)) || it != nil && it.Left != ""
}

// failure records why an object is not as desired, and when it is tried again.
func (r *recorder) failure(o apply.Outcome) {
	o.Cond.Cause = connection.Cut(o.Cond.Cause)
	id := o.Manifest.ID
	s := progress.Situation{State: r.live.OwnershipState(id), Watched: r.watched(id), Transient: r.isTransient(o)}
	if !o.Unknown.Empty() {
		s.Due = r.kinds.NextLookup(o.Unknown)
	}
	if r.Works().OnlyCompares(o.Placement) && o.Err == nil {
		s.Due = r.progress.View().NextComparison()
	}
	if r.progress.NotApplied(&o, s, time.Now()) {
		r.cfg.Log.Warn("object not applied", "cluster", r.cfg.Name, "placement", o.Placement.String(),
			"object", id.String(), "err", o.Cond.Message())
	}
}

// kindUnserved drops what is known of a kind that the cluster has answered not to serve any more in this
// version, and has its desired objects processed: the kind is looked up again, and their status says
// in which versions it is served.
func (r *recorder) kindUnserved(gvk schema.GroupVersionKind) {
	r.kinds.Forget(gvk)
	if k := r.watch.Of(gvk); k != nil {
		r.watch.End(k)
	}
	objects := map[api.ID]bool{}
	for id, w := range r.Wanted().All() {
		if w.GVK() == gvk {
			objects[id] = true
		}
	}
	r.progress.Postpone(objects)
	r.watch.Changes.Notify()
}

// A pendingDefinition says that a kind waits until its definition, which is placed on the
// cluster too, is established.
type pendingDefinition struct{ error }

// Unwrap returns the error of the API server.
func (c *pendingDefinition) Unwrap() error { return c.error }

// isTransient reports whether the reason why an object was not applied will pass by itself: its
// definition or namespace is placed here too, it is being deleted, or an API server or admission webhook does not
// respond. A server uses the schema of a changed definition only after a moment.
func (r *recorder) isTransient(o apply.Outcome) bool {
	var coming *pendingDefinition
	switch {
	case o.Err == nil:
		return o.Transient
	case errors.As(o.Err, &coming), apierrors.HasStatusCause(o.Err, "NamespaceTerminating"):
		return true
	case connection.ForbiddenByNamespace(o.Err):
		_, placed := r.Wanted().Of(api.ID{Kind: "Namespace", Name: o.Manifest.ID.Namespace})
		return placed
	case connection.RefusedBySchema(o.Err):
		return definitionOf(o.GVK(), r.Wanted()) != nil
	}
	return connection.IsUnreachable(o.Err) ||
		apierrors.IsTooManyRequests(o.Err) || apierrors.IsInternalError(o.Err) || apierrors.IsServiceUnavailable(o.Err) ||
		apierrors.IsServerTimeout(o.Err) || apierrors.IsTimeout(o.Err)
}

// definitionOf returns the definition of a kind among some objects; nil if there is none.
func definitionOf(gvk schema.GroupVersionKind, among desired.Objects) *desired.Object {
	for id, w := range among.All() {
		if id.GroupKind() == discovery.Definitions && discovery.Defines(w.Manifest.Object.Content, gvk) {
			return &w
		}
	}
	return nil
}

// watched reports whether the watch reports every change of an object.
func (r *recorder) watched(id api.ID) bool {
	w, isWanted := r.Wanted().Of(id)
	return isWanted && r.live.Of(id) != nil && r.watch.Of(w.GVK()).Complete()
}

// seen records an object as a watch has reported it.
func (r *recorder) seen(id api.ID, l *observed.Object) {
	r.objects.Put(id, l)
	r.hasEnded(id, l)
}

// vanished records that a watch has reported the end of an object. last is the object as it was then.
func (r *recorder) vanished(id api.ID, last *observed.Object) {
	r.hasEnded(id, last)
	if w, isWanted := r.Wanted().Of(id); isWanted && !last.Ended && controllers.RunOf(w.Manifest.Object.Content) != nil {
		r.progress.CutShort(id)
	}
	r.objects.Drop(id)
}

// listed records what a list of a kind has found, and returns the objects that do not exist any more.
func (r *recorder) listed(kind schema.GroupKind, all observed.List) []api.ID {
	return r.objects.DropMissing(kind, all)
}

// hasEnded records in the inventory that an object has run to its end: a controller may delete it
// from now on.
func (r *recorder) hasEnded(id api.ID, l *observed.Object) {
	if !l.Ended {
		return
	}
	w, _ := r.Wanted().Of(id)
	if r.inventories.owned.Ended(w.Placement, id, l) {
		r.ended[w.Placement] = true
	}
}

// setLive records an object as an answer of the server shows it, before a watch reports that; nil if it does not exist, or is to be read.
func (r *recorder) setLive(id api.ID, l *observed.Object) {
	if l == nil {
		r.objects.Drop(id)
	} else {
		r.objects.Put(id, l)
	}
}

// changedValues records that others have changed values of an object that is as it was applied by its metadata.
func (r *recorder) changedValues(id api.ID) {
	w, _ := r.Wanted().Of(id)
	r.inventories.owned.ValuesChanged(w.Placement, id)
}

// begin begins a pass, and returns the placements whose inventories have to be written after it.
func (r *recorder) begin() (touched map[api.PlacementKey]bool) {
	touched = maps.Clone(r.ended)
	clear(r.ended)
	clear(r.fresh)
	return touched
}

// pruning records that stale objects of some placements are being removed.
func (r *recorder) pruning(stales []owned.Stale) {
	for _, st := range stales {
		r.progress.Pruning(st.Placement())
	}
}

// reported records that a placement is reported, and returns which deletions it had since its report before, and whether something of it
// was written.
func (r *recorder) reported(p api.PlacementKey) (deletions []protocol.Deletion, wrote bool) {
	r.progress.Reported(p)
	return r.history.deletions.Take(p), r.written.Take(p)
}

// removal records the outcome of the removal of a stale object.
func (r *recorder) removal(o removal, touched map[api.PlacementKey]bool) {
	id, p := o.ID(), o.Placement()
	if o.requested != "" {
		r.history.addRemoval(p, id, o.requested, r.Works().Of(p).Cause, o.shown, r.progress.View().HasFailed(id))
	}
	if o.deleting != nil {
		r.objects.Put(id, o.deleting)
	}
	switch kept := o.kept.(type) {
	case *decide.BlockedError:
		r.blocker.block(id, kept.Why)
	case *decide.ContentError:
		r.blocker.blockAndRecheck(id, kept.Why)
	case *decide.OrderError:
		r.progress.DeletionWaits(progress.Deletion{ID: id, Placement: p}, kept.First)
	}
	switch {
	case o.err != nil:
		r.notRemoved(o)
	case o.lingers:
		r.lingers(o)
	}
	if o.gone {
		r.inventories.owned.Removed(p, id)
		if !o.HandedOver {
			r.progress.Settled(id)
		}
		if !o.PassesOn() {
			r.blocker.unblock(id)
		}
		touched[p] = true
		faults.At("pruned")
	} else if l := r.live.Of(id); l != nil && l.Terminating && !o.PassesOn() && o.Item.Hash != "" {
		r.inventories.owned.Unapplied(p, o.Item) // if it is wanted again before it is gone, that is no drift
		touched[p] = true
	}
}

// lingers schedules a read of an object that was deleted and still exists. An object is read only if no
// watch reports its end, or if its conditions say why it still exists.
func (r *recorder) lingers(o removal) {
	id := o.ID()
	if !deletion.Explains(id.GroupKind()) && r.watch.Of(o.Item.GroupVersionKind()).Complete() {
		r.progress.Settled(id)
		return
	}
	r.progress.NotGone(id, o.stays, time.Now())
}

// notRemoved records that a removal failed. It is retried with backoff, and the report says why the object still
// exists.
func (r *recorder) notRemoved(o removal) {
	if connection.Unserved(o.err) {
		r.kindUnserved(o.Item.GroupVersionKind()) // the retry finds another version
	}
	id := o.ID()
	if r.progress.NotRemoved(id, o.err, o.shown, time.Now()) {
		r.cfg.Log.Warn("object not removed", "cluster", r.cfg.Name, "placement", o.Placement().String(), "object", id.String(), "err", o.shown)
	}
}

// notHandedOver records that objects stay where they are, since the inventories of their new owners cannot be written: it logs one line
// for each inventory.
func (r *recorder) notHandedOver(stales []owned.Stale, failed map[api.PlacementKey]error) {
	objects, due := map[api.PlacementKey]int{}, map[api.PlacementKey]bool{}
	for _, st := range stales {
		if err := failed[st.NewOwner]; err != nil {
			objects[st.NewOwner]++
			due[st.NewOwner] = r.progress.NotRemoved(st.ID(), err, err, time.Now()) || due[st.NewOwner]
		}
	}
	for _, to := range slices.SortedFunc(maps.Keys(due), api.PlacementKey.Compare) {
		if due[to] {
			r.cfg.Log.Warn("objects not handed over; trying again", "cluster", r.cfg.Name, "placement", to.String(), "objects", objects[to], "err", failed[to])
		}
	}
}

// recreation records the outcome of the deletion of an object that is created anew. If the object is gone at once, it
// returns the task that creates it; otherwise it records why the object is still there.
func (r *recorder) recreation(o recreation, touched map[api.PlacementKey]bool) (create apply.Task, gone bool) {
	t, id := o.Task, o.Manifest.ID
	if o.blocked != "" {
		r.notRecreated(t, "its recreation is blocked: "+o.blocked, "blocked")
		return t, false
	}
	touched[t.Placement] = true
	if o.refused {
		r.inventories.owned.StillThere(t.Placement, t.Item)
	}
	if o.deleted {
		cause := work.Cause{Commit: r.Works().Of(t.Placement).Revision.Commit, Why: "an immutable field changed, and " + api.RecreateAnnotation + " asks to create the object anew"}
		r.history.addRemoval(t.Placement, id, history.Deleted, cause, nil, false)
	}
	if o.err != nil {
		reason := cmp.Or(connection.RefusalReason(o.err), connection.WithoutPort(o.err))
		cond := r.notRecreated(t, "it is not deleted to be created anew: "+o.err.Error(), reason)
		if r.progress.LogNotRecreated(id, reason) {
			r.cfg.Log.Warn("object not recreated", "cluster", r.cfg.Name, "placement", t.Placement.String(), "object", id.String(), "err", cond.Message())
		}
		return t, false
	}
	announced := r.inventories.owned.Unapplied(t.Placement, t.Item)
	t.Item, t.Drift, t.Absent, t.Step, t.Found = &announced, false, true, decide.Write, nil
	if t.Replaced != nil {
		r.progress.Recreating(id, t.Replaced)
	}
	if o.result != connection.DeletionPending {
		r.objects.Drop(id)
		return t, true
	}
	if l := r.live.Of(id); l != nil && !r.watch.Of(t.GVK()).Complete() {
		r.objects.Drop(id) // no watch event would report that it is gone
	} else if l != nil {
		terminating := *l
		terminating.Terminating = true
		r.objects.Put(id, &terminating)
	}
	r.failure(apply.Outcome{Task: t, Cond: (&decide.BeingDeletedError{Finalizers: strings.Join(o.finalizers, ",")}).Condition(), Transient: true})
	return t, false
}

// notRecreated adds to the condition of an object why it is not recreated, and returns it. It adds the message
// to the history if the reason has changed.
func (r *recorder) notRecreated(t apply.Task, why, reason string) diff.Condition {
	cond, news := r.progress.NotRecreated(t.Manifest.ID, why, reason)
	if r.cfg.Record != nil && news {
		e := r.history.entry(t.Placement, t.Manifest.ID)
		e.Event, e.Message = history.Failed, cond.Message()
		r.cfg.Record(e)
	}
	return cond
}

// A recreation is the outcome of an attempt to delete an object so that it is created anew.
type recreation struct {
	apply.Task
	// blocked is why the deletion is blocked; empty if it is not.
	blocked string
	// err is why the object was not deleted, and refused reports whether the API server refused that.
	err     error
	refused bool
	// result says whether the object is gone, and deleted whether it was deleted just now.
	result  connection.DeleteResult
	deleted bool
	// finalizers are the finalizers of an object that still exists.
	finalizers []string
}

// A removal is the outcome of an attempt to remove a stale object.
type removal struct {
	owned.Stale
	// gone says that the object is no longer ours, so that its inventory need not list it any more.
	gone bool
	// requested is what was requested of the cluster, history.Deleted or history.Released; empty if nothing was.
	requested history.Event
	// err is why the removal failed, and shown is the same without values of Secrets.
	err, shown error
	// kept is why the object is not deleted now, although nothing has failed; see decide.Delete.
	kept error
	// deleting is the object as it is after it was deleted, if a watch reports its end; nil otherwise.
	deleting *observed.Object
	// lingers says that it was deleted and still exists, and stays is why, according to its conditions; nil if
	// those were not read.
	lingers bool
	stays   *string
}
