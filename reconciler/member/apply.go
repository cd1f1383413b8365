package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/content"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// An applier finds out which objects have to be applied, and applies them. Its recorder records the outcomes.
type applier struct {
	*cluster
	desired.View
	owned       owned.View
	progress    progress.View
	drift       drift.View
	blocker     *deletionBlocker
	drifts      *driftRecorder
	inventories *inventories
	record      *recorder
	// untried maps each kind for which no dry runs are requested to the reason. It is empty
	// except in a Preview.
	untried map[schema.GroupVersionKind]string
	// namespaces are those that the last probe has found; nil if that is not known.
	namespaces []string
}

// apply runs the tasks in waves, several tasks of a wave in parallel. A task that fails does
// not delay the others.
func (a *applier) apply(ctx context.Context, tasks []apply.Task, touched map[api.PlacementKey]bool) {
	slices.SortFunc(tasks, func(a, b apply.Task) int {
		return cmp.Or(
			cmp.Compare(work.Wave(a.Manifest.ID.GroupKind()), work.Wave(b.Manifest.ID.GroupKind())),
			a.Manifest.ID.Compare(b.Manifest.ID),
		)
	})
	for len(tasks) > 0 {
		wave := work.Wave(tasks[0].Manifest.ID.GroupKind())
		n := slices.IndexFunc(tasks, func(t apply.Task) bool { return work.Wave(t.Manifest.ID.GroupKind()) != wave })
		if n < 0 {
			n = len(tasks)
		}
		a.findExisting(ctx, tasks[:n])
		a.runWave(ctx, tasks[:n], touched)
		tasks = tasks[n:]
	}
}

// runWave runs the tasks of one wave. It records their outcomes in order, while later tasks are
// still running. Once the server has stopped answering, the remaining tasks are skipped.
func (a *applier) runWave(ctx context.Context, tasks []apply.Task, touched map[api.PlacementKey]bool) {
	out := make([]*apply.Outcome, len(tasks))
	var recorded []*apply.Outcome // to be used again
	x := a.executor()
	a.inParallel(ctx, len(tasks), parallelCalls{
		start: func(i int) bool {
			if n := len(recorded) - 1; n < 0 {
				out[i] = new(apply.Outcome)
			} else {
				out[i], recorded = recorded[n], recorded[:n]
			}
			if ctx.Err() != nil || a.conn.CutOff() {
				*out[i] = apply.Skipped(tasks[i])
				return false
			}
			tasks[i] = a.withInputs(tasks[i])
			return true
		},
		do: func(i int) { *out[i] = x.Do(ctx, tasks[i]) },
		done: func(i int) {
			o := *out[i]
			*out[i] = apply.Outcome{}
			recorded, out[i] = append(recorded, out[i]), nil
			if o.Err != nil && ctx.Err() != nil {
				return // the session has ended, which is no failure of the object
			}
			a.record.outcome(o, touched)
			faults.At("applied")
		},
	})
}

// waitingForHooks returns the objects that wait for hooks or for the other objects of their charts, of the charts of some objects.
func (a *applier) waitingForHooks(ids iter.Seq[api.ID]) (waiting []api.ID) {
	if a.Hooks() == nil {
		return nil
	}
	for id := range ids {
		w, isWanted := a.Wanted().Of(id)
		if !isWanted {
			continue
		}
		for _, other := range a.Hooks().Others(w.Placement, id) {
			if f, _ := a.progress.Failure(other); f.Cond.Reason == api.HookPending {
				waiting = append(waiting, other)
			}
		}
	}
	return waiting
}

// retryHooks makes objects due that waited for what was just applied.
func (a *applier) retryHooks(tasks []apply.Task) {
	applied := func(yield func(api.ID) bool) {
		for _, t := range tasks {
			if !yield(t.Manifest.ID) {
				return
			}
		}
	}
	for _, id := range a.waitingForHooks(applied) {
		w, _ := a.Wanted().Of(id)
		if state, _ := a.owned.MayApply(w); state == hooks.Ready {
			a.record.progress.RetryNow(id)
		}
	}
}

// executor returns an executor of tasks for the works as they are now.
func (a *applier) executor() *apply.Executor {
	return &apply.Executor{
		Conn: a.conn, Cluster: a.cfg.Name, Fleet: a.cfg.Fleet, Encoder: a.cfg.Encoder, Metrics: a.cfg.Metrics,
		Works: a.Works(), Untried: a.untried, AdditionsMode: a.cfg.Additions,
	}
}

