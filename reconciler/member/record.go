package member

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A recorder records what has become of objects: what is known of the cluster and of the progress with each object, the
// inventories, drift, the history and the log.
type recorder struct {
	*cluster
	*ownership
	*progress
	brake   *deletionBrake
	drifts  *driftRecorder
	history *journal
	// fresh are the namespaces that this pass has created.
	fresh map[string]bool
	// written are the placements of which something was written since their last report; see Agent.
	written map[api.PlacementKey]bool
}

// outcome records the outcome of a task.
func (r *recorder) outcome(o outcome, touched map[api.PlacementKey]bool) {
	id := o.manifest.ID
	r.history.addOutcome(o, r.drifts.flips[id].By)
	if old := r.live.Of(id); o.written != nil && (old == nil || old.Version != o.written.Version) || o.err != nil && o.do != diff.NeedRead {
		r.written[o.placement] = true
	}
	if o.created && id.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		r.fresh[id.Name] = true
		r.retryNamespace(id.Name) // the watch will not report a change of it
	}
	if o.written != nil {
		delete(r.suspects, id)
		delete(r.replaced, id)
		delete(r.superseded.manifests, id)
		l := o.written
		l.Health = r.healthAfter(id, o, l)
		r.live.Put(id, l)
		it := o.item
		if it.Hash != o.manifest.Hash || it.Managed != l.Managed || it.OthersState != "" || it.UID != l.UID || it.Version != o.res.Version {
			touched[o.placement] = true
		}
		if it.Hash != o.manifest.Hash || it.UID != l.UID {
			it.End = ""
		}
		delete(r.cutShort, id)
		if it.Hash != o.manifest.Hash {
			it.Commit = r.works.of(o.placement).Revision.Commit
		}
		it.Version, it.Hash, it.Managed, it.OthersState, it.UID = o.res.Version, o.manifest.Hash, l.Managed, "", l.UID
		r.inv[o.placement].Items.Put(*it)
	}
	if k := r.watch.Of(o.gvk()); o.do == diff.Nothing && o.snapshot.live != nil && k.Refused() {
		l := observed.Of(o.snapshot.live) // no watch will report it
		l.Health = k.HealthOf(o.snapshot.live)
		r.live.Put(id, l)
	}
	if o.left != nil && o.item.Left != *o.left {
		o.item.Left = *o.left
		r.inv[o.placement].Items.Put(*o.item)
		touched[o.placement] = true
	}
	if o.accepted != nil {
		r.accepted(&o, touched)
	}
	if connection.Unserved(o.err) {
		r.forgetKind(r.cluster, r.ownership, o.gvk())
	}
	if t := r.failed[id]; o.written != nil && t != nil && t.recreate {
		delete(r.brake.braked, id) // the object no longer has to be recreated
	}
	if o.err == nil && !o.gone && o.cond.Reason != api.AppliedWithFailedDriftDetection && r.verifies(o.wanted) {
		r.verified[id] = r.live.OwnershipState(id)
	}
	r.drifts.recordOutcome(&o)
	if o.asWanted() || o.cond.Reason == api.ManifestApplied && len(o.diffs) == 0 && o.unremoved == nil && !r.works.onlyCompares(o.placement) {
		r.settled(id)
		return
	}
	r.failure(o)
}

// accepted records in the inventory that an object already equals its new version.
func (r *recorder) accepted(o *outcome, touched map[api.PlacementKey]bool) {
	it := *o.item
	it.Hash, it.Managed, it.OthersState = o.manifest.Hash, o.accepted.Managed, o.accepted.OthersState()
	it.Version, it.Commit = o.res.Version, r.works.of(o.placement).Revision.Commit
	r.inv[o.placement].Items.Put(it)
	touched[o.placement] = true
	if d, known := r.drifts.memory[o.placement][o.manifest.ID]; known { // otherwise only something added was offered
		r.drifts.memory.End(o.placement, d)
	}
}

