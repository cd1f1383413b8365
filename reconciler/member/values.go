package member

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// Values can change without a change of field ownership: somebody applies under our own field
// manager, or an admission webhook changes what others write. The metadata does not show that.
// So an object that others have written is read, and its values are compared with those that
// were applied.

// A valuesCheck is the result of comparing the values of an object.
type valuesCheck struct {
	// changed says that an apply would change something.
	changed bool
	// altered are fields that the server would store differently from what is applied.
	altered []api.PatchDetail
	// ignored are the differences in fields that the object leaves to others.
	ignored []api.Difference
	// unknown says that the values could not be compared.
	unknown bool
}

// checkValues compares the values of a live object with those that were applied. A difference
// that a structural comparison finds is confirmed by a server-side dry run, which includes
// admission webhooks.
func (x *executor) checkValues(ctx context.Context, t task, live *unstructured.Unstructured) valuesCheck {
	desired := t.manifest.Object.Object
	var ignored []api.Difference
	if leavesFields(t.manifest) {
		ignored = ignoredIn(t, live)
	}
	structural := diff.Compare(desired, live, diff.Options{Structural: true})
	if len(structural) == 0 {
		return valuesCheck{ignored: ignored}
	}
	known := t.alteredBefore
	merged, err := x.merged(ctx, t)
	switch {
	case refusesDryRun(err):
		return valuesCheck{changed: !sameValues(structural, known), altered: known, ignored: ignored}
	case err != nil:
		return valuesCheck{unknown: true}
	}
	again, err := x.conn.Read(ctx, t.res, t.manifest.ID)
	if err != nil || again == nil || again.GetResourceVersion() != live.GetResourceVersion() {
		return valuesCheck{unknown: true} // the object is changing at the moment
	}
	altered := diff.Altered(desired, merged, nil)
	found := diff.Repairable(diff.Compare(merged, live, diff.Options{}), altered, known)
	return valuesCheck{changed: len(found) > 0, altered: altered, ignored: ignored}
}

// sameValues reports whether two comparisons have the same result, as far as it is recorded.
func sameValues(found, known []api.PatchDetail) bool {
	return slices.EqualFunc(drift.Shorten(differences(found)), known, func(a api.Difference, b api.PatchDetail) bool { return a.PatchDetail == b })
}

// differences are details without an actor.
func differences(details []api.PatchDetail) []api.Difference {
	return diff.Differences(nil, api.FieldManager, details)
}

// clockSkew is the maximum difference between the clocks of a cluster's API servers.
const clockSkew = 2 // seconds

// writtenWhileAway reports whether an object of which only the inventory is known may have been
// changed while the agent was not running: it was applied under our name after the inventory
// was last written, or it was accepted with the values of others and they have written to it
// since.
func (s *session) writtenWhileAway(id api.ID, now *observed.Object) bool {
	w, isWanted := s.wanted.of(id)
	if !isWanted {
		return false
	}
	if known := s.inv[w.placement]; known != nil {
		if it := known.Items.Of(id); it != nil && it.Others != "" && it.Others != now.Foreign() {
			return true
		}
	}
	inv := s.live.Of(inventory.FirstPart(s.cfg.Fleet, w.placement))
	return inv != nil && now.Applied > inv.Applied+clockSkew
}