// newTask returns a task for a wanted object, with what is known of its kind and inventory.
func (a *applier) newTask(w desired.Object) apply.Task {
	t := apply.Task{Object: w, Item: a.owned.Item(w.Placement, w.Manifest.ID)}
	t.Res, _ = a.kinds.Of(w.GVK())
	if r, rejected := a.drifts.rejection(t); rejected && !time.Now().Before(a.drift.Removed(t.Manifest.ID).Due()) {
		t.Rejected = r.Fingerprint
	}
	return t
}

// withInputs returns a task with what is known of its object now.
func (a *applier) withInputs(t apply.Task) apply.Task {
	p, id := t.Placement, t.Manifest.ID
	t.Inputs = apply.Inputs{Known: a.live.Of(id), Rule: a.drifts.rule(t), AlteredBefore: a.drift.Altered(p, id), Scaler: a.owned.ScalerOf(t), Replaced: a.progress.Replaced(id), LastApplied: a.record.superseded.Of(t.Item, id)}
	if d := a.drift.Change(p, id); d.State == api.DriftHeld || d.State == api.DriftStanding {
		t.Changed = d.Paths
	}
	if d := a.drift.Addition(p, id); d.State.Present() {
		t.AddedBy = d.By
	}
	if r, known := a.drift.Decision(protocol.DriftKey{Placement: p, ID: id}); known {
		t.Decision = &r
	}
	return t
}

// unfollowed yields the objects that were not available when they were last written or read, and whose
// kinds may not be listed, so that only another read shows whether they are now. What runs to its end
// is left out: not to know it means that it has run.
func (a *applier) unfollowed() iter.Seq[api.ID] {
	return func(yield func(api.ID) bool) {
		if !a.watch.Refuses() {
			return
		}
		for id, w := range a.Wanted().All() {
			l := a.live.Of(id)
			if l == nil || l.Health.Counts() || !a.watch.Of(w.GVK()).Refused() || controllers.RunOf(w.Manifest.Object.Content) != nil || a.drifts.holds(a.newTask(w), l) {
				continue
			}
			if !yield(id) {
				return
			}
		}
	}
}

// A collection is the resource, and the namespace if it has any, in which objects are listed.
type collection struct {
	res       connection.Resource
	namespace string
}

// findExisting determines which of the objects that were never applied already exist: those may
// belong to somebody, and the others need not be read again. Several objects of a kind are
// found with one list request.
func (a *applier) findExisting(ctx context.Context, tasks []apply.Task) {
	collections := map[collection][]*apply.Task{}
	for i := range tasks {
		t := &tasks[i]
		switch {
		case t.Item == nil || t.Item.Hash != "":
		case a.cannotBeThere(t):
			t.Found = &apply.Finding{}
		default:
			at := collection{t.Res, t.Manifest.ID.Namespace}
			collections[at] = append(collections[at], t)
		}
	}
	var all []collection
	for at, tasks := range collections {
		if len(tasks) > 1 { // reading one object costs no more than a list
			all = append(all, at)
		}
	}
	a.inParallel(ctx, len(all), parallelCalls{do: func(i int) { a.findInCollection(ctx, all[i], collections[all[i]]) }})
}

// cannotBeThere reports whether an object could exist only if somebody has created it within
// the last moments: a namespace that did not exist, or an object in a namespace that was just
// created. Such an object is taken over without a read before, which is right only if the
// strategy takes over every object.
func (a *applier) cannotBeThere(t *apply.Task) bool {
	id := t.Manifest.ID
	switch {
	case a.Works().Of(t.Placement).Strategy.WhenToTakeOver != api.TakeOverAlways:
		return false
	case id.GroupKind() == schema.GroupKind{Kind: "Namespace"}:
		return a.namespaces != nil && !slices.Contains(a.namespaces, id.Name)
	default:
		return t.Res.Namespaced && a.record.fresh[id.Namespace] && !content.CreatedByKubernetes(id.GroupKind(), id.Name)
	}
}

// findInCollection looks up the objects of some tasks in one collection. If the collection is much
// larger than the number of tasks, or the list is refused, each object is read.
func (a *applier) findInCollection(ctx context.Context, at collection, tasks []*apply.Task) {
	const limit = 500
	there := map[api.ID]*metav1.PartialObjectMetadata{}
	kind := tasks[0].Manifest.ID
	list := connection.Listing{ListOptions: metav1.ListOptions{Limit: limit}}
	for range 1 + len(tasks)/50 {
		page, err := a.conn.Page(ctx, at.res.GroupVersionResource, at.namespace, &list.ListOptions)
		if a.conn.RecordResult(err) != nil {
			return
		}
		for i := range page.Items {
			o := &page.Items[i]
			there[api.ID{Group: kind.Group, Kind: kind.Kind, Namespace: o.Namespace, Name: o.Name}] = o
		}
		more, err := list.Next(page, len(page.Items))
		switch {
		case err != nil:
			return
		case !more:
			for _, t := range tasks {
				t.Found = &apply.Finding{Meta: there[t.Manifest.ID]}
			}
			return
		}
	}
}

