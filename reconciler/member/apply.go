package member

import (
	"cmp"
	"context"
	"maps"
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
)

// A task is one object to be seen to.
type task struct {
	wanted
	res  resource
	item *item // nil if it is in no inventory of its placement
	// absent says that we know of no such object; it may be there all the same,
	// without our label.
	absent bool
	drift  bool
	// spared is why the object is only looked at; empty if it is not.
	spared string
	// held says that the drift of the object is left as it is, accepting that its new
	// version may be what others made of it.
	held, accepting bool
	// found is what was found of an object that was never applied; nil if nobody
	// looked.
	found *finding
}

// An outcome is what came of a task.
type outcome struct {
	task
	do      diff.Operation
	cond    metav1.Condition
	err     error
	written *metav1.PartialObjectMetadata // nil if nothing was written
	created bool                          // the object was not there before
	diffs   []api.Difference
	gen     int64
	sight
	// before is what was put back, if the task was to put something back.
	before ledger.Drift
	// altered is what the server stored otherwise than it was applied.
	altered []api.PatchDetail
	// accepted is the hash of the fields that we own of an object that its new version
	// was found to be equal to; empty if none was.
	accepted string
	// gone says that the object is left deleted.
	gone bool
}

// repairs reports whether something was put back that somebody had changed: the
// task was to, and it made a difference.
func (o *outcome) repairs() bool {
	if !o.drift || o.written == nil {
		return false
	}
	return o.live == nil || o.live.GetResourceVersion() != o.written.ResourceVersion
}

// process sees to some objects: applies those that are not as wanted, removes
// those that nobody wants, and keeps the inventories. Objects that are as they
// should be cost no request.
func (s *session) process(ctx context.Context, ids map[api.ID]bool) {
	if s.prepared(ctx, ids) {
		s.attend(ctx, ids)
	}
}

// prepared makes sure that what is there of some objects is known before anything
// is done about them. If it cannot be known now, they are seen to later.
func (s *session) prepared(ctx context.Context, ids map[api.ID]bool) bool {
	if len(ids) == 0 || s.foreign() {
		return false
	}
	err := s.learn(ctx, ids)
	if err == nil {
		s.unknown = logLimiter{}
		return true
	}
	if s.unknown.due(gist(plain(err))) {
		s.cfg.Log.Warn("kinds not known; trying again", "cluster", s.cfg.Name, "err", plain(err))
	}
	s.postpone(ids)
	return false
}

// attend sees to objects that are prepared for.
func (s *session) attend(ctx context.Context, ids map[api.ID]bool) {
	clear(s.fresh)
	tasks, prune := s.look(ids)
	touched := map[api.PlacementKey]bool{}
	if tasks = s.announce(ctx, tasks, touched); s.foreign() {
		return // the turn ends with standBack
	}
	s.apply(ctx, tasks, touched)
	s.prune(ctx, prune, touched)
	s.settle(ctx, touched)
	s.reschedule()
}

// postpone has objects seen to later, because nothing can be done about them
// now: without knowing their kinds we could not tell what is gone.
func (s *session) postpone(ids map[api.ID]bool) {
	for id := range ids {
		s.unseen[id] = true
	}
	s.blocked = true
	s.schedule(inventoryRetry)
}