// writtenByOthers reports whether others have written an object since its state was last known,
// so that its values may have changed. Changes of its status do not count.
func (s *session) writtenByOthers(id api.ID, old, now *observed.Object) bool {
	if old == nil {
		return s.writtenWhileAway(id, now)
	}
	if old.UID != now.UID || now.Version <= old.Version {
		return false
	}
	if s.store.Has(id) {
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
	w, isWanted := s.wanted.of(id)
	if !isWanted {
		return false
	}
	k := s.watch.Of(w.manifest.Object.Object.GroupVersionKind())
	return k != nil && !k.Full
}

// valuesRetry is the first delay before values that could not be compared are compared
// again.
const valuesRetry = 2 * time.Second

// manySuspects is the number of objects from which lists are cheaper for the server than single
// reads.
const manySuspects = 100

// checkWritten compares the values of objects that others have written, and corrects what they
// changed.
func (s *session) checkWritten(ctx context.Context) {
	if s.conn.CutOff() || s.leaving {
		return
	}
	var tasks []task
	for id := range s.suspects {
		if t, asApplied := s.asApplied(id); asApplied {
			tasks = append(tasks, t)
		}
	}
	clear(s.suspects)
	switch {
	case len(tasks) == 0:
		return
	case len(tasks) > manySuspects:
		s.sweepNow(ctx)
		return
	}
	x := s.executor()
	checks := make([]valuesCheck, len(tasks))
	slots := make(chan struct{}, s.cfg.Concurrency)
	var wg sync.WaitGroup
	for i, t := range tasks {
		slots <- struct{}{}
		t = s.withInputs(t)
		giveBack := takePlace(ctx, s.cfg.Limit)
		wg.Go(func() {
			defer func() { <-slots }()
			defer giveBack()
			live, err := s.conn.Read(ctx, t.res, t.manifest.ID)
			if err != nil || live == nil {
				checks[i].unknown = true // if the object is gone, its watch event follows
				return
			}
			checks[i] = x.checkValues(ctx, t, live)
		})
	}
	wg.Wait()
	s.concludeChecks(ctx, tasks, checks)
}

// concludeChecks processes the results of comparisons of values.
func (s *session) concludeChecks(ctx context.Context, tasks []task, checks []valuesCheck) {
	wrong, news := map[api.ID]bool{}, map[api.ID]bool{}
	for i, c := range checks {
		t := tasks[i]
		id := t.manifest.ID
		switch {
		case c.unknown:
			s.suspects[id] = true // retried after valuesRetry
		case c.changed:
			wrong[id] = true
		default:
			generation := s.live.Of(id).Generation
			altered, ignored := s.noteAltered(t, generation, c.altered), s.noteIgnored(t, generation, c.ignored)
			if altered || ignored {
				news[id] = true
			}
		}
	}
	if len(wrong) > 0 {
		s.mend(ctx, wrong)
	}
	if len(news) > 0 {
		s.reportTouched(ctx, news)
	}
	if len(s.suspects) == 0 {
		s.compareFailures = 0
		return
	}
	s.compareNext = time.Now().Add(s.compareFailures.Next(valuesRetry, lastRetry))
	s.reschedule()
}

// alteredMessage explains a difference that nobody has made since the apply.
const alteredMessage = "the API server or an admission webhook stores other values than are applied, at each apply; " +
	"put them into the manifest, or exempt the object from the webhook"

// noteAltered records the fields that the server stores differently from what is applied. If
// there are none, that drift ends. It reports whether the record has changed.
func (s *session) noteAltered(t task, generation int64, altered []api.PatchDetail) bool {
	p, id := t.placement, t.manifest.ID
	known := s.memory.State(p, id) == api.DriftAltered
	now := ledger.Drift{Message: alteredMessage, Generation: generation, Paths: differences(altered)}
	if !s.noteLasting(t, api.DriftAltered, now, sameValues(altered, s.memory.Altered(p, id)), false) {
		return false
	}
	if !known {
		s.cfg.Log.Warn("the API server or an admission webhook changes what is applied", "cluster", s.cfg.Name,
			"placement", p.String(), "object", id.String(), "paths", drift.Paths(now.Paths))
	}
	return true
}

// noteIgnored records the current values of fields that an object leaves to others. If there
// are none, that drift ends. It reports whether the record has changed. A record of drift in
// other fields is kept.
func (s *session) noteIgnored(t task, generation int64, ignored []api.Difference) bool {
	was := s.memory[t.placement][t.manifest.ID]
	switch was.State {
	case "", api.DriftEnded, api.DriftIgnored:
	default:
		return false
	}
	unchanged := slices.EqualFunc(drift.Shorten(ignored), was.Paths, func(a, b api.Difference) bool { return a.PatchDetail == b.PatchDetail })
	return s.noteLasting(t, api.DriftIgnored, ignoredDrift(generation, ignored), unchanged, was.State != api.DriftIgnored)
}

// noteLasting records drift that lasts while it has paths, and ends it once it has none. It
// reports whether the record has changed. unchanged says that the paths are those of the
// record; for anew see note.
func (s *session) noteLasting(t task, state api.DriftState, now ledger.Drift, unchanged, anew bool) bool {
	was := s.memory[t.placement][t.manifest.ID]
	known := was.State == state
	switch {
	case len(now.Paths) == 0 && known:
		s.memory.End(t.placement, was)
		return true
	case len(now.Paths) == 0, known && unchanged:
		return false
	}
	s.note(t, state, now, anew)
	return true
}
