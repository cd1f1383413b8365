// Package permission finds out which permissions a cluster does not grant.
//
// A Reviewer asks the cluster after it has refused a request, and asks again from time to time
// while permissions are missing.
package permission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
)

// mostReviews is the maximum number of requests of one review, enough for forty kinds.
const mostReviews = 256

// Lacking returns those of some permissions that the cluster does not grant, asking several at a
// time. It asks for a permission in single namespaces only if it is not granted in all of them.
func Lacking(ctx context.Context, conn *connection.Conn, concurrency int, needs []rbac.Permission) ([]rbac.Permission, error) {
	var everywhere []rbac.Permission
	for _, p := range needs {
		p.Namespace = ""
		everywhere = append(everywhere, p)
	}
	slices.SortFunc(everywhere, rbac.Compare)
	lacking, err := reviewAll(ctx, conn, concurrency, slices.Compact(everywhere))
	if err != nil {
		return nil, err
	}
	var missing, inNamespace []rbac.Permission
	for _, p := range needs {
		general := p
		general.Namespace = ""
		switch {
		case !lacking[general]:
		case p.Namespace == "":
			missing = append(missing, p)
		default:
			inNamespace = append(inNamespace, p)
		}
	}
	lacking, err = reviewAll(ctx, conn, concurrency, inNamespace)
	for _, p := range inNamespace {
		if lacking[p] {
			missing = append(missing, p)
		}
	}
	return missing, err
}

// reviewAll returns the permissions that the cluster does not grant, among the first
// mostReviews.
func reviewAll(ctx context.Context, conn *connection.Conn, concurrency int, all []rbac.Permission) (map[rbac.Permission]bool, error) {
	all = all[:min(len(all), mostReviews)]
	granted, errs := make([]bool, len(all)), make([]error, len(all))
	slots := make(chan struct{}, concurrency)
	var wg sync.WaitGroup
	for i, p := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			granted[i], errs[i] = isGranted(ctx, conn, p)
		})
	}
	wg.Wait()
	lacking := map[rbac.Permission]bool{}
	for i, p := range all {
		if !granted[i] {
			lacking[p] = true
		}
	}
	return lacking, errors.Join(errs...)
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
