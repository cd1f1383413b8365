// Package apply carries out what is decided about one object of a member cluster, with as few requests as possible.
//
// An Executor runs a Task, which has all that is known of the object, and returns an Outcome. It changes no state, so that several
// tasks run at a time. What is sent is in request.go, how an object differs in compare.go, and a write with what belongs to it in write.go.
package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// An Executor runs tasks: it decides what to do about an object, does it, and returns the outcome.
// It is safe for concurrent use, and knows of the cluster only what it reads and what a task says.
type Executor struct {
	Conn           *connection.Conn
	Cluster, Fleet string
	Encoder        *Encoder
	Metrics        Metrics
	Works          desired.Works
	// Untried are the kinds whose objects no dry run is requested of, and why.
	Untried map[schema.GroupVersionKind]string
	// AdditionsMode is what is done about what others add.
	AdditionsMode api.AdditionsMode
}

// Metrics count the operations on objects.
type Metrics interface {
	// Done counts an operation on an object of a cluster, its result and its duration.
	Done(cluster, action string, err error, took time.Duration)
}

// Do runs a task.
func (x *Executor) Do(ctx context.Context, t Task) Outcome {
	start := time.Now()
	o := x.attempt(ctx, t)
	x.removeRejected(ctx, &o)
	if o.Written != nil || o.Err != nil {
		x.Metrics.Done(x.Cluster, string(o.Do), o.Err, time.Since(start))
	}
	return o
}

// Skipped returns the outcome of a task that is not run, since the API server has stopped answering.
func Skipped(t Task) Outcome {
	return Outcome{Task: t, Do: diff.Apply, Cond: unanswered(diff.ApplyFailed(diff.Apply, errSilent), errSilent), Err: errSilent}
}