// healthAfter returns the health of an object that has just been written. For kinds that take
// time to become available, it is unknown until the watch reports it.
func (r *recorder) healthAfter(id api.ID, o outcome, l *observed.Object) health.Health {
	if !needsStatus(o.manifest) {
		return health.OfKind(o.gvk())
	}
	if k := r.watch.Of(o.gvk()); k.Refused() && o.stored != nil {
		return k.HealthOf(o.stored)
	}
	if old := r.live.Of(id); old != nil && old.Version == l.Version {
		return old.Health
	}
	return health.Health{State: health.NotAvailableYet, Message: "applied; its status is not known yet"}
}

// verifies reports whether an object must be read to know its state, because it is compared in
// full, an autoscaler may scale it, or it had fields that Git has removed.
func (r *recorder) verifies(w wanted) bool {
	it := r.item(w.placement, w.manifest.ID)
	return diff.CompareAfter(r.works.of(w.placement).Strategy) || scaled(w.manifest, r.live.Of(w.manifest.ID)) || it != nil && it.Left != ""
}

// settled records that nothing remains to be done about an object.
func (r *recorder) settled(id api.ID) { delete(r.failed, id) }

// forget drops what is known of an object that is neither wanted nor listed in an inventory.
func (r *recorder) forget(id api.ID) {
	delete(r.failed, id)
	delete(r.verified, id)
	delete(r.replaced, id)
}

// failure records why an object is not as desired, and when it is tried again.
func (r *recorder) failure(o outcome) {
	o.cond.Cause = connection.Cut(o.cond.Cause)
	id := o.manifest.ID
	f := r.failed[id]
	if f == nil || f.hash != o.manifest.Hash {
		f = &failure{hash: o.manifest.Hash}
		r.failed[id] = f
	}
	s := situation{state: r.live.OwnershipState(id), watched: r.watched(id), transient: r.isTransient(o)}
	if !o.unknown.Empty() {
		s.due = r.kinds.NextLookup(o.unknown)
	}
	if r.works.onlyCompares(o.placement) && o.err == nil {
		s.due = r.compared.Add(reportInterval)
	}
	*f = f.again(&o, s, time.Now())
	if o.err != nil && o.do != diff.NeedRead && !f.recreate && f.logged.Due(o.cond.Reason+connection.RefusalReason(o.err)) {
		r.cfg.Log.Warn("object not applied", "cluster", r.cfg.Name, "placement", o.placement.String(),
			"object", id.String(), "err", o.cond.Message())
	}
}

// isTransient reports whether the reason why an object was not applied will pass by itself: its
// definition or namespace is placed here too, it is being deleted, or an API server or admission webhook does not
// respond.
func (r *recorder) isTransient(o outcome) bool {
	var coming *pendingDefinition
	switch {
	case o.err == nil:
		return o.leaving
	case errors.As(o.err, &coming), apierrors.HasStatusCause(o.err, "NamespaceTerminating"):
		return true
	case connection.ForbiddenByNamespace(o.err):
		_, placed := r.wanted.of(api.ID{Kind: "Namespace", Name: o.manifest.ID.Namespace})
		return placed
	}
	return connection.IsUnreachable(o.err) ||
		apierrors.IsTooManyRequests(o.err) || apierrors.IsInternalError(o.err) || apierrors.IsServiceUnavailable(o.err) ||
		apierrors.IsServerTimeout(o.err) || apierrors.IsTimeout(o.err)
}

// watched reports whether the watch reports every change of an object.
func (r *recorder) watched(id api.ID) bool {
	w, isWanted := r.wanted.of(id)
	return isWanted && r.live.Of(id) != nil && r.watch.Of(w.gvk()).Complete()
}

// A journal adds what is done to objects to the history.
type journal struct {
	*cluster
	*ownership
	*progress
	// deletions are those that were not reported yet.
	deletions deletions
}

