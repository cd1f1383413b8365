package member

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/decide"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/immutable"
)

// asksForRecreation reports whether the manifest requests that the object is deleted and
// created again if the server refuses to change an immutable field.
func asksForRecreation(m *work.Manifest) bool {
	return m.Object.Content.GetAnnotations()[api.RecreateAnnotation] == api.RecreateEnabled && api.Recreatable(m.ID.GroupKind())
}

// isImmutable reports whether a server refused an object only because something cannot be changed,
// by its message or by the rules of the definition or policy that refused it. unread is why these
// could not be read, so that it is not known. The object was applied before.
func (x *executor) isImmutable(ctx context.Context, t task, err error) (is bool, unread error) {
	if err == nil || immutable.Says(err) {
		return err != nil, nil
	}
	if policy := immutable.Policy(err); policy != "" {
		found, readErr := x.conn.Read(ctx, admissionPolicies, api.ID{Group: admissionPolicies.Group, Kind: "ValidatingAdmissionPolicy", Name: policy})
		return readErr == nil && found != nil && immutable.Broken(err, immutable.RulesOfPolicy(found)), readErr
	}
	if _, builtin := api.Namespaced(t.Manifest.ID.GroupKind()); builtin || !apierrors.IsInvalid(err) || immutable.ByAdmission(err) {
		return false, nil
	}
	definition, readErr := x.conn.Read(ctx, discovery.CustomResourceDefinitions, api.ID{Group: discovery.Definitions.Group, Kind: discovery.Definitions.Kind, Name: t.res.GroupResource().String()})
	return readErr == nil && definition != nil && immutable.Broken(err, immutable.RulesOf(definition, t.res.Version)), readErr
}

// admissionPolicies is the resource of the policies of an API server.
var admissionPolicies = connection.Resource{GroupVersionResource: schema.GroupVersionResource{
	Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
}}

// adviceToRecreate is appended to the cause of an object that was refused because of
// immutable fields.
const adviceToRecreate = "; to have gitfleet delete the object and create it anew, give it in Git the annotation " +
	api.RecreateAnnotation + `: "` + api.RecreateEnabled + `"`

// noRecreation is appended to the cause of an object that asks for recreation, and was refused for
// another reason.
const noRecreation = "; it is not deleted to be created anew, since it was not refused only because something is immutable"

// explainRecreation appends to the cause of a refused object of ours how to have it recreated, or
// why it is not although it asks for that. If the result would be too long, the server's message is
// shortened and the rest is kept.
func explainRecreation(cause string, m *work.Manifest, err error, isImmutable bool, unread error) string {
	more := ""
	switch asks := asksForRecreation(m); {
	case isImmutable && !asks && api.Recreatable(m.ID.GroupKind()):
		more = adviceToRecreate
	case unread != nil && asks:
		more = connection.CutTo("; it is not deleted to be created anew, since the rule that refused it cannot be read: "+unread.Error(), 400)
	case !isImmutable && asks && (apierrors.IsInvalid(err) || immutable.ByAdmission(err)):
		more = noRecreation
	default:
		return cause
	}
	return connection.CutTo(cause, connection.Longest-len(more)-len("… (1234567 more bytes)")) + more
}

// explainDeletion returns the outcome of a task whose object somebody has deleted, and that still exists.
func (x *executor) explainDeletion(ctx context.Context, t task) outcome {
	var why string
	if id := t.Manifest.ID; deletion.Explains(id.GroupKind()) {
		why, _ = deletion.Stays(ctx, x.conn, t.res, id) // it is asked again
	}
	return outcome{task: t, do: diff.NeedRead, cond: (&decide.BeingDeletedError{Finalizers: t.known.Finalizers, Why: why}).Condition(), transient: true}
}

// recreate deletes the objects that request recreation and whose tasks were just refused
// because of immutable fields. An object that is gone at once is applied again at once; others
// are applied once the watch reports their deletion.
func (a *applier) recreate(ctx context.Context, tasks []task, touched map[api.PlacementKey]bool) {
	var due []task
	for _, t := range tasks {
		if refused := a.progress.failed[t.Manifest.ID]; refused != nil && refused.recreate {
			due = append(due, t)
		}
	}
	if len(due) == 0 {
		return
	}
	a.brake.brakeRecreations()
	var gone []task
	for _, t := range due {
		if ctx.Err() != nil || a.conn.CutOff() {
			break
		}
		o := a.deleteForRecreation(ctx, t)
		if o.err != nil && ctx.Err() != nil {
			break // the session has ended, and the object has not failed
		}
		if create, isGone := a.record.recreation(o, touched); isGone {
			gone = append(gone, create)
		}
	}
	a.apply(ctx, gone, touched)
}

