package member

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// errSilent is the error of the objects that a pass skips because the API server does not
// respond.
var errSilent = connection.Unreachable(errors.New("the API server has stopped answering; trying again once it does"))

// do runs a task. It only reads the session, and may run concurrently with others.
func (s *session) do(ctx context.Context, t task) outcome {
	start := time.Now()
	o := s.attempt(ctx, t)
	if o.written != nil || o.err != nil {
		s.cfg.Metrics.done(s.cfg.Name, string(o.do), o.err)
		s.cfg.Metrics.OperationSeconds.Observe(time.Since(start).Seconds())
	}
	return o
}

func (s *session) attempt(ctx context.Context, t task) outcome {
	if t.spared != "" {
		return s.observeSpared(ctx, t)
	}
	switch {
	case t.held:
		return s.compareHeld(ctx, t)
	case t.accepting:
		return s.accept(ctx, t)
	}
	if o, ok := s.applyUnread(ctx, t); ok {
		return o
	}
	return s.readAndApply(ctx, t)
}

// applyUnread runs tasks that need not read the live object first, because the object is ours
// and unchanged, does not exist, or may be taken over whatever its content is.
func (s *session) applyUnread(ctx context.Context, t task) (outcome, bool) {
	strategy := s.works[t.placement].Strategy
	if strategy.Type == api.ReportDiff || diff.CompareAfter(strategy) || t.drift {
		return outcome{}, false
	}
	do := diff.Apply
	switch l := s.live.Of(t.manifest.ID); {
	case t.item.Hash == "":
		if do = s.foundOperation(t); do == diff.NeedRead {
			return outcome{}, false
		}
	case leavesFields(t.manifest) || l == nil || l.Fleet != s.cfg.Fleet && l.Fleet != "":
		return outcome{}, false
	case l.Owned && !strategy.AllowCoOwnership || s.scaled(t.wanted):
		return outcome{}, false
	case strategy.WhenToApply == api.ApplyIfNotDrifted && t.item.Hash == t.manifest.Hash:
		return outcome{}, false
	}
	return s.write(ctx, t, do, snapshot{}), true
}

// foundOperation decides what to do about an object that was never applied, from the result of
// the survey; NeedRead if that is not enough.
func (s *session) foundOperation(t task) diff.Operation {
	switch {
	case t.found == nil:
		return diff.NeedRead
	case t.found.meta == nil:
		return diff.Create
	case leavesFields(t.manifest) || scales(t, t.found.meta.ManagedFields):
		return diff.NeedRead
	}
	if do, _ := diff.Decide(s.facts(t, t.found.meta)); do == diff.TakeOver || do == diff.Apply {
		return do
	}
	return diff.NeedRead
}

// leavesFields reports whether a manifest has fields that are left to others.
func leavesFields(m *work.Manifest) bool {
	return m.Object.Object.GetAnnotations()[api.IgnoreFieldsAnnotation] != ""
}

// A snapshot is a live object as it was read before a write.
type snapshot struct {
	live   *unstructured.Unstructured // nil if it does not exist or was not read
	rivals []rival
}

// readAndApply reads the live object, compares it if the strategy requires that, and executes
// the result of Decide.
func (s *session) readAndApply(ctx context.Context, t task) outcome {
	o := outcome{task: t, do: diff.NeedRead}
	live, err := s.conn.Read(ctx, t.res, t.manifest.ID)
	if err != nil {
		return s.readFailed(o, diff.ReadFailed(err), err)
	}
	saw := snapshot{live: live}
	if !s.reports(t.placement) {
		saw.rivals = s.rivals(ctx, t, live)
	}
	facts := diff.Case{Live: diff.Absent, Strategy: s.works[t.placement].Strategy}
	if live != nil {
		facts = s.facts(t, live)
	}
	var c comparison
	for {
		do, why := diff.Decide(facts)
		if do != diff.NeedRead {
			return s.execute(ctx, t, saw, do, why, c)
		}
		if c, err = s.compare(ctx, t, live, saw.rivals); err != nil {
			return s.readFailed(o, compareFailed(facts, err), err)
		}
		facts.Compared, facts.Diffs = true, len(c.diffs)
	}
}

// readFailed returns the outcome of a task whose live object could not be read.
func (s *session) readFailed(o outcome, cond metav1.Condition, err error) outcome {
	o.cond, o.err = cond, err
	if s.works[o.placement].Strategy.Type == api.ReportDiff {
		o.cond = diff.ReportFailed(err)
	}
	o.cond = unanswered(o.cond, err)
	return o
}

// unanswered replaces the message of a condition if the request got no response, since the API
// server has not rejected the object.
func unanswered(cond metav1.Condition, err error) metav1.Condition {
	if connection.IsUnreachable(err) {
		cond.Message = err.Error()
	}
	return cond
}

