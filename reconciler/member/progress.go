package member

import (
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A progress is what remains to be done about objects.
type progress struct {
	// failed has why an object is not as wanted, and when it is tried again.
	failed map[api.ID]*failure
	// verified are the ownership states of objects when they were last verified.
	verified map[api.ID]observed.OwnershipState
	// suspects are objects that others have written, and whose values were not compared since.
	suspects map[api.ID]bool
	// unprocessed are objects with a recorded change that was not processed yet.
	unprocessed map[api.ID]bool
	// ended are the placements whose inventories have an end that was not written yet.
	ended map[api.PlacementKey]bool
	// cutShort are objects that somebody deleted before they had run to their end.
	cutShort map[api.ID]bool
	// replaced are objects with fields that are left to others, as they were before they were
	// deleted to be created again.
	replaced map[api.ID]*apply.Snapshot
	// waiting are the objects that are deleted once others are gone, with one of those.
	waiting waitingDeletions
	// pruned are the placements that have removed something, or failed to, since their last
	// report.
	pruned map[api.PlacementKey]bool
	// untried are the placements with objects of the current revision that were never attempted.
	untried placementSet
	// compared is when placements that only report differences were last compared.
	compared time.Time
}

// A placementSet is a set of placements that is empty most of the time. It keeps no memory then, unlike a map whose keys were
// deleted: a cluster may have very many placements.
type placementSet struct{ keys map[api.PlacementKey]bool }

func (s *placementSet) add(p api.PlacementKey) {
	if s.keys == nil {
		s.keys = map[api.PlacementKey]bool{}
	}
	s.keys[p] = true
}

func (s *placementSet) has(p api.PlacementKey) bool { return s.keys[p] }

// take removes a placement, and reports whether the set had it.
func (s *placementSet) take(p api.PlacementKey) (had bool) {
	had = s.keys[p]
	if delete(s.keys, p); len(s.keys) == 0 {
		s.keys = nil
	}
	return had
}

// A failure is the reason why one object is not as desired, and the time of its next retry. Objects
// whose drift is left have one too; their condition may say that they are applied.
type failure struct {
	cond        diff.Condition
	diffs       []api.Difference
	drift       bool
	gen         int64
	since       time.Time // time of the condition
	first, last time.Time // when the differences were first and last seen

	hash string // hash of the content that was tried
	// refused is the ownership state of the object if it was not written because of its state;
	// nil if it failed for another reason.
	refused *observed.OwnershipState
	// unknown is the kind that the cluster does not serve yet: that of the object, or of one that it waits for. It is zero if the
	// reason is another.
	unknown schema.GroupVersionKind
	// notDeleted is the reason why the cluster does not delete an undesired object.
	notDeleted string
	// stays is the reason why an undesired object was deleted and still exists; empty if it is not
	// known.
	stays string
	// recreate says that the object requests recreation, and that the server refused it because
	// of immutable fields.
	recreate bool
	// notRecreated is why it was not recreated the last time, if the history has that.
	notRecreated string
	// namespaceMissing says that it failed because its namespace is missing.
	namespaceMissing bool
	// pending says that the reason will pass by itself.
	pending  bool
	failures retry.Backoff
	next     time.Time
	logged   retry.LogLimiter
}

func (f *failure) unknownKind() bool { return !f.unknown.Empty() }

// hasten makes the next attempt due a moment after the last one.
func (f *failure) hasten() { f.next = retry.Earlier(f.next, f.last.Add(firstRetry)) }

// A situation is what matters of an object for its next attempt.
type situation struct {
	// state is its ownership state, and watched says that its watch reports every change of it.
	state   observed.OwnershipState
	watched bool
	// transient says that the reason of the failure will pass by itself.
	transient bool
	// due is when the next attempt is due because of something else: a lookup of its kind, which serves all objects of the kind, or
	// a comparison of its placement. It is zero if nothing else decides.
	due time.Time
}

// again returns the failure of an object after another attempt. Retries have a backoff, which ends when the content changes, or
// something happens that the object waited for.
func (f failure) again(o *apply.Outcome, s situation, now time.Time) failure {
	if f.cond.Reason != o.Cond.Reason || f.since.IsZero() {
		f.since = now
	}
	switch {
	case len(o.Diffs) == 0:
		f.first = time.Time{}
	case f.first.IsZero():
		f.first = now
	}
	confirmed := f.refused != nil && *f.refused == s.state
	f.cond, f.diffs, f.gen, f.last, f.refused = o.Cond, o.Diffs, o.Gen, now, nil
	if o.Err == nil && o.Cond.Reason != api.AppliedWithFailedDriftDetection {
		f.refused = &s.state
	}
	f.drift = o.Item != nil && o.Item.Hash != ""
	f.unknown, f.namespaceMissing = o.Unknown, connection.ForbiddenByNamespace(o.Err)
	f.recreate = o.Immutable && apply.AsksForRecreation(o.Manifest)
	f.pending = s.transient
	first := firstRetry
	if f.namespaceMissing {
		first = 100 * time.Millisecond // the missing object is just being applied
	}
	f.next = now.Add(max(f.failures.Next(first, lastRetry), connection.RetryAfter(o.Err)))
	switch {
	case o.Transient && deletion.Explains(o.Manifest.ID.GroupKind()):
		f.next = now.Add(f.failures.Next(firstLook, lastLook)) // why it still exists may change
	case !s.due.IsZero():
		f.next = s.due
	case o.SuspendedReason != "" && o.Err == nil && !s.watched:
		f.next = now.Add(reportInterval)
	case f.refused != nil && s.watched && !confirmed:
		f.next = now.Add(confirmation)
	case f.refused != nil && s.watched:
		f.next = now.Add(watchedRetry) // the watch reports any change of it
	}
	return f
}

// The shortest and longest time between two retries of one object.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// confirmation is the delay after which an object that was not written is checked once
	// more: two changes of one writer to the same fields within a second cannot be told apart.
	confirmation = 2 * time.Second
	// watchedRetry is the delay of a retry of an object whose watch reports the changes that
	// matter, in case that it fails to.
	watchedRetry = 6 * time.Hour
)

