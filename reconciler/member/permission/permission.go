// Package permission finds out which permissions a cluster does not grant.
//
// A Reviewer asks the cluster after it has refused a request, and asks again from time to time
// while permissions are missing.
package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
)

// maxReviews is the maximum number of requests of one review, enough for forty kinds.
const maxReviews = 256

// Lacking returns those of some permissions that the cluster does not grant, asking several at a
// time. It asks for a permission in single namespaces only if it is not granted in all of them.
func Lacking(ctx context.Context, conn *connection.Conn, concurrency int, needs []rbac.Permission) ([]rbac.Permission, error) {
	var everywhere []rbac.Permission
	for _, p := range needs {
		everywhere = append(everywhere, inAllNamespaces(p))
	}
	slices.SortFunc(everywhere, rbac.Compare)
	lacking, err := reviewAll(ctx, conn, concurrency, slices.Compact(everywhere))
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(needs), func(p rbac.Permission) bool { return !lacking[inAllNamespaces(p)] })
	inOne := slices.DeleteFunc(slices.Clone(missing), func(p rbac.Permission) bool { return p.Namespace == "" })
	lacking, err = reviewAll(ctx, conn, concurrency, inOne)
	return slices.DeleteFunc(missing, func(p rbac.Permission) bool { return p.Namespace != "" && !lacking[p] }), err
}

func inAllNamespaces(p rbac.Permission) rbac.Permission {
	p.Namespace = ""
	return p
}

// reviewAll returns the permissions that the cluster does not grant, among the first
// maxReviews. The error is the first one.
func reviewAll(ctx context.Context, conn *connection.Conn, concurrency int, all []rbac.Permission) (map[rbac.Permission]bool, error) {
	all = all[:min(len(all), maxReviews)]
	granted := make([]bool, len(all))
	var reviews errgroup.Group
	reviews.SetLimit(concurrency)
	for i, p := range all {
		reviews.Go(func() (err error) {
			granted[i], err = isGranted(ctx, conn, p)
			return err
		})
	}
	err := reviews.Wait()
	lacking := map[rbac.Permission]bool{}
	for i, p := range all {
		if !granted[i] {
			lacking[p] = true
		}
	}
	return lacking, err
}

// isGranted asks the cluster whether it grants a permission.
func isGranted(ctx context.Context, conn *connection.Conn, p rbac.Permission) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, conn.Timeout())
	defer cancel()
	review := authorization.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
	}
	if p.Path != "" {
		review.Spec.NonResourceAttributes = &authorization.NonResourceAttributes{Path: p.Path, Verb: p.Verb}
	} else {
		review.Spec.ResourceAttributes = &authorization.ResourceAttributes{Verb: p.Verb, Group: p.Group, Resource: p.Resource, Namespace: p.Namespace}
	}
	body, err := json.Marshal(review)
	if err != nil {
		return false, err
	}
	raw, err := connection.Answer(conn.REST().Post().AbsPath(connection.AccessReviews).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	if err != nil {
		return false, fmt.Errorf("review a permission: %w", err)
	}
	var reviewed authorization.SelfSubjectAccessReview
	if json.Unmarshal(raw, &reviewed) != nil || reviewed.Kind != review.Kind {
		return false, connection.ErrNotObject
	}
	return reviewed.Status.Allowed, nil
}