// look finds out which of the objects need seeing to.
func (s *session) look(ids map[api.ID]bool) ([]task, []stale) {
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

// stales lists who has an object here without wanting it any more.
func (s *session) stales(id api.ID) []stale {
	var out []stale
	w, isWanted := s.wanted.of(id)
	// Who only compares takes over nothing.
	taken := isWanted && !s.reports(w.placement)
	for p, inv := range s.inv {
		if isWanted && p == w.placement || !s.leaves(p) {
			continue
		}
		it := inv.items.of(id)
		if it == nil || s.spared(p, id) != "" {
			continue
		}
		st := stale{inv: inv, item: it, handedOver: taken}
		if !taken {
			owner, found := s.newOwner(id, p)
			if found && (owner == p || s.resting(owner)) {
				continue // it stays where it is
			}
			st.newOwner = owner
		}
		out = append(out, st)
	}
	return out
}

// leaves reports whether what a placement has here and no longer lists is to be
// removed: not if nobody told us what it lists.
func (s *session) leaves(p api.PlacementKey) bool {
	w, told := s.works[p]
	return told && !w.Keep && w.Strategy.Type != api.ReportDiff
}

// task decides from what we know, without asking, whether an object needs
// anything done.
func (s *session) task(id api.ID, w wanted) (task, bool) {
	t := task{wanted: w}
	gvk := w.manifest.Object.Object.GroupVersionKind()
	res, ok := s.kinds.of(gvk)
	if bad := s.trouble[id]; bad != nil && bad.hash == w.manifest.Hash && s.waits(bad, id) && !(ok && bad.unknownKind) {
		return t, false
	}
	if !ok {
		s.fail(outcome{task: t, cond: diff.DecodeFailed(s.unknownKind(gvk))})
		return t, false
	}
	t.res = res
	if inv := s.inv[w.placement]; inv != nil {
		t.item = inv.items.of(id)
	}
	l := s.live.of(id)
	t.absent = l == nil
	if s.reports(w.placement) {
		return t, true
	}
	if t.spared = s.spared(w.placement, id); t.spared != "" {
		return t, s.astray(t, l) || s.suspects[id]
	}
	if l != nil && l.terminating && (t.item == nil || t.item.Hash == "") {
		// What is written now would go with it.
		s.fail(outcome{task: t, cond: diff.NotApplied(api.ManifestApplyFailed, "the object is being deleted; it is created anew once it is gone")})
		return t, false
	}
	if t.item == nil || t.item.Hash != w.manifest.Hash {
		t.accepting = s.accepts(t, l)
		return t, true
	}
	if l == nil && !s.watch.of(gvk).sees() {
		return t, s.trouble[id] != nil // we cannot tell, and trust what we applied
	}
	if l != nil && l.terminating {
		return t, false // it is created anew once it is gone
	}
	t.drift = l == nil || l.managed != t.item.Managed || l.fleet != s.cfg.Fleet
	if !t.drift {
		return t, s.trouble[id] != nil || s.unverified(w)
	}
	t.held = s.holds(t, l)
	return t, t.held || s.protects(w.placement) || s.undone(t, l)
}

// protects says that a placement does not put back what others change.
func (s *session) protects(p api.PlacementKey) bool {
	return s.works[p].Strategy.WhenToApply == api.ApplyIfNotDrifted
}

// apply works through the tasks, wave after wave; within a wave several at a
// time. One that fails does not hold up the others.
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
		for _, o := range s.concurrently(ctx, tasks[:n]) {
			if o.err != nil && ctx.Err() != nil {
				continue // the session ends, and that is no failure of the object
			}
			s.conclude(o, touched)
			faults.At("applied")
		}
		tasks = tasks[n:]
	}
}

// concurrently does the tasks of one wave and returns an outcome for each, in
// their order. Once the server has stopped answering, the rest is not tried.
func (s *session) concurrently(ctx context.Context, tasks []task) []outcome {
	out := make([]outcome, len(tasks))
	slots := make(chan struct{}, s.cfg.Concurrency)
	var wg sync.WaitGroup
	for i := range tasks {
		if ctx.Err() != nil || s.cutOff() {
			out[i] = outcome{task: tasks[i], do: diff.Apply, cond: unanswered(diff.ApplyFailed(diff.Apply, errSilent), errSilent), err: errSilent}
			continue
		}
		slots <- struct{}{}
		giveBack := takePlace(ctx, s.cfg.Limit) // before there is a goroutine: very many clusters wait for a place
		wg.Go(func() {
			defer func() { <-slots }()
			defer giveBack()
			out[i] = s.do(ctx, tasks[i])
		})
	}
	wg.Wait()
	return out
}

