package member

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// errSilent is the error of the objects that a pass skips because the API server does not
// respond.
var errSilent = connection.Unreachable(errors.New("the API server has stopped answering; trying again once it does"))

// An executor runs tasks: it decides what to do about an object, does it, and returns the outcome.
// It is safe for concurrent use, and knows of the cluster only what it reads and what a task says.
type executor struct {
	conn           *connection.Conn
	cluster, fleet string
	encoder        *Encoder
	metrics        *Metrics
	works          desired
	// untried are the kinds whose objects no dry run is requested of, and why.
	untried map[schema.GroupVersionKind]string
}

// executor returns an executor of tasks for the works as they are now.
func (s *session) executor() *executor {
	return &executor{
		conn: s.conn, cluster: s.cfg.Name, fleet: s.cfg.Fleet, encoder: s.cfg.Encoder, metrics: s.cfg.Metrics,
		works: s.works, untried: s.untried,
	}
}

// inputs are what an executor needs to know of the object of a task.
type inputs struct {
	// known is the object as its watch knows it; nil if it does not.
	known *observed.Object
	// rule is the rule in force for the drift of the object, resolution the decision about its
	// drift; nil if there is none.
	rule       api.DriftRule
	resolution *ledger.Resolution
	// alteredBefore are the fields that the server is known to store differently from what is
	// applied.
	alteredBefore []api.PatchDetail
}

// withInputs returns a task with what is known of its object now.
func (s *session) withInputs(t task) task {
	p, id := t.placement, t.manifest.ID
	t.inputs = inputs{known: s.live.Of(id), rule: s.driftRule(t), alteredBefore: s.memory.Altered(p, id)}
	if r, known := s.resolution(p, id); known {
		t.resolution = &r
	}
	return t
}

// do runs a task.
func (x *executor) do(ctx context.Context, t task) outcome {
	start := time.Now()
	o := x.attempt(ctx, t)
	if o.written != nil || o.err != nil {
		x.metrics.done(x.cluster, string(o.do), o.err)
		x.metrics.OperationSeconds.Observe(time.Since(start).Seconds())
	}
	return o
}

func (x *executor) attempt(ctx context.Context, t task) outcome {
	if t.spared != "" {
		return x.observeSpared(ctx, t)
	}
	switch {
	case t.held:
		return x.compareHeld(ctx, t)
	case t.accepting:
		return x.accept(ctx, t)
	}
	if o, ok := x.applyUnread(ctx, t); ok {
		return o
	}
	return x.readAndApply(ctx, t)
}

// applyUnread runs tasks that need not read the live object first, because the object is ours
// and unchanged, does not exist, or may be taken over whatever its content is.
func (x *executor) applyUnread(ctx context.Context, t task) (outcome, bool) {
	strategy := x.works[t.placement].Strategy
	if strategy.Type == api.ReportDiff || diff.CompareAfter(strategy) || t.drift {
		return outcome{}, false
	}
	do := diff.Apply
	switch l := t.known; {
	case t.item.Hash == "":
		if do = x.foundOperation(t); do == diff.NeedRead {
			return outcome{}, false
		}
	case leavesFields(t.manifest) || l == nil || l.Fleet != x.fleet && l.Fleet != "":
		return outcome{}, false
	case l.Owned && !strategy.AllowCoOwnership || scaled(t.manifest, t.known):
		return outcome{}, false
	case strategy.WhenToApply == api.ApplyIfNotDrifted && t.item.Hash == t.manifest.Hash:
		return outcome{}, false
	}
	return x.write(ctx, t, do, snapshot{}), true
}

