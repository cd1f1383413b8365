package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/immutable"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	removing "github.com/gitfleet/gitfleet/reconciler/member/removal"
)

// write applies an object. read is the live object as it was read.
func (x *Executor) write(ctx context.Context, t Task, do diff.Operation, read Snapshot) Outcome {
	o := Outcome{Task: t, Do: do, Snapshot: read}
	commit := x.Works.Of(t.Placement).Revision.Commit
	if t.Item.Hash == t.Manifest.Hash {
		commit = t.Item.Commit
	}
	if t.Drift {
		o.Before = x.driftBefore(t, read.Live, read.Rivals)
	}
	var err error
	if read.Live, err = autoscaler.HandOver(ctx, x.Conn, t.Res, read.Live, read.Rivals); err != nil {
		return x.readFailed(o, diff.ApplyFailed(do, err), err)
	}
	var removal diff.Removal
	var stored *connection.Applied
	if read.Live != nil {
		_, err = x.toSend(t, read) // no ownership is taken for what cannot be sent
	}
	var owners []metav1.ManagedFieldsEntry
	if read.Live != nil && err == nil {
		owners = read.Live.GetManagedFields()
		removal, read.Live, err = x.target(t).TakeOwnership(ctx, read.Live, func(live *unstructured.Unstructured) diff.Removal {
			return x.Removal(t, Snapshot{Live: live, Rivals: read.Rivals})
		})
	}
	if err == nil {
		stored, o.Created, err = x.send(ctx, t, commit, &read)
	}
	if removing.Refused(err) && !immutable.ByAdmission(err) {
		stored, removal, err = x.applyWithout(ctx, t, commit, &read, removal, owners, err)
	}
	o.Live = read.Live
	if err == nil && t.Item.Hash == "" && slices.ContainsFunc(stored.GetManagedFields(), diff.AppliedByClient) {
		stored, err = x.takeOverKubectlFields(ctx, t, commit, stored)
	}
	if err == nil && !o.Created && t.Item.Hash != t.Manifest.Hash {
		stored, removal, err = x.applyRest(ctx, t, commit, read, stored, removal)
	}
	if isUnclear(err) {
		o.Do, o.Cond = diff.Refuse, diff.NotTried(err)
		return o
	}
	if err != nil {
		o.Err = err
		o.Cond = unanswered(diff.ApplyFailed(do, x.Scrub(ctx, t, read.Live, err)), err)
		if kept := removal.Kept().Differences(read.Live, api.FieldManager); len(kept) > 0 && removing.Refused(err) {
			o.Cond.Cause += "; " + stillThere(kept) + ", and is not overridden without forceConflicts"
		}
		takesOver := t.Item.Hash == ""
		if !takesOver || AsksForRecreation(t.Manifest) && read.Live != nil && diff.OwnerOf(read.Live, x.Fleet, t.Placement, x.Works.MarkerStale) != diff.Ours {
			isImmutable, unread := x.IsImmutable(ctx, t, err)
			o.Immutable = isImmutable && !takesOver // only what the placement has applied before is recreated
			o.Cond.Cause = ExplainRecreation(o.Cond.Cause, t.Manifest, takesOver, err, isImmutable, unread)
		}
		return o
	}
	o.Written, o.Made = observed.Of(stored), Made(stored)
	live, content := stored.Unstructured, t.Manifest.Object.Content
	if !diff.IsStored(content, live) || t.Item.Left != "" || removal.All() != "" {
		live = stored.Whole() // what follows depends on who owns the fields
		o.Altered = diff.Altered(content, live, autoscaler.Paths(read.Rivals))
	}
	if availability.NeedsStatus(t.Manifest) {
		o.Stored = live
	}
	x.RecordLeft(&o, removal.Stayed(t.Item.Left, live), live)
	o.Additions = x.additions(t, live, stored.GetManagedFields(), *o.Left)
	if o.Before.Deleted && o.Written.UID == t.Item.UID {
		o.Before.Deleted = false // the object existed all the time
	}
	o.Gen = o.Written.Generation
	return o
}