// conclude takes in what came of a task.
func (s *session) conclude(o outcome, touched map[api.PlacementKey]bool) {
	id := o.manifest.ID
	s.remember(o)
	if o.created && id.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		s.fresh[id.Name] = true
		s.hurry(id.Name) // what the watch tells of it is nothing new, and revives nothing
	}
	if o.written != nil {
		delete(s.suspects, id)
		l := liveOf(o.written)
		l.health = s.healthAfter(id, o, l)
		s.live.put(id, l)
		it := o.item
		if it.Hash != o.manifest.Hash || it.Managed != l.managed || it.UID != l.uid || it.Version != o.res.Version {
			touched[o.placement] = true
		}
		if it.Hash != o.manifest.Hash {
			it.Commit = s.works[o.placement].Revision.Commit
		}
		it.Version, it.Hash, it.Managed, it.UID = o.res.Version, o.manifest.Hash, l.managed, l.uid
		s.inv[o.placement].items.put(*it)
	}
	if o.accepted != "" {
		s.takeAccepted(&o, touched)
	}
	if o.err == nil && !o.gone && o.cond.Reason != api.AppliedWithFailedDriftDetection && s.verifies(o.wanted) {
		s.verified[id] = s.standing(id)
	}
	s.recall(&o)
	if o.asWanted() {
		delete(s.trouble, id)
		return
	}
	if o.cond.Reason == api.ManifestApplied && len(o.diffs) == 0 && !s.reports(o.placement) {
		delete(s.trouble, id)
		return
	}
	s.fail(o)
}

// healthAfter is what is known of an object's health right after we wrote it:
// for kinds that take their time nothing, until the watch tells.
func (s *session) healthAfter(id api.ID, o outcome, l *live) health.Health {
	gvk := o.manifest.Object.Object.GroupVersionKind()
	if !looksAtBody(o.manifest) {
		return health.OfKind(gvk)
	}
	if old := s.live.of(id); old != nil && old.version == l.version {
		return old.health
	}
	return health.Health{State: health.NotAvailableYet, Message: "applied; its status is not known yet"}
}

// settle writes the inventories that changed, each at most once, and removes
// those that hold nothing for a placement that is gone.
func (s *session) settle(ctx context.Context, touched map[api.PlacementKey]bool) {
	for p, inv := range s.inv {
		w, told := s.works[p]
		if told && (inv.owner != s.owner() || inv.Abandon != w.Abandon || w.Remove && len(inv.items.byID) == 0 || inv.Revision != w.Revision && s.complete(p)) {
			touched[p] = true
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(touched), func(a, b api.PlacementKey) int { return cmp.Compare(a.String(), b.String()) }) {
		inv := s.inv[p]
		if inv == nil || s.resting(p) {
			continue
		}
		w, told := s.works[p]
		var err error
		switch {
		case told && w.Remove && len(inv.items.byID) == 0:
			if len(s.inv) == 1 {
				err = s.dropClaim(ctx)
			}
			if err == nil {
				err = s.drop(ctx, inv)
			}
			if err == nil {
				delete(s.inv, p)
			}
		default:
			if told && s.complete(p) {
				inv.Revision = w.Revision
			}
			if told {
				inv.Abandon = w.Abandon
			}
			s.digested(inv)
			faults.At("before inventory")
			err = s.save(ctx, inv)
			faults.At("after inventory")
		}
		if err == nil {
			inv.unwritten = logLimiter{}
			continue
		}
		inv.written = ""
		if ctx.Err() == nil && inv.unwritten.due(gist(err)) {
			s.cfg.Log.Warn("inventory not written; trying again", "cluster", s.cfg.Name, "placement", p.String(), "err", err)
		}
	}
	s.reportOwners()
}

// complete reports whether everything a placement wants here is applied.
func (s *session) complete(p api.PlacementKey) bool {
	for _, m := range s.works[p].Manifests {
		if w, _ := s.wanted.of(m.ID); w.placement != p || s.trouble[m.ID] != nil {
			return false
		}
	}
	return !s.works[p].Keep && !s.works[p].Remove
}