// A recreation is the outcome of an attempt to delete an object so that it is created anew.
type recreation struct {
	task
	// held is why the deletion is held; empty if it is not.
	held string
	// err is why the object was not deleted, and refused reports whether the API server refused that.
	err     error
	refused bool
	// result says whether the object is gone, and deleted whether it was deleted just now.
	result  connection.DeleteResult
	deleted bool
	// finalizers are the finalizers of an object that still exists.
	finalizers []string
}

// deleteForRecreation deletes the object of a task.
func (a *applier) deleteForRecreation(ctx context.Context, t task) recreation {
	o := recreation{task: t, result: connection.AlreadyGone}
	if b, held := a.brake.braked[t.Manifest.ID]; held {
		o.held = b.why
		return o
	}
	live, err := a.conn.Read(ctx, t.res, t.Manifest.ID)
	if err == nil && live != nil {
		o.replaced, o.finalizers = a.replacedBy(ctx, t, live), live.GetFinalizers()
		if why := a.notRecreated(t, live); why != "" {
			err = errors.New(why)
		} else if err = a.deleteRead(ctx, &o, live); err != nil {
			err = a.executor().scrub(ctx, t, live, err)
		}
	}
	o.err = err
	return o
}

// replacedBy returns a live object that the object of a task is to replace, if that shall have values
// of it; nil otherwise.
func (a *applier) replacedBy(ctx context.Context, t task, live *unstructured.Unstructured) *snapshot {
	rivals := autoscaler.Rivals(ctx, a.conn, t.Manifest.Object.Content, live, t.scaler)
	if len(rivals) == 0 && !leavesFields(t.Manifest) {
		return nil
	}
	return &snapshot{live, rivals}
}

// deleteRead deletes the object of a recreation in the version that was read if the server would create
// the new object. It writes the inventory first, since gitfleet may be killed before the object is created.
func (a *applier) deleteRead(ctx context.Context, o *recreation, live *unstructured.Unstructured) error {
	if live.GetDeletionTimestamp() != nil {
		o.result = connection.DeletionPending
		return nil
	}
	if err := a.tryRecreation(ctx, o.task, live); err != nil {
		return err
	}
	if err := a.inventories.announceRecreation(ctx, o.task); err != nil {
		return err
	}
	result, err := a.conn.Delete(ctx, o.res, o.Manifest.ID, live.GetUID(), metav1.DeletePropagationBackground)
	a.cfg.Metrics.done(a.cfg.Name, "Delete", err)
	o.result, o.deleted, o.refused = result, err == nil && result != connection.AlreadyGone, err != nil && connection.Answered(err)
	return err
}

// tryRecreation requests a dry run of the creation of an object, which must not be refused once
// the live object is deleted.
func (a *applier) tryRecreation(ctx context.Context, t task, live *unstructured.Unstructured) error {
	t.replaced = a.replacedBy(ctx, t, live)
	body, err := a.executor().creationBody(t, snapshot{}, live)
	if err == nil {
		err = a.conn.DryRunCreate(ctx, t.res, t.Manifest.ID, body)
	}
	if err != nil {
		return fmt.Errorf("dry run of the new object: %w", err)
	}
	return nil
}

// notRecreated returns why a live object is not deleted although its manifest requests it;
// empty if it is deleted.
func (a *applier) notRecreated(t task, live *unstructured.Unstructured) string {
	policy, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	switch {
	case diff.OwnerOf(live, a.cfg.Fleet, t.Placement, a.Works().MarkerStale) != diff.Ours, t.item == nil, t.item.UID != live.GetUID():
		return "it was not applied by this placement"
	case t.item.Hash == t.Manifest.Hash:
		return "its content in Git has not changed since it was applied"
	case t.Manifest.ID.Kind == "StatefulSet" && policy == "Delete":
		return "its persistentVolumeClaimRetentionPolicy would delete its volumes with it"
	case live.GetAnnotations()[api.PruneAnnotation] == api.PruneDisabled:
		return "it has the annotation " + api.PruneAnnotation + ": " + api.PruneDisabled + " on the cluster"
	}
	return ""
}
