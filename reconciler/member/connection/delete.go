package connection

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A DeleteResult is the result of a deletion request.
type DeleteResult int

const (
	// AlreadyGone: the object did not exist, or another object has its name.
	AlreadyGone DeleteResult = iota
	// Deleted: the object is gone.
	Deleted
	// DeletionPending: the object is terminating.
	DeletionPending
)

// Delete deletes an object; if uid is not empty, only the object with that UID.
func (c *Conn) Delete(ctx context.Context, r Resource, id api.ID, uid types.UID, policy metav1.DeletionPropagation) (DeleteResult, error) {
	result, err := c.requestDeletion(ctx, r, id, uid, policy)
	if uid == "" || !apierrors.IsConflict(err) {
		return result, err
	}
	// Either another object has the name now, or the server refuses the deletion for another
	// reason.
	found, readErr := c.Read(ctx, r, id)
	if readErr == nil && (found == nil || found.GetUID() != uid) {
		return AlreadyGone, nil
	}
	return AlreadyGone, err
}

func (c *Conn) requestDeletion(ctx context.Context, r Resource, id api.ID, uid types.UID, policy metav1.DeletionPropagation) (DeleteResult, error) {
	opts := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		PropagationPolicy: &policy,
	}
	if uid != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	body, err := json.Marshal(opts)
	if err != nil {
		return AlreadyGone, err
	}
	raw, _, err := c.write(ctx, c.REST().Delete().AbsPath(r.Path(id)...).SetHeader("Content-Type", "application/json").Body(body))
	if noObject(err) {
		return AlreadyGone, nil
	}
	if err != nil {
		return AlreadyGone, err
	}
	// The response is a Status if the object is gone, and the object if it is not.
	var gone metav1.Status
	if json.Unmarshal(raw, &gone) == nil && gone.Kind == "Status" && gone.Status == metav1.StatusSuccess {
		return Deleted, nil
	}
	left, err := decodeMetadata(raw, r, id)
	switch {
	case err != nil:
		return AlreadyGone, err
	case left.DeletionTimestamp != nil:
		return DeletionPending, nil
	}
	return Deleted, nil
}
