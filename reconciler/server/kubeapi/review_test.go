package kubeapi

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const reviewPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// A review says that users with access may read everything that is served, and write nothing.
func TestSelfSubjectAccessReviews(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files)))
	strict := serve(t, reportOf(load(t, "c1", files)))
	strict.api.may = authorizer.AuthorizerFunc(func(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
		if of.GetResource() == "memberclusters" {
			return authorizer.DecisionDeny, "not the clusters", nil
		}
		return authorizer.DecisionAllow, "", nil
	})
	const readOnly, unknown = "the hub is a Git repository, and this API only reads it", "the hub has no such resource"
	for asked, want := range map[string]struct{ open, strict string }{
		`{"resourceAttributes": {"verb": "list", "group": "placement.kubernetes-fleet.io", "resource": "clusterresourceplacements"}}`:   {},
		`{"resourceAttributes": {"verb": "watch", "group": "apps", "version": "v1", "resource": "deployments", "namespace": "web"}}`:    {},
		`{"resourceAttributes": {"verb": "get", "group": "*", "resource": "*"}}`:                                                        {},
		`{"resourceAttributes": {"verb": "get", "group": "cluster.kubernetes-fleet.io", "resource": "memberclusters"}}`:                 {"", "not the clusters"},
		`{"resourceAttributes": {"verb": "delete", "group": "placement.kubernetes-fleet.io", "resource": "clusterresourceplacements"}}`: {readOnly, readOnly},
		`{"resourceAttributes": {"verb": "list", "resource": "pods"}}`:                                                                  {unknown, unknown},
		`{"resourceAttributes": {"verb": "list", "group": "apps", "version": "v1beta1", "resource": "deployments"}}`:                    {unknown, unknown},
		`{"nonResourceAttributes": {"verb": "get", "path": "/version"}}`:                                                                {},
		`{}`: {"the review names neither a resource nor a path", "the review names neither a resource nor a path"},
	} {
		body := `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": ` + asked + `}`
		for api, why := range map[*served]string{s: want.open, strict: want.strict} {
			code, text := api.ask("POST", reviewPath, "application/json", body)
			var r authorizationv1.SelfSubjectAccessReview
			if err := json.Unmarshal([]byte(text), &r); err != nil || code != http.StatusCreated || r.Kind != "SelfSubjectAccessReview" ||
				r.Status.Reason != why || r.Status.Allowed != (why == "") {
				t.Errorf("%s: %d %s, want %q", asked, code, text, why)
			}
		}
	}
}

// Reviews cannot be read, and invalid ones are refused.
func TestInvalidAccessReviewsAreRefused(t *testing.T) {
	s := serve(t, nil)
	for _, test := range []struct {
		method, body string
		code         int
	}{
		{"GET", "", http.StatusMethodNotAllowed},
		{"POST", "nonsense", http.StatusBadRequest},
		{"POST", `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}`, http.StatusBadRequest},
	} {
		if code, text := s.ask(test.method, reviewPath, "application/json", test.body); code != test.code {
			t.Errorf("%s %s: %d %s", test.method, test.body, code, text)
		}
	}
}
