package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/immutable"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	removing "github.com/gitfleet/gitfleet/reconciler/member/removal"
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
	works          desired.Works
	// untried are the kinds whose objects no dry run is requested of, and why.
	untried map[schema.GroupVersionKind]string
	// additionsMode is what is done about what others add.
	additionsMode api.AdditionsMode
}

// do runs a task.
func (x *executor) do(ctx context.Context, t task) outcome {
	start := time.Now()
	o := x.attempt(ctx, t)
	x.removeRejected(ctx, &o)
	if o.written != nil || o.err != nil {
		x.metrics.done(x.cluster, string(o.do), o.err)
		x.metrics.OperationSeconds.Observe(time.Since(start).Seconds())
	}
	return o
}

func (x *executor) attempt(ctx context.Context, t task) outcome {
	switch t.step {
	case decide.Observe:
		return x.observeSuspended(ctx, t)
	case decide.Explain:
		return x.explainDeletion(ctx, t)
	case decide.Hold:
		return x.compareHeld(ctx, t)
	case decide.Accept:
		return x.accept(ctx, t)
	case decide.Clean:
		return x.readAdditions(ctx, t)
	}
	if o, ok := x.applyUnread(ctx, t); ok {
		return o
	}
	return x.readAndApply(ctx, t)
}

// applyUnread runs tasks that need not read the live object first, because the object is ours
// and unchanged, does not exist, or may be taken over whatever its content is.
func (x *executor) applyUnread(ctx context.Context, t task) (outcome, bool) {
	strategy := x.works.Of(t.Placement).Strategy
	if strategy.Type == api.ReportDiff || diff.CompareAfter(strategy) || t.drift {
		return outcome{}, false
	}
	do := diff.Apply
	switch l := t.known; {
	case t.item.Hash == "":
		if do = x.foundOperation(t); do == diff.NeedRead {
			return outcome{}, false
		}
	case leavesFields(t.Manifest) || t.leavesReplicas() || l == nil || l.Fleet != x.fleet && l.Fleet != "":
		return outcome{}, false
	case l.Owned && !strategy.AllowCoOwnership || scaled(t.Manifest, t.known):
		return outcome{}, false
	case l.Shared || drift.Of(t.applied(x.fleet), drift.Seen(l)).Answer == drift.Drifted || t.item.Left != "":
		return outcome{}, false // ownership of fields may have to be taken
	case strategy.WhenToApply == api.ApplyIfNotDrifted && t.item.Hash == t.Manifest.Hash:
		return outcome{}, false
	}
	return x.write(ctx, t, do, snapshot{}), true
}

// foundOperation decides what to do about an object that was never applied, from the result of
// findExisting; NeedRead if that is not enough.
func (x *executor) foundOperation(t task) diff.Operation {
	switch {
	case t.found == nil:
		return diff.NeedRead
	case t.found.meta == nil:
		return diff.Create
	case leavesFields(t.Manifest) || diff.Shared(t.found.meta.ManagedFields, api.FieldManager),
		autoscaler.SetsReplicas(t.Manifest.Object.Content) && diff.Autoscaled(t.found.meta.ManagedFields):
		return diff.NeedRead
	}
	if do, _ := diff.Decide(x.facts(t, t.found.meta)); do == diff.TakeOver || do == diff.Apply {
		return do
	}
	return diff.NeedRead
}

// leavesFields reports whether a manifest leaves fields to others, of which we may own live values.
func leavesFields(m *work.Manifest) bool {
	return ignoresFields(m) || controllers.MayKeep(m.Object.Content) || diff.MayBeFilled(m.Object.Content) || len(controllers.Pointers(m.Object.Content)) > 0
}

// ignoresFields reports whether the annotation of a manifest lists fields.
func ignoresFields(m *work.Manifest) bool {
	return m.Object.Content.GetAnnotations()[api.IgnoreFieldsAnnotation] != ""
}

// leavesReplicas reports whether the manifest does not set replicas which we still own.
func (t *task) leavesReplicas() bool {
	return t.known != nil && t.known.Replicas && !autoscaler.SetsReplicas(t.Manifest.Object.Content)
}

// A snapshot is a live object as it was read before a write.
type snapshot struct {
	live   *unstructured.Unstructured // nil if it does not exist or was not read
	rivals []autoscaler.Rival
}

