package member

import (
	"cmp"
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A task is an object that may have to be applied.
type task struct {
	wanted
	res  connection.Resource
	item *inventory.Item // nil if no inventory of its placement lists it
	// absent says that no watch has seen the object. An object without our label may still
	// exist.
	absent bool
	drift  bool
	// spared is the reason why the object is only observed; empty if it may be written.
	spared string
	// held says that the drift of the object is not restored. accepting says that the object
	// may already have the content of its new version.
	held, accepting bool
	// found is the result of a survey about an object that was never applied; nil without a
	// survey.
	found *finding
	inputs
}

// An outcome is the result of a task.
type outcome struct {
	task
	do      diff.Operation
	cond    metav1.Condition
	err     error
	written *metav1.PartialObjectMetadata // nil if nothing was written
	created bool                          // the object did not exist before
	diffs   []api.Difference
	gen     int64
	snapshot
	// before is the drift that the task had to correct, if any.
	before ledger.Drift
	// altered are the fields that the server has stored differently from what was applied.
	altered []api.PatchDetail
	// accepted is the live object if it already equals its new version; nil otherwise.
	accepted *observed.Object
	// immutable says that the server refused it because of immutable fields only.
	immutable bool
	// gone says that somebody deleted the object and that it is not created again for now.
	gone bool
}

// repairs reports whether the task has corrected drift.
func (o *outcome) repairs() bool {
	if !o.drift || o.written == nil {
		return false
	}
	return o.live == nil || o.live.GetResourceVersion() != o.written.ResourceVersion
}

// process reconciles some objects: it applies those that differ from the desired state, removes
// those that are not desired any more, and updates the inventories. Objects that are up to date
// cost no request.
func (s *session) process(ctx context.Context, ids map[api.ID]bool) {
	if s.prepared(ctx, ids) {
		s.processPrepared(ctx, ids)
	}
}

// prepared makes sure that the live state of some objects is known. If it cannot be read now,
// the objects are postponed.
func (s *session) prepared(ctx context.Context, ids map[api.ID]bool) bool {
	if len(ids) == 0 || s.store.Foreign() {
		return false
	}
	err := s.prepareKinds(ctx, ids)
	if err == nil {
		s.unknown = retry.LogLimiter{}
		return true
	}
	if s.unknown.Due(connection.WithoutPort(connection.Plain(err))) {
		s.cfg.Log.Warn("kinds not known; trying again", "cluster", s.cfg.Name, "err", connection.Plain(err))
	}
	s.postpone(ids)
	return false
}

// processPrepared is process for objects whose live state is known.
func (s *session) processPrepared(ctx context.Context, ids map[api.ID]bool) {
	clear(s.fresh)
	tasks, prune := s.findWork(ids)
	touched := map[api.PlacementKey]bool{}
	if tasks = s.announce(ctx, tasks, touched); s.store.Foreign() {
		return // the turn ends in observeOnly
	}
	s.apply(ctx, tasks, touched)
	if s.recreate(ctx, tasks, touched); s.store.Foreign() {
		return
	}
	s.prune(ctx, prune, touched)
	s.saveInventories(ctx, touched)
	s.reschedule()
}

// postpone schedules a retry of objects. While their kinds are unknown, it is not known either
// which objects are gone.
func (s *session) postpone(ids map[api.ID]bool) {
	for id := range ids {
		s.unseen[id] = true
	}
	s.blocked = true
	s.schedule(inventoryRetry)
}

// findWork returns the tasks for some objects, and the stale objects among them.
func (s *session) findWork(ids map[api.ID]bool) ([]task, []stale) {
	var tasks []task
	var prune []stale
	for id := range ids {
		stales := s.stales(id)
		prune = append(prune, stales...)
		w, isWanted := s.wanted.of(id)
		if !isWanted {
			if len(stales) == 0 {
				delete(s.trouble, id)
				delete(s.verified, id)
			}
			continue
		}
		if t, needed := s.task(id, w); needed {
			tasks = append(tasks, t)
		}
	}
	return tasks, prune
}

// stales returns an entry for each placement whose inventory lists an object that the placement
// no longer wants here.
func (s *session) stales(id api.ID) []stale {
	var out []stale
	w, isWanted := s.wanted.of(id)
	// A placement that only compares objects takes none over.
	taken := isWanted && !s.works.reports(w.placement)
	for p, inv := range s.inv {
		if isWanted && p == w.placement || !s.works.prunes(p) {
			continue
		}
		it := inv.Items.Of(id)
		if it == nil || s.works.spared(p, id) != "" {
			continue
		}
		st := stale{inv: inv, item: it, handedOver: taken}
		if !taken {
			owner, found := s.newOwner(id, p)
			if found && (owner == p || s.works.resting(owner)) {
				continue // the object is kept for its next owner
			}
			st.newOwner = owner
		}
		out = append(out, st)
	}
	return out
}

// task reports whether an object needs a task, according to the known state and without a
// request.
func (s *session) task(id api.ID, w wanted) (task, bool) {
	t := task{wanted: w}
	gvk := w.manifest.Object.Object.GroupVersionKind()
	res, ok := s.kinds.Of(gvk)
	if bad := s.trouble[id]; bad != nil && bad.hash == w.manifest.Hash && s.waits(bad, id) && !(ok && bad.unknownKind) {
		return t, false
	}
	if !ok {
		s.fail(outcome{task: t, cond: diff.DecodeFailed(s.unknownKind(gvk))})
		return t, false
	}
	t.res = res
	if inv := s.inv[w.placement]; inv != nil {
		t.item = inv.Items.Of(id)
	}
	l := s.live.Of(id)
	t.absent = l == nil
	if s.works.reports(w.placement) {
		return t, true
	}
	if t.spared = s.works.spared(w.placement, id); t.spared != "" {
		return t, s.astray(t, l) || s.suspects[id]
	}
	if l != nil && l.Terminating && (t.item == nil || t.item.Hash == "") {
		// An apply now would be lost with the object.
		s.fail(outcome{task: t, cond: beingDeleted(l.Finalizers)})
		return t, false
	}
	if t.item == nil || t.item.Hash != w.manifest.Hash {
		t.accepting = s.accepts(t, l)
		return t, true
	}
	if l == nil && !s.watch.Of(gvk).Complete() {
		return t, s.trouble[id] != nil // no watch reports the object, so that the last apply has to be trusted
	}
	if l != nil && l.Terminating {
		return t, false // it is created again once its deletion is finished
	}
	t.drift = l == nil || l.Managed != t.item.Managed || l.Fleet != s.cfg.Fleet
	if !t.drift {
		return t, s.trouble[id] != nil || s.unverified(w)
	}
	t.held = s.holds(t, l)
	return t, t.held || s.works.protects(w.placement) || s.undone(t, l)
}

// apply runs the tasks in waves, several tasks of a wave in parallel. A task that fails does
// not delay the others.
func (s *session) apply(ctx context.Context, tasks []task, touched map[api.PlacementKey]bool) {
	slices.SortFunc(tasks, func(a, b task) int {
		return cmp.Or(
			cmp.Compare(work.Wave(a.manifest.ID.GroupKind()), work.Wave(b.manifest.ID.GroupKind())),
			a.manifest.ID.Compare(b.manifest.ID),
		)
	})
	for len(tasks) > 0 {
		wave := work.Wave(tasks[0].manifest.ID.GroupKind())
		n := slices.IndexFunc(tasks, func(t task) bool { return work.Wave(t.manifest.ID.GroupKind()) != wave })
		if n < 0 {
			n = len(tasks)
		}
		s.survey(ctx, tasks[:n])
		for _, o := range s.runWave(ctx, tasks[:n]) {
			if o.err != nil && ctx.Err() != nil {
				continue // the session has ended, which is no failure of the object
			}
			s.recordOutcome(o, touched)
			faults.At("applied")
		}
		tasks = tasks[n:]
	}
}

// runWave runs the tasks of one wave and returns their outcomes in order. Once the server has
// stopped answering, the remaining tasks are skipped.
func (s *session) runWave(ctx context.Context, tasks []task) []outcome {
	out := make([]outcome, len(tasks))
	x := s.executor()
	slots := make(chan struct{}, s.cfg.Concurrency)
	var wg sync.WaitGroup
	for i := range tasks {
		if ctx.Err() != nil || s.conn.CutOff() {
			out[i] = outcome{task: tasks[i], do: diff.Apply, cond: unanswered(diff.ApplyFailed(diff.Apply, errSilent), errSilent), err: errSilent}
			continue
		}
		slots <- struct{}{}
		t := s.withInputs(tasks[i])
		giveBack := takePlace(ctx, s.cfg.Limit) // acquired before the goroutine is started, since thousands of clusters may wait for a slot
		wg.Go(func() {
			defer func() { <-slots }()
			defer giveBack()
			out[i] = x.do(ctx, t)
		})
	}
	wg.Wait()
	return out
}

// recordOutcome records the outcome of a task.
func (s *session) recordOutcome(o outcome, touched map[api.PlacementKey]bool) {
	id := o.manifest.ID
	s.addHistory(o)
	if o.created && id.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		s.fresh[id.Name] = true
		s.hurry(id.Name) // the watch will not report a change of it
	}
	if o.written != nil {
		delete(s.suspects, id)
		l := observed.Of(o.written)
		l.Health = s.healthAfter(id, o, l)
		s.live.Put(id, l)
		it := o.item
		if it.Hash != o.manifest.Hash || it.Managed != l.Managed || it.Others != "" || it.UID != l.UID || it.Version != o.res.Version {
			touched[o.placement] = true
		}
		if it.Hash != o.manifest.Hash {
			it.Commit = s.works[o.placement].Revision.Commit
		}
		it.Version, it.Hash, it.Managed, it.Others, it.UID = o.res.Version, o.manifest.Hash, l.Managed, "", l.UID
		s.inv[o.placement].Items.Put(*it)
	}
	if o.accepted != nil {
		s.recordAccepted(&o, touched)
	}
	if t := s.trouble[id]; o.written != nil && t != nil && t.recreate {
		delete(s.braked, id) // the object no longer has to be recreated
	}
	if o.err == nil && !o.gone && o.cond.Reason != api.AppliedWithFailedDriftDetection && s.verifies(o.wanted) {
		s.verified[id] = s.live.Standing(id)
	}
	s.recordDrift(&o)
	if o.asWanted() {
		delete(s.trouble, id)
		return
	}
	if o.cond.Reason == api.ManifestApplied && len(o.diffs) == 0 && !s.works.reports(o.placement) {
		delete(s.trouble, id)
		return
	}
	s.fail(o)
}

// healthAfter returns the health of an object that has just been written. For kinds that take
// time to become available, it is unknown until the watch reports it.
func (s *session) healthAfter(id api.ID, o outcome, l *observed.Object) health.Health {
	gvk := o.manifest.Object.Object.GroupVersionKind()
	if !needsWholeObject(o.manifest) {
		return health.OfKind(gvk)
	}
	if old := s.live.Of(id); old != nil && old.Version == l.Version {
		return old.Health
	}
	return health.Health{State: health.NotAvailableYet, Message: "applied; its status is not known yet"}
}