func compareFailed(c diff.Case, err error) metav1.Condition {
	if c.Owner == diff.Ours {
		return diff.DriftCompareFailed(err)
	}
	return diff.TakeOverCompareFailed(err)
}

// facts returns the input of Decide about a live object.
func (s *session) facts(t task, live metav1.Object) diff.Case {
	applied := t.item != nil && t.item.Hash != ""
	c := diff.Case{
		Live: diff.Present, Strategy: s.works[t.placement].Strategy,
		Owner:   diff.OwnerOf(live, s.cfg.Fleet, t.placement, s.markerStale),
		CoOwned: len(live.GetOwnerReferences()) > 0,
		Changed: t.item == nil || t.item.Hash != t.manifest.Hash,
		Drifted: applied && diff.ApplyHash(live.GetManagedFields(), api.FieldManager) != t.item.Managed,
	}
	if c.Owner == diff.Foreign && applied && live.GetUID() == t.item.UID {
		c.Owner = diff.Ours // somebody has removed our label, but it is still our object
	}
	return c
}

// markerStale reports whether the placement in an object's marker no longer has a claim to the
// object: it does not exist on this cluster, or gives the object up.
func (s *session) markerStale(placement string) bool {
	for p := range s.works {
		if p.String() == placement {
			return s.prunes(p)
		}
	}
	return true
}

// execute executes a decision.
func (s *session) execute(ctx context.Context, t task, saw snapshot, do diff.Operation, why diff.Refusal, c comparison) outcome {
	o := outcome{task: t, do: do, diffs: c.diffs, snapshot: saw}
	if saw.live != nil {
		o.gen = saw.live.GetGeneration()
	}
	switch do {
	case diff.Create, diff.Apply, diff.TakeOver:
		o = s.write(ctx, t, do, saw)
		if o.written != nil && diff.CompareAfter(s.works[t.placement].Strategy) {
			s.compareAfter(ctx, &o)
		}
	case diff.Nothing:
		o.cond = diff.Applied()
	case diff.Report:
		o.cond = diff.Reported(len(c.diffs), c.degraded)
		o.cond.Message += c.note
	case diff.Refuse:
		o.cond = diff.Refused(why, diff.Owners(saw.live, s.cfg.Fleet, t.placement), c.degraded)
		o.cond.Message += c.note
	}
	return o
}

// write applies an object. saw is the live object as it was read.
func (s *session) write(ctx context.Context, t task, do diff.Operation, saw snapshot) outcome {
	o := outcome{task: t, do: do, snapshot: saw}
	commit := s.works[t.placement].Revision.Commit
	if t.item.Hash == t.manifest.Hash {
		commit = t.item.Commit
	}
	if t.drift {
		o.before = s.before(t, saw.live, saw.rivals)
	}
	body, err := s.body(t, commit, saw)
	var stored *unstructured.Unstructured
	if err == nil {
		stored, o.created, err = s.conn.ApplyWhole(ctx, t.res, t.manifest.ID, body, diff.Force(s.works[t.placement].Strategy))
	}
	var written *metav1.PartialObjectMetadata // outcomes are kept until their wave ends, so that they must be small
	if err == nil {
		written = meta.AsPartialObjectMetadata(stored)
	}
	if err == nil && t.item.Hash == "" && appliedByClient(written.ManagedFields) {
		if stored, err = s.adopt(ctx, t, body, stored); err == nil {
			written = meta.AsPartialObjectMetadata(stored)
		}
	}
	if err != nil {
		o.err = err
		o.cond = unanswered(diff.ApplyFailed(do, s.scrub(ctx, t, saw.live, err)), err)
		if o.immutable = refusesImmutable(err); o.immutable && t.item.Hash != "" {
			o.cond.Message = adviseRecreation(o.cond.Message, t.manifest)
		}
		return o
	}
	o.written = written
	o.altered = diff.Altered(t.manifest.Object.Object, stored, paths(saw.rivals))
	if o.before.Deleted && o.written.UID == t.item.UID {
		o.before.Deleted = false // the object existed all the time
	}
	o.gen = o.written.Generation
	o.cond = diff.Applied()
	return o
}

// scrub removes the values of a Secret from an error: those of the object that was sent, and of
// the live one.
func (s *session) scrub(ctx context.Context, t task, live *unstructured.Unstructured, err error) error {
	desired := t.manifest.Object.Object
	if live == nil && connection.Answered(err) && desired.GetKind() == "Secret" {
		live, _ = s.conn.Read(ctx, t.res, t.manifest.ID) // if it can be read
	}
	return diff.SecretsOf(desired, live).Error(err)
}