// addOutcome adds to the history what was done to an object, or that it failed. It is called
// before the session uses the outcome. The same failure is added only once. undoneBy is who undid
// earlier applies of the object.
func (r *journal) addOutcome(o outcome, undoneBy string) {
	if r.cfg.Record == nil {
		return
	}
	e := r.entry(o.placement, o.manifest.ID)
	switch {
	case o.drift && o.written != nil && !o.reverted() && len(o.rivals) == 0:
		return // it was already as desired, or only fields that are left to others had changed
	case o.written != nil:
		e.Event = r.written(o)
		if e.Event == history.Repaired {
			if e.By = undoneBy; len(o.before.By) > 0 {
				e.By = drift.By(o.before.By)
			}
		}
	case o.immutable && asksForRecreation(o.manifest):
		return // it is recreated, or recreate records why it is not
	case o.cond.Status == metav1.ConditionFalse && !r.works.onlyCompares(o.placement):
		if t := r.failed[o.manifest.ID]; t != nil && t.hash == o.manifest.Hash && t.cond.Reason == o.cond.Reason {
			return
		}
		e.Event, e.Message = history.Failed, connection.Cut(o.cond.Message())
	default:
		return
	}
	r.cfg.Record(e)
}

func (r *journal) entry(p api.PlacementKey, id api.ID) history.Entry {
	return history.Entry{
		Time: time.Now(), Kind: history.Object, Placement: p.String(), Cluster: r.cfg.Name, Object: id.String(), Commit: r.works.of(p).Revision.Commit,
	}
}

// written returns the event of a write. An object that was not known to exist was created by this write if it is as old as
// our managedFields entry (see made); otherwise it was taken over.
func (r *journal) written(o outcome) history.Event {
	switch {
	case o.drift:
		return history.Repaired
	case o.do == diff.TakeOver:
		return history.TakenOver
	case o.item.Hash != "":
		return history.Changed
	case r.live.Of(o.manifest.ID) == nil && o.made:
		return history.Created
	}
	return history.TakenOver
}

// made reports whether our last apply created an object with some managedFields.
func made(o metav1.Object, entries []metav1.ManagedFieldsEntry) bool {
	for _, e := range entries {
		if e.Manager == api.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Time != nil {
			return e.Time.Sub(o.GetCreationTimestamp().Time) <= time.Second
		}
	}
	return true
}

// addRemoval adds to the history that an object was deleted, released, or that this failed for
// the first time. A deletion is also logged, and added to the next report of its placement.
func (r *journal) addRemoval(st stale, event history.Event, cause work.Cause, err error) {
	id, p := st.item.ID(), st.inv.Placement
	if event == history.Deleted && err == nil {
		r.cfg.Log.Info("object deleted", "cluster", r.cfg.Name, "placement", p.String(), "object", id.String(), "commit", cause.Commit, "why", cause.Why)
		r.deletions.add(p, id, cause)
	}
	if r.cfg.Record == nil || err != nil && r.failed[id] != nil {
		return
	}
	e := r.entry(p, id)
	e.Event, e.Commit, e.Message = event, cause.Commit, cause.Why
	if err != nil {
		e.Event, e.Message = history.Failed, connection.Cut("not removed: "+err.Error())
	}
	r.cfg.Record(e)
}

// deletions are the deletions that have not been reported, by placement.
type deletions map[api.PlacementKey][]protocol.Deletion

// add counts one deleted object. Consecutive objects with the same cause are one
// deletion.
func (d deletions) add(p api.PlacementKey, id api.ID, cause work.Cause) {
	all := d[p]
	if n := len(all); n == 0 || all[n-1].Commit != cause.Commit || all[n-1].Why != cause.Why {
		all = append(all, protocol.Deletion{At: time.Now(), Commit: cause.Commit, Why: cause.Why})
		all = all[max(0, len(all)-protocol.MostDeletions):]
	}
	last := &all[len(all)-1]
	if last.Total++; last.Total <= protocol.MostDeletedObjects {
		last.Objects = append(last.Objects, id)
	}
	d[p] = all
}

// take returns the deletions of a placement, and forgets them.
func (d deletions) take(p api.PlacementKey) []protocol.Deletion {
	defer delete(d, p)
	return d[p]
}