// hasRun reports whether an object that does not exist has run with the content of a manifest, and
// was then deleted by a controller. it is the object in the inventory, nil if it is not listed. If
// nobody has seen how the object went, it counts as having run: running twice may do harm.
func (p *progress) hasRun(m *work.Manifest, it *inventory.Item) bool {
	return it != nil && it.Hash == m.Hash && (it.End != "" || !p.cutShort[m.ID]) && controllers.RunOf(m.Object.Content) != nil
}

// takeWaiting returns the objects that wait for others to be gone, and forgets them.
func (p *progress) takeWaiting() waitingDeletions {
	waiting := p.waiting
	p.waiting = waitingDeletions{}
	return waiting
}

// suspect records that the values of some objects have to be compared.
func (p *progress) suspect(ids ...api.ID) {
	for _, id := range ids {
		p.suspects[id] = true
	}
}

// clearSuspect records that the values of an object need not be compared.
func (p *progress) clearSuspect(id api.ID) { delete(p.suspects, id) }

// takeSuspects returns the suspects whose last change is processed, and forgets them.
func (p *progress) takeSuspects() (ids []api.ID) {
	for id := range p.suspects {
		if !p.unprocessed[id] {
			ids = append(ids, id)
			delete(p.suspects, id)
		}
	}
	return ids
}

// postpone records that the changes of some objects have yet to be processed.
func (p *progress) postpone(ids map[api.ID]bool) { maps.Copy(p.unprocessed, ids) }

// takeUnprocessed returns the objects with a change that was not processed, and forgets them.
func (p *progress) takeUnprocessed() map[api.ID]bool {
	ids := p.unprocessed
	p.unprocessed = map[api.ID]bool{}
	return ids
}

// undone records that not all objects of a placement were tried.
func (p *progress) undone(key api.PlacementKey) { p.untried.add(key) }