func (x *Executor) attempt(ctx context.Context, t Task) Outcome {
	switch t.Step {
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

// errSilent is the error of the objects that a pass skips because the API server does not
// respond.
var errSilent = connection.Unreachable(errors.New("the API server has stopped answering; trying again once it does"))

// applyUnread runs tasks that need not read the live object first, because the object is ours
// and unchanged, does not exist, or may be taken over whatever its content is.
func (x *Executor) applyUnread(ctx context.Context, t Task) (Outcome, bool) {
	strategy := x.Works.Of(t.Placement).Strategy
	if strategy.Type == api.ReportDiff || diff.CompareAfter(strategy) || t.Drift {
		return Outcome{}, false
	}
	do := diff.Apply
	switch l := t.Known; {
	case t.Item.Hash == "":
		if do = x.foundOperation(t); do == diff.NeedRead {
			return Outcome{}, false
		}
	case leavesFields(t.Manifest, l == nil || l.Writer != "") || t.leavesReplicas() || l == nil || l.Fleet != x.Fleet && l.Fleet != "":
		return Outcome{}, false
	case l.Owned && !strategy.AllowCoOwnership || Scaled(t.Manifest, t.Known) || t.Scaler.MayScaleToZero(t.Manifest.Object.Content):
		return Outcome{}, false
	case l.Shared || drift.Of(t.Applied(x.Fleet), drift.Seen(l)).Answer == drift.Drifted || t.Item.Left != "":
		return Outcome{}, false // ownership of fields may have to be taken
	case strategy.WhenToApply == api.ApplyIfNotDrifted && t.Item.Hash == t.Manifest.Hash:
		return Outcome{}, false
	}
	return x.write(ctx, t, do, Snapshot{}), true
}

// foundOperation decides what to do about an object that was never applied, from the result of
// findExisting; NeedRead if that is not enough.
func (x *Executor) foundOperation(t Task) diff.Operation {
	switch {
	case t.Found == nil:
		return diff.NeedRead
	case t.Found.Meta == nil:
		return diff.Create
	case LeavesFields(t.Manifest) || diff.Shared(t.Found.Meta.ManagedFields, api.FieldManager),
		autoscaler.SetsReplicas(t.Manifest.Object.Content) && diff.Autoscaled(t.Found.Meta.ManagedFields), t.Scaler.MayScaleToZero(t.Manifest.Object.Content):
		return diff.NeedRead
	}
	if do, _ := diff.Decide(x.Facts(t, t.Found.Meta)); do == diff.TakeOver || do == diff.Apply {
		return do
	}
	return diff.NeedRead
}

// readAndApply reads the live object, compares it if the strategy requires that, and executes
// the result of Decide.
func (x *Executor) readAndApply(ctx context.Context, t Task) Outcome {
	o := Outcome{Task: t, Do: diff.NeedRead}
	live, err := x.Conn.Read(ctx, t.Res, t.Manifest.ID)
	if err != nil {
		return x.readFailed(o, diff.ReadFailed(err), err)
	}
	t = t.Beside(live)
	read := Snapshot{Live: live}
	if !x.Works.OnlyCompares(t.Placement) {
		read.Rivals = autoscaler.Rivals(ctx, x.Conn, t.Manifest.Object.Content, live, t.Scaler)
	}
	facts := diff.Case{Live: diff.Absent, Strategy: x.Works.Of(t.Placement).Strategy}
	if live != nil {
		facts = x.Facts(t, live)
	}
	var c Comparison
	for {
		do, why := diff.Decide(facts)
		if do != diff.NeedRead {
			return x.execute(ctx, t, read, do, why, c)
		}
		if c, err = x.Compare(ctx, t, live, read.Rivals); err != nil {
			return x.readFailed(o, compareFailed(facts, err), err)
		}
		facts.Compared, facts.Diffs = true, len(c.Diffs)
	}
}

func compareFailed(c diff.Case, err error) diff.Condition {
	if c.Owner == diff.Ours {
		return diff.DriftCompareFailed(err)
	}
	return diff.TakeOverCompareFailed(err)
}

// Facts returns the input of Decide about a live object.
func (x *Executor) Facts(t Task, live metav1.Object) diff.Case {
	applied := t.Item != nil && t.Item.Hash != ""
	c := diff.Case{
		Live: diff.Present, Strategy: x.Works.Of(t.Placement).Strategy,
		Owner:   diff.OwnerOf(live, x.Fleet, t.Placement, x.Works.MarkerStale),
		CoOwned: len(live.GetOwnerReferences()) > 0,
		Changed: t.Item == nil || t.Item.Hash != t.Manifest.Hash,
		Drifted: applied && drift.Of(t.Applied(x.Fleet), drift.Marked(live)).Answer == drift.Drifted,
	}
	if c.Owner == diff.Foreign && applied && live.GetUID() == t.Item.UID {
		c.Owner = diff.Ours // somebody has removed our label, but it is still our object
	}
	return c
}

// execute executes a decision.
func (x *Executor) execute(ctx context.Context, t Task, read Snapshot, do diff.Operation, why diff.Refusal, c Comparison) Outcome {
	o := Outcome{Task: t, Do: do, Diffs: c.Diffs, Snapshot: read}
	if read.Live != nil {
		o.Gen = read.Live.GetGeneration()
	}
	switch do {
	case diff.Create, diff.Apply, diff.TakeOver:
		o = x.write(ctx, t, do, read)
		if o.Written != nil && diff.CompareAfter(x.Works.Of(t.Placement).Strategy) {
			x.compareAfter(ctx, &o)
		}
	case diff.Nothing:
		o.Cond = diff.Applied()
		if t.Item != nil && t.Item.Left != "" {
			x.RecordLeft(&o, t.Item.Left, read.Live)
		}
	case diff.Report:
		o.Cond = diff.Reported(len(c.Diffs), c.Degraded)
		o.Cond.Cause += c.note
	case diff.Refuse:
		o.Cond = diff.Refused(why, diff.Owners(read.Live, x.Fleet, t.Placement), c.Degraded)
		o.Cond.Cause += c.note
	}
	if o.Written == nil {
		o.Additions = x.additionsOf(t, read.Live)
	}
	return o
}

// compareAfter finds differences that the apply did not remove. They are drift of an object
// that is still applied.
func (x *Executor) compareAfter(ctx context.Context, o *Outcome) {
	live, err := x.Conn.Read(ctx, o.Res, o.Manifest.ID)
	if err == nil && live == nil {
		err = errors.New("it is gone")
	}
	var c Comparison
	if err == nil {
		c, err = x.Compare(ctx, o.Task, live, o.Rivals)
	}
	if err != nil {
		o.Cond = diff.AppliedUnverified()
	}
	o.Diffs = c.Diffs
}

// compareHeld compares an object whose drift is held. If it still differs, it is not written.
func (x *Executor) compareHeld(ctx context.Context, t Task) Outcome {
	o := Outcome{Task: t, Do: diff.Nothing}
	live, c, err := x.readAndCompare(ctx, t)
	switch {
	case err != nil:
		return x.readFailed(o, diff.DriftCompareFailed(err), err)
	case live == nil && t.Rule.Mode == api.DriftPropose:
		return o.heldDeleted()
	case t.Absent && live != nil: // the object lost its label
		t.Step = decide.Restore
		return x.readAndApply(ctx, t)
	case live == nil || len(c.Diffs) == 0:
		t.Drift = false // nothing differs, or it was deleted and that is only reported: apply it
		return x.readAndApply(ctx, t)
	}
	o.Diffs, o.Gen, o.Additions = c.Diffs, live.GetGeneration(), x.additionsOf(t, live)
	o.Cond = diff.Applied()
	o.Cond.Cause = t.Rule.HeldMessage()
	if t.Decision != nil {
		o.Cond.Cause = t.Decision.Message
	}
	return o
}

// heldDeleted returns the outcome for an object that somebody deleted, and that is not created
// again until a user decides.
func (o Outcome) heldDeleted() Outcome {
	o.Gone, o.Cond = true, diff.Applied()
	o.Cond.Cause = o.Rule.HeldMessage()
	if o.Decision != nil {
		o.Cond.Cause = o.Decision.Message
	}
	return o
}

// accept does not write an object that already equals its new version. Otherwise the new
// version is applied as usual.
func (x *Executor) accept(ctx context.Context, t Task) Outcome {
	live, c, err := x.readAndCompare(ctx, t)
	if err != nil || live == nil || len(c.Diffs) > 0 || live.GetUID() != t.Item.UID {
		return x.readAndApply(ctx, t)
	}
	accepted, facts := observed.Of(live), x.Facts(t, live)
	if accepted.Managed == "" || facts.Owner != diff.Ours || facts.CoOwned || x.Removal(t, Snapshot{Live: live}).All() != "" {
		return x.readAndApply(ctx, t)
	}
	return Outcome{Task: t, Do: diff.Nothing, Cond: diff.Applied(), Gen: live.GetGeneration(), Accepted: accepted, Additions: x.additionsOf(t, live)}
}

// readAndCompare returns the live object, nil if it does not exist, and its differences.
func (x *Executor) readAndCompare(ctx context.Context, t Task) (*unstructured.Unstructured, Comparison, error) {
	live, err := x.Conn.Read(ctx, t.Res, t.Manifest.ID)
	if err != nil {
		return nil, Comparison{}, err
	}
	c, err := x.Compare(ctx, t, live, autoscaler.Rivals(ctx, x.Conn, t.Manifest.Object.Content, live, t.Scaler))
	return live, c, err
}

// observeSuspended compares a suspended object and leaves it as it is. Suspended objects are
// watched and compared as usual, but never written: not applied, reverted, removed or added to an
// inventory.
func (x *Executor) observeSuspended(ctx context.Context, t Task) Outcome {
	o := Outcome{Task: t, Do: diff.NeedRead, Cond: t.suspendedCondition()}
	live, c, err := x.readAndCompare(ctx, t)
	o.Diffs = c.Diffs
	if err != nil {
		o.Err, o.Cond.Cause = err, o.Cond.Cause+fmt.Sprintf(" (it cannot be compared: %v)", err)
		return o
	}
	if live != nil {
		o.Gen, o.Additions = live.GetGeneration(), x.additionsOf(t, live)
	}
	return o
}

// explainDeletion returns the outcome of a task whose object somebody has deleted, and that still exists.
func (x *Executor) explainDeletion(ctx context.Context, t Task) Outcome {
	var why string
	if id := t.Manifest.ID; deletion.Explains(id.GroupKind()) {
		why, _ = deletion.Stays(ctx, x.Conn, t.Res, id) // it is asked again
	}
	return Outcome{Task: t, Do: diff.NeedRead, Cond: (&decide.BeingDeletedError{Finalizers: t.Known.Finalizers, Why: why}).Condition(), Transient: true}
}

// readAdditions finds what others have added to an object that is as it was applied otherwise, so that it is removed.
func (x *Executor) readAdditions(ctx context.Context, t Task) Outcome {
	o := Outcome{Task: t, Do: diff.Nothing, Cond: diff.Applied()}
	live, err := x.Conn.Read(ctx, t.Res, t.Manifest.ID)
	switch {
	case err != nil:
		return x.readFailed(o, diff.DriftCompareFailed(err), err)
	case live == nil:
		return x.readAndApply(ctx, t)
	}
	o.Gen, o.Additions = live.GetGeneration(), x.additionsOf(t, live)
	return o
}

// maxRemovals is how often the removal of additions is tried while others keep writing to the object.
const maxRemovals = 5

// removeRejected removes what others have added to the object of an outcome, if that is exactly what a user has rejected.
// An object that is suspended is left as it is.
func (x *Executor) removeRejected(ctx context.Context, o *Outcome) {
	if o.Rejected == "" || o.SuspendedReason != "" || o.Err != nil || o.Additions == nil {
		return
	}
	for attempt := 1; drift.Fingerprint(*o.Additions) == o.Rejected; attempt++ {
		live, err := x.Conn.Read(ctx, o.Res, o.Manifest.ID)
		if err == nil && live == nil {
			return // its watch reports that
		}
		if err == nil {
			extended := x.extended(o.Task, live, live.GetManagedFields(), o.Task.left())
			found := diff.Additions(extended)
			if drift.Fingerprint(found) != o.Rejected {
				o.Additions = &found // nobody has decided about these yet
				return
			}
			var patch []byte
			if patch, err = diff.WithoutAdditions(extended); err == nil {
				err = x.Conn.Send(ctx, o.Res, o.Manifest.ID, types.JSONPatchType, patch)
			}
			if err == nil {
				o.Removed, o.Additions = found, nil
				return
			}
		}
		if !apierrors.IsConflict(err) || attempt == maxRemovals {
			err = o.Mask(live, err)
			o.Unremoved, o.Cond.Cause = err, "applied, but what others have added cannot be removed: "+err.Error()
			return
		}
	}
}