// readFailed returns the outcome of a task whose live object could not be read.
func (x *Executor) readFailed(o Outcome, cond diff.Condition, err error) Outcome {
	o.Cond, o.Err = cond, err
	if x.Works.Of(o.Placement).Strategy.Type == api.ReportDiff {
		o.Cond = diff.ReportFailed(err)
	}
	o.Cond = unanswered(o.Cond, err)
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

// send applies an object as it was read. If live values of fields that are left to others are sent,
// and somebody has written the object since, it is read and sent again.
func (x *Executor) send(ctx context.Context, t Task, commit string, read *Snapshot) (stored *connection.Applied, created bool, err error) {
	for n := 1; ; n++ {
		body, ofVersion, err := x.body(t, *read, commit)
		if err != nil {
			return nil, false, err
		}
		stored, created, err = x.Conn.ApplyWhole(ctx, t.Res, t.Manifest.ID, body, diff.Force(x.Works.Of(t.Placement).Strategy))
		if !ofVersion || !connection.IsStale(err) || n == maxCarries {
			return stored, created, err
		}
		if *read, err = x.readAgain(ctx, t); err != nil {
			return nil, false, err
		}
	}
}

// maxCarries is how often an object is sent with live values before the task fails, because others
// keep writing it.
const maxCarries = 5

// readAgain returns the object as it is now, after its replicas were handed over to an autoscaler.
func (x *Executor) readAgain(ctx context.Context, t Task) (read Snapshot, err error) {
	if read.Live, err = x.Conn.Read(ctx, t.Res, t.Manifest.ID); err == nil {
		read.Rivals = autoscaler.Rivals(ctx, x.Conn, t.Manifest.Object.Content, read.Live, t.Scaler)
		read.Live, err = autoscaler.HandOver(ctx, x.Conn, t.Res, read.Live, read.Rivals)
	}
	return read, err
}

// Scrub removes the values of a Secret from an error: those of the object that was sent, and of
// the live one.
func (x *Executor) Scrub(ctx context.Context, t Task, live *unstructured.Unstructured, err error) error {
	if live == nil && connection.Answered(err) && t.Manifest.ID.Kind == "Secret" {
		live, _ = x.Conn.Read(ctx, t.Res, t.Manifest.ID) // if it can be read
	}
	return t.Mask(live, err)
}

func (x *Executor) target(t Task) removing.Target {
	return removing.Target{Conn: x.Conn, Resource: t.Res, ID: t.Manifest.ID}
}

// Removal returns what has to go from the live object with an apply, and would not by itself. What
// others own too is only reported if the drift of the object is not reverted.
func (x *Executor) Removal(t Task, read Snapshot) diff.Removal {
	if read.Live == nil || t.Item == nil {
		return diff.Removal{}
	}
	return diff.Removed(x.request(t, read), diff.LastApply{
		Drifted:    t.Item.Hash != "" && drift.Of(t.Applied(x.Fleet), drift.Marked(read.Live)).Answer == drift.Drifted,
		Superseded: t.Item.Hash != t.Manifest.Hash, Managed: t.Item.Managed, Left: t.Item.Left,
	})
}

// Contradicting returns what contradicts the desired object on the member, after the server has refused it.
func (x *Executor) Contradicting(ctx context.Context, t Task, read Snapshot, refusal error) diff.Removal {
	body, err := x.CreationBody(t, read, read.Live)
	if err != nil {
		return diff.Removal{}
	}
	return x.target(t).Contradicting(ctx, x.request(t, read), body, refusal)
}

// applyWithout applies an object that the server has refused, after it has taken ownership of what contradicts
// it. If there is nothing, or the server refuses the object again, the former owners get that back, so that a later apply does not
// remove it. The same goes for the removal of the first attempt: a volume that somebody has renamed stays, for example, if
// a container of theirs mounts it. owners are those before that.
func (x *Executor) applyWithout(ctx context.Context, t Task, commit string, read *Snapshot, removal diff.Removal, owners []metav1.ManagedFieldsEntry, refusal error) (*connection.Applied, diff.Removal, error) {
	live, err := x.Conn.Read(ctx, t.Res, t.Manifest.ID)
	if err != nil || live == nil {
		return nil, removal, refusal
	}
	var before *unstructured.Unstructured
	more, live, err := x.target(t).TakeOwnership(ctx, live, func(live *unstructured.Unstructured) diff.Removal {
		before = live
		return x.Contradicting(ctx, t, Snapshot{Live: live, Rivals: read.Rivals}, refusal)
	})
	if err != nil {
		return nil, removal, err
	}
	if !more.Empty() {
		read.Live = live
		stored, _, err := x.send(ctx, t, commit, read)
		if !removing.Refused(err) {
			return stored, removal.Union(more), err
		}
		x.target(t).GiveBack(ctx, live, before.GetManagedFields())
		read.Live, refusal = before, err
	}
	if removal.Empty() {
		return nil, removal, refusal
	}
	x.target(t).GiveBack(ctx, read.Live, owners)
	now, err := x.readAgain(ctx, t)
	if err != nil || now.Live == nil {
		return nil, removal, refusal
	}
	*read = now
	stored, _, err := x.send(ctx, t, commit, read)
	if removing.Refused(err) {
		err = refusal
	}
	return stored, removal, err
}

// applyRest applies an object once more, after a commit has changed it, if the answer still has something
// that the commit has removed, or a default of the content before. Ownership of that is taken first. If the server refuses the object
// without it, the former owners get it back: what has been applied counts, and the rest stays. removal is what was removed before, to
// which the rest is added.
func (x *Executor) applyRest(ctx context.Context, t Task, commit string, read Snapshot, stored *connection.Applied, removal diff.Removal) (*connection.Applied, diff.Removal, error) {
	var before *unstructured.Unstructured
	rest, live, err := x.target(t).TakeOwnership(ctx, stored.Whole(), func(live *unstructured.Unstructured) diff.Removal {
		before = live
		r := x.request(t, Snapshot{Live: live, Rivals: read.Rivals})
		if t.LastApplied == nil {
			return diff.OutdatedDefaults(r)
		}
		return diff.RemovedOrOutdated(r)
	})
	if err != nil || rest.Empty() {
		return stored, removal, err
	}
	read.Live = live
	again, _, err := x.send(ctx, t, commit, &read)
	if !removing.Refused(err) {
		return again, removal, err
	}
	x.target(t).GiveBack(ctx, live, before.GetManagedFields())
	if is, _ := x.IsImmutable(ctx, t, err); is {
		return nil, removal, err
	}
	return stored, removal.Union(rest), nil
}

// clientSide are the field managers of kubectl's client-side apply.
var clientSide = sets.New("kubectl-client-side-apply", "kubectl")

// takeOverKubectlFields makes gitfleet the owner of the fields that kubectl applied on the client
// before the object was taken over. Otherwise kubectl would continue to own fields that the
// manifest no longer has, and they would never be removed.
func (x *Executor) takeOverKubectlFields(ctx context.Context, t Task, commit string, stored *connection.Applied) (*connection.Applied, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(stored.Whole(), clientSide, api.FieldManager)
	if err != nil || patch == nil {
		return stored, err
	}
	if err := x.Conn.Send(ctx, t.Res, t.Manifest.ID, types.JSONPatchType, patch); err != nil {
		return nil, fmt.Errorf("take over the fields of an earlier kubectl apply: %w", err)
	}
	read, err := x.readAgain(ctx, t)
	if err != nil {
		return nil, err
	}
	stored, _, err = x.send(ctx, t, commit, &read)
	return stored, err
}

// RecordLeft sets the condition of an applied object, and records which of the fields that should
// have gone are still there.
func (x *Executor) RecordLeft(o *Outcome, fields diff.Left, live *unstructured.Unstructured) {
	o.Cond, o.Left = diff.Applied(), new(diff.Left)
	if fields == "" {
		return
	}
	if *o.Left = fields.In(live, x.request(o.Task, Snapshot{Live: live}).Desired); *o.Left != "" {
		o.Diffs = append(o.Diffs, o.Left.Differences(live, api.FieldManager)...)
		o.Cond.Cause = "applied, but " + stillThere(o.Diffs)
	}
}

// stillThere says that fields are there which Git has removed, and who owns them.
func stillThere(fields []api.Difference) string {
	return "what Git has removed is still there: " + drift.Paths(fields) + ", owned by " + drift.By(diff.Actors(fields))
}

// Made reports whether our last apply created an object with some managedFields.
func Made(o metav1.Object) bool {
	for _, e := range o.GetManagedFields() {
		if e.Manager == api.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Time != nil {
			return e.Time.Sub(o.GetCreationTimestamp().Time) <= time.Second
		}
	}
	return true
}
