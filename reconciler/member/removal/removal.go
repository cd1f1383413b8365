// Package removal makes an apply remove what it would leave on a member, although Git has removed
// it or the desired object excludes it.
//
// Server-side apply removes a field only if no other manager owns it, and never a field without an
// owner. Ownership of what has to go is therefore taken first: a patch of managedFields,
// which changes nothing else, makes gitfleet its only owner. The apply that follows removes it
// together with everything else that it changes, so that no state in between is invalid.
package removal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Target is the object of an apply on a member.
type Target struct {
	Conn     *connection.Conn
	Resource connection.Resource
	ID       api.ID
}

// attempts is how often ownership is taken while others keep writing to the object, such as a
// controller that has just seen the change of a user.
const attempts = 5

// TakeOwnership makes gitfleet the only owner of what find returns for the live object, unless that is empty. It
// returns what it has taken ownership of, and the object as it is now.
func (t Target) TakeOwnership(ctx context.Context, live *unstructured.Unstructured, find func(live *unstructured.Unstructured) diff.Removal) (diff.Removal, *unstructured.Unstructured, error) {
	for attempt := 1; ; attempt++ {
		r := find(live)
		if r.Empty() {
			return r, live, nil
		}
		patch, err := r.OwnershipPatch(live, api.FieldManager)
		if err == nil {
			err = t.Conn.Send(ctx, t.Resource, t.ID, types.JSONPatchType, patch)
		}
		if err != nil && (!apierrors.IsConflict(err) || attempt == attempts) {
			return r, live, fmt.Errorf("become the owner of what Git has removed: %w", err)
		}
		now, readErr := t.Conn.Read(ctx, t.Resource, t.ID)
		if readErr == nil && now == nil {
			readErr = errors.New("the object is gone")
		}
		if readErr != nil || err == nil {
			return r, now, readErr
		}
		live = now
	}
}

// GiveBack undoes TakeOwnership: the fields of the object get their former owners back. live is the object as TakeOwnership returned it.
// Nothing is written if the owners have changed since, or if the server does not answer.
func (t Target) GiveBack(ctx context.Context, live *unstructured.Unstructured, owners []metav1.ManagedFieldsEntry) {
	now := live
	for attempt := 1; now != nil && diff.SameOwners(now, live); attempt++ {
		patch, err := diff.OwnersPatch(now, owners)
		if err == nil {
			err = t.Conn.Send(ctx, t.Resource, t.ID, types.JSONPatchType, patch)
		}
		if !apierrors.IsConflict(err) || attempt == attempts {
			return // the refusal is what is reported
		}
		if now, err = t.Conn.Read(ctx, t.Resource, t.ID); err != nil {
			return
		}
	}
}

// Refused reports whether an error may be a refusal of an object because of fields that are on the member and
// that the desired object does not have.
func Refused(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0
}

// Contradicting returns what contradicts the desired object on the member, after the server has
// refused to apply it: defaults of an alternative that it no longer chooses, list items that
// somebody has put in the place of ours, and what others have added to a field that Git has removed. To tell a default from a contradiction, the server
// creates the object under another name in a dry run. body is what is created. The result is
// empty if the desired object is invalid by itself.
func (t Target) Contradicting(ctx context.Context, r diff.Request, body []byte, refusal error) diff.Removal {
	removal := diff.Opposed(r)
	if diff.Surplus(r, nil, func(string) bool { return true }).Empty() {
		return removal
	}
	fresh, err := t.Conn.DryRunNew(ctx, t.Resource, t.ID, body)
	switch {
	case err == nil:
		return removal.Union(diff.Surplus(r, fresh, nil))
	case !connection.Answered(err) || apierrors.IsInvalid(err) && !onlyName(err):
		return diff.Removal{}
	default:
		return removal.Union(diff.Surplus(r, nil, func(path string) bool { return names(refusal, path) }))
	}
}

// onlyName reports whether an object is invalid only because of its name.
func onlyName(err error) bool {
	return !slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool { return !strings.HasPrefix(c.Field, "metadata.name") })
}

// names reports whether a refusal names a field, something in it, or what it is a field of.
func names(refusal error, path string) bool {
	return slices.ContainsFunc(causes(refusal), func(c metav1.StatusCause) bool {
		field := withoutKeys(c.Field)
		return field == path || strings.HasPrefix(field, path+".") || path[:max(0, strings.LastIndexByte(path, '.'))] == field
	})
}

func causes(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// withoutKeys removes the indexes and keys of list items from a path.
func withoutKeys(path string) string {
	var out strings.Builder
	depth := 0
	for _, c := range path {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0:
			out.WriteRune(c)
		}
	}
	return out.String()
}