// readAndApply reads the live object, compares it if the strategy requires that, and executes
// the result of Decide.
func (x *executor) readAndApply(ctx context.Context, t task) outcome {
	o := outcome{task: t, do: diff.NeedRead}
	live, err := x.conn.Read(ctx, t.res, t.Manifest.ID)
	if err != nil {
		return x.readFailed(o, diff.ReadFailed(err), err)
	}
	t = t.beside(live)
	saw := snapshot{live: live}
	if !x.works.OnlyCompares(t.Placement) {
		saw.rivals = autoscaler.Rivals(ctx, x.conn, t.Manifest.Object.Content, live, t.scaler)
	}
	facts := diff.Case{Live: diff.Absent, Strategy: x.works.Of(t.Placement).Strategy}
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
func (x *executor) readFailed(o outcome, cond diff.Condition, err error) outcome {
	o.cond, o.err = cond, err
	if x.works.Of(o.Placement).Strategy.Type == api.ReportDiff {
		o.cond = diff.ReportFailed(err)
	}
	o.cond = unanswered(o.cond, err)
	return o
}

// unanswered replaces the cause of a condition if the request got no response, since the API
// server has not rejected the object.
func unanswered(cond diff.Condition, err error) diff.Condition {
	if connection.IsUnreachable(err) {
		cond.Sentence, cond.Cause = "", err.Error()
	}
	return cond
}

func compareFailed(c diff.Case, err error) diff.Condition {
	if c.Owner == diff.Ours {
		return diff.DriftCompareFailed(err)
	}
	return diff.TakeOverCompareFailed(err)
}

// facts returns the input of Decide about a live object.
func (x *executor) facts(t task, live metav1.Object) diff.Case {
	applied := t.item != nil && t.item.Hash != ""
	c := diff.Case{
		Live: diff.Present, Strategy: x.works.Of(t.Placement).Strategy,
		Owner:   diff.OwnerOf(live, x.fleet, t.Placement, x.works.MarkerStale),
		CoOwned: len(live.GetOwnerReferences()) > 0,
		Changed: t.item == nil || t.item.Hash != t.Manifest.Hash,
		Drifted: applied && drift.Of(t.applied(x.fleet), drift.Marked(live)).Answer == drift.Drifted,
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
		if o.written != nil && diff.CompareAfter(x.works.Of(t.Placement).Strategy) {
			x.compareAfter(ctx, &o)
		}
	case diff.Nothing:
		o.cond = diff.Applied()
		if t.item != nil && t.item.Left != "" {
			x.recordLeft(&o, t.item.Left, saw.live)
		}
	case diff.Report:
		o.cond = diff.Reported(len(c.diffs), c.degraded)
		o.cond.Cause += c.note
	case diff.Refuse:
		o.cond = diff.Refused(why, diff.Owners(saw.live, x.fleet, t.Placement), c.degraded)
		o.cond.Cause += c.note
	}
	if o.written == nil {
		o.additions = x.additionsOf(t, saw.live)
	}
	return o
}

// write applies an object. saw is the live object as it was read.
func (x *executor) write(ctx context.Context, t task, do diff.Operation, saw snapshot) outcome {
	o := outcome{task: t, do: do, snapshot: saw}
	commit := x.works.Of(t.Placement).Revision.Commit
	if t.item.Hash == t.Manifest.Hash {
		commit = t.item.Commit
	}
	if t.drift {
		o.before = x.before(t, saw.live, saw.rivals)
	}
	var err error
	if saw.live, err = autoscaler.HandOver(ctx, x.conn, t.res, saw.live, saw.rivals); err != nil {
		return x.readFailed(o, diff.ApplyFailed(do, err), err)
	}
	var removal diff.Removal
	var stored *connection.Applied
	if saw.live != nil {
		_, err = x.toSend(t, saw) // no ownership is taken for what cannot be sent
	}
	if saw.live != nil && err == nil {
		removal, saw.live, err = x.target(t).TakeOwnership(ctx, saw.live, func(live *unstructured.Unstructured) diff.Removal {
			return x.removal(t, snapshot{live: live, rivals: saw.rivals})
		})
	}
	if err == nil {
		stored, o.created, err = x.send(ctx, t, commit, &saw)
	}
	if removing.Refused(err) && !immutable.ByAdmission(err) {
		stored, removal, err = x.applyWithout(ctx, t, commit, &saw, removal, err)
	}
	o.live = saw.live
	if err == nil && t.lastApplied != nil {
		stored, err = x.applyRest(ctx, t, commit, saw, stored)
	}
	if err == nil && t.item.Hash == "" && appliedByClient(stored.GetManagedFields()) {
		stored, err = x.takeOverKubectlFields(ctx, t, commit, stored)
	}
	if isUnclear(err) {
		o.do, o.cond = diff.Refuse, diff.NotTried(err)
		return o
	}
	if err != nil {
		o.err = err
		o.cond = unanswered(diff.ApplyFailed(do, x.scrub(ctx, t, saw.live, err)), err)
		if kept := removal.Kept().Differences(saw.live, api.FieldManager); len(kept) > 0 && removing.Refused(err) {
			o.cond.Cause += "; " + stillThere(kept) + ", and is not overridden without forceConflicts"
		}
		if t.item.Hash != "" {
			var unread error
			o.immutable, unread = x.isImmutable(ctx, t, err)
			o.cond.Cause = explainRecreation(o.cond.Cause, t.Manifest, err, o.immutable, unread)
		}
		return o
	}
	o.written, o.made = observed.Of(stored), made(stored)
	live, content := stored.Unstructured, t.Manifest.Object.Content
	if !diff.IsStored(content, live) || t.item.Left != "" || removal.All() != "" {
		live = stored.Whole() // what follows depends on who owns the fields
		o.altered = diff.Altered(content, live, autoscaler.Paths(saw.rivals))
	}
	if needsStatus(t.Manifest) {
		o.stored = live
	}
	x.recordLeft(&o, removal.Stayed(t.item.Left, live), live)
	o.additions = x.additions(t, live, stored.GetManagedFields(), *o.left)
	if o.before.Deleted && o.written.UID == t.item.UID {
		o.before.Deleted = false // the object existed all the time
	}
	o.gen = o.written.Generation
	return o
}

// scrub removes the values of a Secret from an error: those of the object that was sent, and of
// the live one.
func (x *executor) scrub(ctx context.Context, t task, live *unstructured.Unstructured, err error) error {
	if live == nil && connection.Answered(err) && t.Manifest.ID.Kind == "Secret" {
		live, _ = x.conn.Read(ctx, t.res, t.Manifest.ID) // if it can be read
	}
	return t.mask(live, err)
}

// maxCarries is how often an object is sent with live values before the task fails, because others
// keep writing it.
const maxCarries = 5

// send applies an object as it was read. If live values of fields that are left to others are sent,
// and somebody has written the object since, it is read and sent again.
func (x *executor) send(ctx context.Context, t task, commit string, saw *snapshot) (stored *connection.Applied, created bool, err error) {
	for n := 1; ; n++ {
		body, ofVersion, err := bodyOf(x, t, *saw, commit)
		if err != nil {
			return nil, false, err
		}
		stored, created, err = x.conn.ApplyWhole(ctx, t.res, t.Manifest.ID, body, diff.Force(x.works.Of(t.Placement).Strategy))
		if !ofVersion || !connection.IsStale(err) || n == maxCarries {
			return stored, created, err
		}
		if *saw, err = x.readAgain(ctx, t); err != nil {
			return nil, false, err
		}
	}
}

// toSend returns the object to apply, in which fields that are left to others are as they were
// read, or as in the object that it replaces. It has a resourceVersion if it must not be applied to
// another version of the live object.
func (x *executor) toSend(t task, saw snapshot) (*unstructured.Unstructured, error) {
	pointers, err := diff.IgnoredFields(t.Manifest.Object.Content)
	if err != nil {
		return nil, err
	}
	content := diff.Normalize(t.Manifest.Object.Content)
	if old := t.replaced; old != nil && saw.live == nil {
		return diff.Keep(content, old.live, append(pointers, autoscaler.Paths(old.rivals)...)), nil
	}
	return diff.Leave(content, saw.live, leftFields(t, saw, pointers), api.FieldManager)
}

// leftFields returns JSON pointers to the fields that are left to others: those that the annotation lists, those that
// belong to controllers, empty values that a program has filled, and those that autoscalers of the live object set.
func leftFields(t task, saw snapshot, ignored []string) []string {
	content := t.Manifest.Object.Content
	return slices.Concat(ignored, controllers.Pointers(content), diff.Filled(content, saw.live), autoscaler.Paths(saw.rivals))
}

// clientSide are the field managers of kubectl's client-side apply.
var clientSide = sets.New("kubectl-client-side-apply", "kubectl")

// takeOverKubectlFields makes gitfleet the owner of the fields that kubectl applied on the client
// before the object was taken over. Otherwise kubectl would continue to own fields that the
// manifest no longer has, and they would never be removed.
func (x *executor) takeOverKubectlFields(ctx context.Context, t task, commit string, stored *connection.Applied) (*connection.Applied, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(stored.Whole(), clientSide, api.FieldManager)
	if err != nil || patch == nil {
		return stored, err
	}
	if err := x.conn.Send(ctx, t.res, t.Manifest.ID, types.JSONPatchType, patch); err != nil {
		return nil, fmt.Errorf("take over the fields of an earlier kubectl apply: %w", err)
	}
	saw, err := x.readAgain(ctx, t)
	if err != nil {
		return nil, err
	}
	stored, _, err = x.send(ctx, t, commit, &saw)
	return stored, err
}

// readAgain returns the object as it is now, after its replicas were handed over to an autoscaler.
func (x *executor) readAgain(ctx context.Context, t task) (saw snapshot, err error) {
	if saw.live, err = x.conn.Read(ctx, t.res, t.Manifest.ID); err == nil {
		saw.rivals = autoscaler.Rivals(ctx, x.conn, t.Manifest.Object.Content, saw.live, t.scaler)
		saw.live, err = autoscaler.HandOver(ctx, x.conn, t.res, saw.live, saw.rivals)
	}
	return saw, err
}

func appliedByClient(entries []metav1.ManagedFieldsEntry) bool {
	for _, e := range entries {
		if e.Manager == "kubectl-client-side-apply" && e.Operation == metav1.ManagedFieldsOperationUpdate {
			return true
		}
	}
	return false
}

// compareHeld compares an object whose drift is held. If it still differs, it is not written.
func (x *executor) compareHeld(ctx context.Context, t task) outcome {
	o := outcome{task: t, do: diff.Nothing}
	live, c, err := x.readAndCompare(ctx, t)
	switch {
	case err != nil:
		return x.readFailed(o, diff.DriftCompareFailed(err), err)
	case live == nil && t.rule.Mode == api.DriftPropose:
		return x.heldDeleted(o)
	case t.absent && live != nil: // the object lost its label
		t.step = decide.Restore
		return x.readAndApply(ctx, t)
	case live == nil || len(c.diffs) == 0:
		t.drift = false // nothing differs, or it was deleted and that is only reported: apply it
		return x.readAndApply(ctx, t)
	}
	o.diffs, o.gen, o.additions = c.diffs, live.GetGeneration(), x.additionsOf(t, live)
	o.cond = diff.Applied()
	o.cond.Cause = t.rule.HeldMessage()
	if t.decision != nil {
		o.cond.Cause = t.decision.Message
	}
	return o
}

// heldDeleted returns the outcome for an object that somebody deleted, and that is not created
// again until a user decides.
func (x *executor) heldDeleted(o outcome) outcome {
	o.gone, o.cond = true, diff.Applied()
	o.cond.Cause = o.rule.HeldMessage()
	if o.decision != nil {
		o.cond.Cause = o.decision.Message
	}
	return o
}

// accept does not write an object that already equals its new version. Otherwise the new
// version is applied as usual.
func (x *executor) accept(ctx context.Context, t task) outcome {
	live, c, err := x.readAndCompare(ctx, t)
	if err != nil || live == nil || len(c.diffs) > 0 || live.GetUID() != t.item.UID {
		return x.readAndApply(ctx, t)
	}
	accepted, facts := observed.Of(live), x.facts(t, live)
	if accepted.Managed == "" || facts.Owner != diff.Ours || facts.CoOwned || x.removal(t, snapshot{live: live}).All() != "" {
		return x.readAndApply(ctx, t)
	}
	return outcome{task: t, do: diff.Nothing, cond: diff.Applied(), gen: live.GetGeneration(), accepted: accepted, additions: x.additionsOf(t, live)}
}

// readAndCompare returns the live object, nil if it does not exist, and its differences.
func (x *executor) readAndCompare(ctx context.Context, t task) (*unstructured.Unstructured, comparison, error) {
	live, err := x.conn.Read(ctx, t.res, t.Manifest.ID)
	if err != nil {
		return nil, comparison{}, err
	}
	c, err := x.compare(ctx, t, live, autoscaler.Rivals(ctx, x.conn, t.Manifest.Object.Content, live, t.scaler))
	return live, c, err
}

// observeSuspended compares a suspended object and leaves it as it is. Suspended objects are
// watched and compared as usual, but never written: not applied, reverted, removed or added to an
// inventory.
func (x *executor) observeSuspended(ctx context.Context, t task) outcome {
	o := outcome{task: t, do: diff.NeedRead, cond: t.suspendedCondition()}
	live, c, err := x.readAndCompare(ctx, t)
	o.diffs = c.diffs
	if err != nil {
		o.err, o.cond.Cause = err, o.cond.Cause+fmt.Sprintf(" (it cannot be compared: %v)", err)
		return o
	}
	if live != nil {
		o.gen, o.additions = live.GetGeneration(), x.additionsOf(t, live)
	}
	return o
}
