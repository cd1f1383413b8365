package member

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// recreate deletes the objects that request recreation and whose tasks were just refused
// because of immutable fields. An object that is gone at once is applied again at once; others
// are applied once the watch reports their deletion.
func (a *applier) recreate(ctx context.Context, tasks []apply.Task, touched map[api.PlacementKey]bool) {
	var due []apply.Task
	for _, t := range tasks {
		if refused, _ := a.progress.Failure(t.Manifest.ID); refused.Recreate {
			due = append(due, t)
		}
	}
	if len(due) == 0 {
		return
	}
	a.blocker.blockRecreations()
	var gone []apply.Task
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

// deleteForRecreation deletes the object of a task.
func (a *applier) deleteForRecreation(ctx context.Context, t apply.Task) recreation {
	o := recreation{Task: t, result: connection.AlreadyGone}
	if b, blocked := a.blocker.blocked[t.Manifest.ID]; blocked {
		o.blocked = b.why
		return o
	}
	live, err := a.conn.Read(ctx, t.Res, t.Manifest.ID)
	if err == nil && live != nil {
		o.Replaced, o.finalizers = a.replacedBy(ctx, t, live), live.GetFinalizers()
		if why := a.notRecreated(t, live); why != "" {
			err = errors.New(why)
		} else if err = a.deleteRead(ctx, &o, live); err != nil {
			err = a.executor().Scrub(ctx, t, live, err)
		}
	}
	o.err = err
	return o
}

// replacedBy returns a live object that the object of a task is to replace, if that shall have values
// of it; nil otherwise.
func (a *applier) replacedBy(ctx context.Context, t apply.Task, live *unstructured.Unstructured) *apply.Snapshot {
	rivals := autoscaler.Rivals(ctx, a.conn, t.Manifest.Object.Content, live, t.Scaler)
	if len(rivals) == 0 && !apply.LeavesFields(t.Manifest) {
		return nil
	}
	return &apply.Snapshot{Live: live, Rivals: rivals}
}

// deleteRead deletes the object of a recreation in the version that was read if the server would create
// the new object. It writes the inventory first, since gitfleet may be killed before the object is created.
func (a *applier) deleteRead(ctx context.Context, o *recreation, live *unstructured.Unstructured) error {
	if live.GetDeletionTimestamp() != nil {
		o.result = connection.DeletionPending
		return nil
	}
	if err := a.tryRecreation(ctx, o.Task, live); err != nil {
		return err
	}
	if err := a.inventories.announceRecreation(ctx, o.Task); err != nil {
		return err
	}
	result, err := a.conn.Delete(ctx, o.Res, o.Manifest.ID, live.GetUID(), metav1.DeletePropagationBackground)
	a.cfg.Metrics.done(a.cfg.Name, "Delete", err)
	o.result, o.deleted, o.refused = result, err == nil && result != connection.AlreadyGone, err != nil && connection.Answered(err)
	return err
}

// tryRecreation requests a dry run of the creation of an object, which must not be refused once
// the live object is deleted.
func (a *applier) tryRecreation(ctx context.Context, t apply.Task, live *unstructured.Unstructured) error {
	t.Replaced = a.replacedBy(ctx, t, live)
	body, err := a.executor().CreationBody(t, apply.Snapshot{}, live)
	if err == nil {
		err = a.conn.DryRunCreate(ctx, t.Res, t.Manifest.ID, body)
	}
	if err != nil {
		return fmt.Errorf("dry run of the new object: %w", err)
	}
	return nil
}

// notRecreated returns why a live object is not deleted although its manifest requests it;
// empty if it is deleted.
func (a *applier) notRecreated(t apply.Task, live *unstructured.Unstructured) string {
	policy, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	switch {
	case diff.OwnerOf(live, a.cfg.Fleet, t.Placement, a.Works().MarkerStale) != diff.Ours, t.Item == nil, t.Item.UID != live.GetUID():
		return "it was not applied by this placement"
	case t.Item.Hash == t.Manifest.Hash:
		return "its content in Git has not changed since it was applied"
	case t.Manifest.ID.Kind == "StatefulSet" && policy == "Delete":
		return "its persistentVolumeClaimRetentionPolicy would delete its volumes with it"
	case live.GetAnnotations()[api.PruneAnnotation] == api.PruneDisabled:
		return "it has the annotation " + api.PruneAnnotation + ": " + api.PruneDisabled + " on the cluster"
	}
	return ""
}