// allDone records that all objects of all placements were tried.
func (p *progress) allDone() { p.untried = placementSet{} }

// forgetVerified has all objects verified again.
func (p *progress) forgetVerified() { clear(p.verified) }

// forgetAll forgets what was done about objects of some works.
func (p *progress) forgetAll(works desired.Works) {
	clear(p.verified)
	clear(p.failed)
	for _, w := range works {
		p.undone(w.Placement)
	}
}

// retryNow makes the retry of an object due. It reports whether there is one.
func (p *progress) retryNow(id api.ID) bool {
	t := p.failed[id]
	if t != nil {
		t.next = time.Now() // not zero, since the timer has to be set
	}
	return t != nil
}

// retryKinds returns the objects whose kinds are not known and in some groups, which are to be retried at once.
func (p *progress) retryKinds(groups map[string]bool) (ids []api.ID) {
	for id, t := range p.failed {
		if t.unknownKind() && groups[id.Group] {
			t.next = time.Time{}
			ids = append(ids, id)
		}
	}
	return ids
}

// retryAll makes the retries of all objects due.
func (p *progress) retryAll() {
	for _, t := range p.failed {
		t.next = time.Time{}
	}
}

// retryNamespace returns the failed objects of a namespace, which are to be retried at once. That retry
// does not increase their backoff, and resets that of objects that waited for the namespace.
func (p *progress) retryNamespace(namespace string) (ids []api.ID) {
	for id, t := range p.failed {
		if id.Namespace == namespace && !t.unknownKind() {
			if t.failures--; t.namespaceMissing || t.failures < 0 {
				t.failures = 0
			}
			t.next = time.Now() // not zero, since the timer has to be set
			ids = append(ids, id)
		}
	}
	return ids
}

// reconsider forgets the state of the objects of a placement whose strategy has changed, and of
// objects whose suspension has begun or ended.
func (p *progress) reconsider(was, now *work.Work) {
	otherStrategy := !reflect.DeepEqual(was.Strategy, now.Strategy)
	for _, m := range now.Manifests {
		if t := p.failed[m.ID]; t != nil && t.recreate && now.AllowDelete && !was.AllowDelete {
			t.next = time.Time{} // it may be recreated now
		}
		reason := now.SuspendedReason(m.ID)
		if suspensionChanged := reason != was.SuspendedReason(m.ID); suspensionChanged && reason == "" {
			p.suspects[m.ID] = true // its values may have changed meanwhile
		} else if !suspensionChanged && !otherStrategy {
			continue
		}
		delete(p.failed, m.ID)
		delete(p.verified, m.ID)
	}
}

// forgetKind drops what is known of a kind that the cluster has answered not to serve any more in this
// version, and has its desired objects processed: the kind is looked up again, and their status says
// in which versions it is served.
func (p *progress) forgetKind(c *cluster, wanted desired.Objects, gvk schema.GroupVersionKind) {
	c.kinds.Forget(gvk)
	if k := c.watch.Of(gvk); k != nil {
		c.watch.End(k)
	}
	for id, w := range wanted.All() {
		if w.GVK() == gvk {
			p.unprocessed[id] = true
		}
	}
	c.watch.Changes.Notify()
}

// A pendingDefinition says that a kind waits until its definition, which is placed on the
// cluster too, is established.
type pendingDefinition struct{ error }

// Unwrap returns the error of the API server.
func (c *pendingDefinition) Unwrap() error { return c.error }

// reportInterval is the time between two comparisons of a placement with the strategy ReportDiff. Polling is needed because only
// objects with gitfleet's label are watched.
const reportInterval = 5 * time.Minute

// A waitingDeletions has the object that has to be gone first, by the one that waits for it.
type waitingDeletions map[waitingDeletion]deletion.Object

// A waitingDeletion is an object of a placement that is not deleted yet.
type waitingDeletion struct {
	id        api.ID
	placement api.PlacementKey
}

// The shortest and longest time between two reads of an object that was deleted and still exists.
const (
	firstLook = 5 * time.Second
	lastLook  = 2 * time.Minute
)