// findTasks returns the tasks that some objects need, and the stale objects among them. It makes room for an expected number of tasks.
func (a *applier) findTasks(ids map[api.ID]bool, expected int) (tasks []apply.Task, prune []owned.Stale) {
	tasks = make([]apply.Task, 0, expected)
	listing := a.owned.ListingsFor(len(ids))
	for id := range ids {
		stales := a.owned.StalesIn(id, listing(id))
		prune = append(prune, stales...)
		w, isWanted := a.Wanted().Of(id)
		if !isWanted {
			if len(stales) == 0 {
				a.record.progress.Forget(id)
			}
			continue
		}
		if t, needed := a.task(id, w); needed {
			tasks = append(tasks, t)
		}
	}
	return tasks, prune
}

// outdated returns how many of some objects are not recorded as applied with their newest content.
func (a *applier) outdated(ids map[api.ID]bool) (n int) {
	for id := range ids {
		if w, isWanted := a.Wanted().Of(id); isWanted && !a.owned.IsApplied(w) {
			n++
		}
	}
	return n
}

// task reports whether an object needs a task, according to the known state and without a
// request. It records objects that cannot be applied now, and drift that is contested.
func (a *applier) task(id api.ID, w desired.Object) (apply.Task, bool) {
	t := a.newTask(w)
	facts, awaited := a.facts(&t)
	var refusal decide.Refusal
	switch t.Step, refusal = decide.Apply(facts); t.Step {
	case decide.Leave:
		return t, false
	case decide.Finish:
		a.record.progress.Settled(id)
		return t, false
	case decide.Refuse:
		a.record.failure(refused(t, refusal, awaited))
		return t, false
	case decide.Restore:
		why, contested := a.drifts.countUndone(t, a.live.Of(id))
		if contested {
			a.record.progress.Fail(id, why)
		}
		return t, !contested
	}
	return t, true
}

// refused returns the outcome of a task that is refused. awaited is the kind that the object waits for, if it waits for one.
func refused(t apply.Task, why decide.Refusal, awaited schema.GroupVersionKind) apply.Outcome {
	o := apply.Outcome{Task: t, Cond: why.Condition(), Unknown: awaited, Transient: decide.IsTransient(why)}
	if !awaited.Empty() {
		o.Do = diff.NeedRead
	}
	if _, encrypted := why.(*decide.EncryptedError); !encrypted && !o.Transient {
		o.Err = why
	}
	return o
}

// facts returns what is known of the object of a task, and the kind that it waits for, if it waits for one. It sets what the task
// has of them. What cannot matter any more is left out.
func (a *applier) facts(t *apply.Task) (f decide.Facts, awaited schema.GroupVersionKind) {
	w, id, gvk := t.Object, t.Manifest.ID, t.GVK()
	res, served := a.kinds.Of(gvk)
	bad, failed := a.progress.Failure(id)
	f.Waits = failed && bad.Hash == w.Manifest.Hash && a.retryNotDue(bad, w.Manifest) && !(served && bad.KindUnknown())
	switch {
	case f.Waits:
		return f, awaited
	case !served:
		f.Unknown = a.unknownKind(gvk)
		return f, gvk
	}
	if awaited, f.Awaited = a.awaitedStore(*t); f.Awaited != nil {
		return f, awaited
	}
	if res.Namespaced && id.Namespace == "" {
		f.NoNamespace = id.Kind
	}
	if c := w.Manifest.Encrypted; c != nil {
		f.Encrypted = c.Message()
	}
	l := a.live.Of(id)
	t.Absent = l == nil
	if f.OnlyCompared = a.Works().OnlyCompares(w.Placement); f.OnlyCompared {
		return f, awaited
	}
	f.Exists, f.Watched, f.HasRun = l != nil, a.watch.Of(gvk).Complete(), l == nil && a.progress.HasRun(w.Manifest, t.Item)
	f.Failed, f.Rejected = failed, t.Rejected != ""
	t.SuspendedReason = a.Works().SuspendedReason(w.Placement, id)
	if f.Suspended = t.SuspendedReason != ""; f.Suspended {
		f.Changed = a.mayDiffer(*t, l) || a.progress.IsSuspect(id)
		return f, awaited
	}
	f.Hook, f.HookFor = a.owned.MayApply(w)
	if f.Deleting = l != nil && l.Terminating; f.Deleting {
		f.Finalizers = l.Finalizers
	}
	f.Applied = t.Item != nil && t.Item.Hash != ""
	if f.Current = t.Item != nil && t.Item.Hash == w.Manifest.Hash; !f.Current {
		f.MayEqual = a.drifts.accepts(*t, l)
		return f, awaited
	}
	f.Drift = a.driftOf(t.Item, l)
	switch {
	case l == nil && !f.Watched: // no watch reports the object, so that its health is read once
		f.Unread = availability.NeedsStatus(w.Manifest) && a.watch.Of(gvk).Refused() && !a.drifts.holds(*t, &observed.Object{Fleet: a.cfg.Fleet})
	case f.Drift == drift.Drifted && !f.Deleting:
		t.Drift = true
		f.Held, f.Protected = a.drifts.holds(*t, l), a.Works().Protects(w.Placement)
	default:
		f.Unread = a.unverified(w)
	}
	return f, awaited
}