// foundOperation decides what to do about an object that was never applied, from the result of
// the survey; NeedRead if that is not enough.
func (x *executor) foundOperation(t task) diff.Operation {
	switch {
	case t.found == nil:
		return diff.NeedRead
	case t.found.meta == nil:
		return diff.Create
	case leavesFields(t.manifest) || scales(t, t.found.meta.ManagedFields):
		return diff.NeedRead
	}
	if do, _ := diff.Decide(x.facts(t, t.found.meta)); do == diff.TakeOver || do == diff.Apply {
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
func (x *executor) readAndApply(ctx context.Context, t task) outcome {
	o := outcome{task: t, do: diff.NeedRead}
	live, err := x.conn.Read(ctx, t.res, t.manifest.ID)
	if err != nil {
		return x.readFailed(o, diff.ReadFailed(err), err)
	}
	saw := snapshot{live: live}
	if !x.works.reports(t.placement) {
		saw.rivals = x.rivals(ctx, t, live)
	}
	facts := diff.Case{Live: diff.Absent, Strategy: x.works[t.placement].Strategy}
	if live != nil {
		facts = x.facts(t, live)
	}
	var c comparison
	for {
		do, why := diff.Decide(facts)
		if do != diff.NeedRead {
			return x.execute(ctx, t, saw, do, why, c)
		}
		if c, err = x.compare(ctx, t, live, saw.rivals); err != nil {
			return x.readFailed(o, compareFailed(facts, err), err)
		}
		facts.Compared, facts.Diffs = true, len(c.diffs)
	}
}

// readFailed returns the outcome of a task whose live object could not be read.
func (x *executor) readFailed(o outcome, cond metav1.Condition, err error) outcome {
	o.cond, o.err = cond, err
	if x.works[o.placement].Strategy.Type == api.ReportDiff {
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
func (x *executor) facts(t task, live metav1.Object) diff.Case {
	applied := t.item != nil && t.item.Hash != ""
	c := diff.Case{
		Live: diff.Present, Strategy: x.works[t.placement].Strategy,
		Owner:   diff.OwnerOf(live, x.fleet, t.placement, x.works.markerStale),
		CoOwned: len(live.GetOwnerReferences()) > 0,
		Changed: t.item == nil || t.item.Hash != t.manifest.Hash,
		Drifted: applied && diff.ApplyHash(live.GetManagedFields(), api.FieldManager) != t.item.Managed,
	}
	if c.Owner == diff.Foreign && applied && live.GetUID() == t.item.UID {
		c.Owner = diff.Ours // somebody has removed our label, but it is still our object
	}
	return c
}

// execute executes a decision.
func (x *executor) execute(ctx context.Context, t task, saw snapshot, do diff.Operation, why diff.Refusal, c comparison) outcome {
	o := outcome{task: t, do: do, diffs: c.diffs, snapshot: saw}
	if saw.live != nil {
		o.gen = saw.live.GetGeneration()
	}
	switch do {
	case diff.Create, diff.Apply, diff.TakeOver:
		o = x.write(ctx, t, do, saw)
		if o.written != nil && diff.CompareAfter(x.works[t.placement].Strategy) {
			x.compareAfter(ctx, &o)
		}
	case diff.Nothing:
		o.cond = diff.Applied()
	case diff.Report:
		o.cond = diff.Reported(len(c.diffs), c.degraded)
		o.cond.Message += c.note
	case diff.Refuse:
		o.cond = diff.Refused(why, diff.Owners(saw.live, x.fleet, t.placement), c.degraded)
		o.cond.Message += c.note
	}
	return o
}

// write applies an object. saw is the live object as it was read.
func (x *executor) write(ctx context.Context, t task, do diff.Operation, saw snapshot) outcome {
	o := outcome{task: t, do: do, snapshot: saw}
	commit := x.works[t.placement].Revision.Commit
	if t.item.Hash == t.manifest.Hash {
		commit = t.item.Commit
	}
	if t.drift {
		o.before = x.before(t, saw.live, saw.rivals)
	}
	body, err := x.body(t, commit, saw)
	var stored *unstructured.Unstructured
	if err == nil {
		stored, o.created, err = x.conn.ApplyWhole(ctx, t.res, t.manifest.ID, body, diff.Force(x.works[t.placement].Strategy))
	}
	var written *metav1.PartialObjectMetadata // outcomes are kept until their wave ends, so that they must be small
	if err == nil {
		written = meta.AsPartialObjectMetadata(stored)
	}
	if err == nil && t.item.Hash == "" && appliedByClient(written.ManagedFields) {
		if stored, err = x.adopt(ctx, t, body, stored); err == nil {
			written = meta.AsPartialObjectMetadata(stored)
		}
	}
	if err != nil {
		o.err = err
		o.cond = unanswered(diff.ApplyFailed(do, x.scrub(ctx, t, saw.live, err)), err)
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
func (x *executor) scrub(ctx context.Context, t task, live *unstructured.Unstructured, err error) error {
	desired := t.manifest.Object.Object
	if live == nil && connection.Answered(err) && desired.GetKind() == "Secret" {
		live, _ = x.conn.Read(ctx, t.res, t.manifest.ID) // if it can be read
	}
	return diff.SecretsOf(desired, live).Error(err)
}
