package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Task is an object that may have to be applied.
type Task struct {
	desired.Object
	Res  connection.Resource
	Item *inventory.Item // nil if no inventory of its placement lists it
	// Absent says that no watch has seen the object. An object without our label may still
	// exist.
	Absent bool
	// Step is what is to be done, and Drift says that others have changed the object.
	Step  decide.Step
	Drift bool
	// SuspendedReason is why the object is only observed; empty if it may be written.
	SuspendedReason string
	// Rejected is the fingerprint of additions that a user has rejected, so that they are removed; empty if there are
	// none.
	Rejected string
	// Found is what was found of an object that was never applied; nil if it was not
	// asked.
	Found *Finding
	Inputs
	// inGit is the content in Git, if that of the manifest was extended; otherwise nil.
	inGit *unstructured.Unstructured
}

// Inputs are what an executor needs to know of the object of a task.
type Inputs struct {
	// Known is the object as its watch knows it; nil if it does not.
	Known *observed.Object
	// Rule is the rule in force for the drift of the object, Decision the decision about its
	// drift; nil if there is none.
	Rule     api.DriftRule
	Decision *protocol.DriftDecision
	// AlteredBefore are the fields that the server is known to store differently from what is
	// applied.
	AlteredBefore []api.PatchDetail
	// Scaler is what placements say about the autoscaler of the object.
	Scaler autoscaler.Placed
	// Replaced is the object that this one replaces; nil if there is none.
	Replaced *Snapshot
	// LastApplied is the manifest that was applied last, if the object is to have another one now; nil if
	// it is not known.
	LastApplied *work.Manifest
	// AddedBy are the actors who are known to have added something to the object.
	AddedBy []api.Actor
	// Changed is the recorded drift that is left as it is, from which something is known of the last manifest
	// after a restart, too.
	Changed []api.Difference
}

// Beside returns a task that applies what controllers have added to fields of the live object with the
// content in Git. live may be nil.
func (t Task) Beside(live *unstructured.Unstructured) Task {
	in := t.Manifest.Object
	if content := controllers.Keep(in.Content, live); content != in.Content {
		m, o := *t.Manifest, *in
		o.Content, m.Object = content, &o
		t.Manifest, t.inGit = &m, in.Content
	}
	return t
}

// A Finding is the state of an object before it is first applied.
type Finding struct {
	// Meta is the object's metadata; nil if it does not exist.
	Meta *metav1.PartialObjectMetadata
}

// A Snapshot is a live object as it was read before a write.
type Snapshot struct {
	Live   *unstructured.Unstructured // nil if it does not exist or was not read
	Rivals []autoscaler.Rival
}

// An Outcome is the result of a task.
type Outcome struct {
	Task
	Do      diff.Operation
	Cond    diff.Condition
	Err     error
	Written *observed.Object           // nil if nothing was written
	Stored  *unstructured.Unstructured // what was written; only if its health depends on its content
	Created bool                       // the object did not exist before
	Made    bool                       // our last apply created the object, now or earlier
	Diffs   []api.Difference
	Gen     int64
	Snapshot
	// Before is the drift that the task had to revert, if any.
	Before protocol.Drift
	// Altered are the fields that the server has stored differently from what was applied.
	Altered []api.PatchDetail
	// Accepted is the live object if it already equals its new version; nil otherwise.
	Accepted *observed.Object
	// Immutable says that the server refused it because of immutable fields only.
	Immutable bool
	// Unknown is the kind because of which it was not tried: that of the object, or of one that it waits for.
	Unknown schema.GroupVersionKind
	// Transient says that what keeps the object from being applied ends by itself: it is being deleted, or a hook has not ended.
	Transient bool
	// Gone says that somebody deleted the object and that it is not created again for now.
	Gone bool
	// Additions are what others have added beside what the manifest sets; nil if that was not looked at.
	Additions *[]api.Difference
	// Removed are the rejected additions that were removed, and Unremoved is why they could not be.
	Removed   []api.Difference
	Unremoved error
	// Left are the fields that Git has removed and that are still there; nil if that was not looked at.
	Left *diff.Left
}

// Repairs reports whether an apply because of supposed drift has changed the object. If it has
// not, there was no drift.
func (o *Outcome) Repairs() bool {
	if !o.Drift || o.Written == nil {
		return false
	}
	return o.Live == nil || o.Written.Version == 0 || observed.ParseVersion(o.Live.GetResourceVersion()) != o.Written.Version
}

// Reverted reports whether the write reverted drift. A write that finds no changed field may only
// have changed who owns fields. It does not count if an autoscaler contests the object or the
// object leaves fields to others.
func (o *Outcome) Reverted() bool {
	if !o.Repairs() {
		return false
	}
	changed := len(o.Before.Paths) > 0
	return changed || len(o.Rivals) == 0 && (o.Before.Deleted || !LeavesFields(o.Manifest))
}

// AsWanted reports whether a suspended object equals the desired one.
func (o *Outcome) AsWanted() bool {
	return o.SuspendedReason != "" && o.Err == nil && len(o.Diffs) == 0 && o.Cond.Status == metav1.ConditionTrue
}

// Mask removes from an error the values of a Secret as it is wanted and as it is; live may be nil.
func (t *Task) Mask(live *unstructured.Unstructured, err error) error {
	return diff.SecretsOf(t.Manifest.Object.Content, live).Error(err)
}

// suspendedCondition returns the condition of a suspended object: it counts as applied if the
// desired content was applied before.
func (t *Task) suspendedCondition() diff.Condition {
	if t.Item == nil || t.Item.Hash != t.Manifest.Hash {
		return diff.NotApplied(api.Suspended, t.SuspendedReason)
	}
	c := diff.Applied()
	c.Reason, c.Cause = api.Suspended, t.SuspendedReason
	return c
}

// Applied returns what was applied of the object of a task, with its content as it is applied to the live one. The task must have
// an item.
func (t *Task) Applied(fleet string) drift.Applied {
	return drift.Applied{Fleet: fleet, Managed: t.Item.Managed, Manifest: t.Manifest.Object.Content, Altered: t.AlteredBefore}
}

// left returns the fields that Git has removed and that were still there when the object was last applied.
func (t *Task) left() diff.Left {
	if t.Item == nil {
		return ""
	}
	return t.Item.Left
}

// leavesReplicas reports whether the manifest does not set replicas which we still own.
func (t *Task) leavesReplicas() bool {
	return t.Known != nil && t.Known.Replicas && !autoscaler.SetsReplicas(t.Manifest.Object.Content)
}

// LeavesFields reports whether a manifest leaves fields to others, of which we may own live values.
func LeavesFields(m *work.Manifest) bool { return leavesFields(m, true) }

// leavesFields is LeavesFields for an object of which others own fields or not.
func leavesFields(m *work.Manifest, others bool) bool {
	return ignoresFields(m) || controllers.MayKeep(m.Object.Content, others) || diff.MayBeFilled(m.Object.Content) || len(controllers.Pointers(m.Object.Content)) > 0
}

// ignoresFields reports whether the annotation of a manifest lists fields.
func ignoresFields(m *work.Manifest) bool {
	return m.Object.Content.GetAnnotations()[api.IgnoreFieldsAnnotation] != ""
}

// Scaled reports whether an autoscaler may scale an object, as its watch knows it; nil if it does
// not.
func Scaled(m *work.Manifest, known *observed.Object) bool {
	return known != nil && known.Scaled && autoscaler.SetsReplicas(m.Object.Content)
}