// driftOf says whether an object that was applied has drifted, as far as its metadata shows; l is nil if it does not exist. Its
// values may have changed; see valueChecker.
func (c *cluster) driftOf(it *inventory.Item, l *observed.Object) drift.Answer {
	return drift.Of(drift.Applied{Fleet: c.cfg.Fleet, Managed: it.Managed}, drift.Seen(l)).Answer
}

// mayDiffer reports whether a suspended object may differ from what is wanted.
func (a *applier) mayDiffer(t apply.Task, l *observed.Object) bool {
	if l == nil && t.Item != nil && !a.watch.Of(t.GVK()).Complete() {
		return a.progress.HasFailed(t.Manifest.ID) // no watch reports it
	}
	return t.Item == nil || t.Item.Hash != t.Manifest.Hash || a.driftOf(t.Item, l) == drift.Drifted || a.progress.HasFailed(t.Manifest.ID)
}

// unverified reports whether an object must be read, and was not read since others last changed
// it.
func (a *applier) unverified(w desired.Object) bool {
	id := w.Manifest.ID
	return a.record.verifies(w) && !a.progress.IsVerified(id, a.live.OwnershipState(id))
}

// retryNotDue reports whether a retry of an object is not due yet. If the object was not written
// because of its state, any write of others makes the retry due, at most once a second, except
// those of an autoscaler. Some writes do not change the ownership state; see
// observed.OwnershipState.
func (a *applier) retryNotDue(f progress.Failure, m *work.Manifest) bool {
	now, next := time.Now(), f.Next
	written := a.progress.IsSuspect(m.ID) && !apply.Scaled(m, a.live.Of(m.ID))
	if now.Before(next) && f.Refused != nil && (written || *f.Refused != a.live.OwnershipState(m.ID)) {
		next = a.record.progress.RetrySoon(m.ID)
	}
	return now.Before(next)
}

// unknownKind returns why a kind is not known. If its definition is placed here too, the kind
// only has to wait for the definition.
func (a *applier) unknownKind(gvk schema.GroupVersionKind) error {
	err := a.kinds.Why(gvk)
	var none *discovery.MissingDefinition
	if !errors.As(err, &none) {
		return err
	}
	if by := definitionOf(gvk, a.Wanted()); by != nil {
		if f, failed := a.progress.Failure(by.Manifest.ID); failed && f.Cond.Status != metav1.ConditionTrue || a.Works().OnlyCompares(by.Placement) || a.Works().SuspendedReason(by.Placement, by.Manifest.ID) != "" {
			return fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not applied: see why there", none.NoMatch, by.Manifest.ID.Name, by.Placement)
		}
		return &pendingDefinition{fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not established yet; it is applied as soon as it is", none.NoMatch, by.Manifest.ID.Name, by.Placement)}
	}
	return err
}

// awaitedStore returns why an object of the last wave is not applied yet, and the kind it waits for: a store of its group, whose
// definition is placed here too and not established yet. Without this the waves would count only among kinds that become
// known at the same time.
func (a *applier) awaitedStore(t apply.Task) (kind schema.GroupVersionKind, err error) {
	id := t.Manifest.ID
	if t.Item != nil && t.Item.Hash != "" || !work.NeedsStores(id.GroupKind()) {
		return kind, nil
	}
	for other, w := range a.Wanted().All() {
		if other.Group != id.Group || work.Wave(other.GroupKind()) != work.StoreWave {
			continue
		}
		if _, known := a.kinds.Of(w.GVK()); known {
			continue
		}
		var coming *pendingDefinition
		if err := a.unknownKind(w.GVK()); errors.As(err, &coming) {
			return w.GVK(), fmt.Errorf("it waits for %s, which comes first: %w", other, err)
		}
	}
	return kind, nil
}
