package member

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// findTasks returns the tasks that some objects need, about how many is known, and the stale objects among them.
func (a *applier) findTasks(ids map[api.ID]bool, about int) (tasks []apply.Task, prune []stale) {
	tasks = make([]apply.Task, 0, about)
	listing := a.owned.listingsFor(len(ids))
	for id := range ids {
		stales := a.owned.stalesIn(id, listing(id))
		prune = append(prune, stales...)
		w, isWanted := a.Wanted().Of(id)
		if !isWanted {
			if len(stales) == 0 {
				a.record.forget(id)
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
		if w, isWanted := a.Wanted().Of(id); isWanted && !a.owned.applied(w) {
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
		a.record.settled(id)
		return t, false
	case decide.Refuse:
		a.record.failure(refused(t, refusal, awaited))
		return t, false
	case decide.Restore:
		contested := a.drifts.countUndone(t, a.live.Of(id))
		if contested != nil {
			a.record.contested(id, contested)
		}
		return t, contested == nil
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
	bad := a.progress.failed[id]
	f.Waits = bad != nil && bad.hash == w.Manifest.Hash && a.retryNotDue(bad, w.Manifest) && !(served && bad.unknownKind())
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
	f.Exists, f.Watched, f.HasRun = l != nil, a.watch.Of(gvk).Complete(), l == nil && a.progress.hasRun(w.Manifest, t.Item)
	f.Failed, f.Rejected = bad != nil, t.Rejected != ""
	t.SuspendedReason = a.Works().SuspendedReason(w.Placement, id)
	if f.Suspended = t.SuspendedReason != ""; f.Suspended {
		f.Changed = a.mayDiffer(*t, l) || a.progress.suspects[id]
		return f, awaited
	}
	f.Hook, f.HookFor = a.owned.mayApply(w)
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
		return a.progress.failed[t.Manifest.ID] != nil // no watch reports it
	}
	return t.Item == nil || t.Item.Hash != t.Manifest.Hash || a.driftOf(t.Item, l) == drift.Drifted || a.progress.failed[t.Manifest.ID] != nil
}

// unverified reports whether an object must be read, and was not read since others last changed
// it.
func (a *applier) unverified(w desired.Object) bool {
	verified, ok := a.progress.verified[w.Manifest.ID]
	return a.record.verifies(w) && (!ok || verified != a.live.OwnershipState(w.Manifest.ID))
}

// retryNotDue reports whether a retry of an object is not due yet. If the object was not written
// because of its state, any write of others makes the retry due, at most once a second, except
// those of an autoscaler. Some writes do not change the ownership state; see
// observed.OwnershipState.
func (a *applier) retryNotDue(t *failure, m *work.Manifest) bool {
	now, live := time.Now(), a.live.Of(m.ID)
	written := a.progress.suspects[m.ID] && !apply.Scaled(m, live)
	if now.Before(t.next) && t.refused != nil && (written || *t.refused != a.live.OwnershipState(m.ID)) {
		t.hasten()
	}
	return now.Before(t.next)
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
		if t := a.progress.failed[by.Manifest.ID]; t != nil && t.cond.Status != metav1.ConditionTrue || a.Works().OnlyCompares(by.Placement) || a.Works().SuspendedReason(by.Placement, by.Manifest.ID) != "" {
			return fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not applied: see why there", none.NoMatch, by.Manifest.ID.Name, by.Placement)
		}
		return &pendingDefinition{fmt.Errorf("%w: its CustomResourceDefinition %s, which %s places here, is not established yet; it is applied as soon as it is", none.NoMatch, by.Manifest.ID.Name, by.Placement)}
	}
	return err
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
