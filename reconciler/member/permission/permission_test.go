package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorization "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
)

// An authorizer reviews permissions without a network. It denies those in denies, as Describe
// prints them.
type authorizer struct {
	mu     sync.Mutex
	denies []string
	asked  []string
	broken error
}

// RoundTrip implements http.RoundTripper.
func (a *authorizer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken != nil {
		return nil, a.broken
	}
	var review authorization.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, err
	}
	var p rbac.Permission
	if path := review.Spec.NonResourceAttributes; path != nil {
		p = rbac.Permission{Verb: path.Verb, Path: path.Path}
	} else {
		of := review.Spec.ResourceAttributes
		p = rbac.Permission{Verb: of.Verb, Group: of.Group, Resource: of.Resource, Namespace: of.Namespace}
	}
	name := rbac.Describe([]rbac.Permission{p})[0]
	a.asked = append(a.asked, name)
	review.Status.Allowed = !slices.Contains(a.denies, name)
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusCreated, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// take returns the permissions that were reviewed since the last call, sorted.
func (a *authorizer) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := slices.Sorted(slices.Values(a.asked))
	a.asked = nil
	return asked
}

func connected(t *testing.T, a *authorizer) *connection.Conn {
	t.Helper()
	metrics := connection.NewMetrics()
	c, err := connection.New(connection.Config{Cluster: "east", Timeout: time.Minute, Metrics: &metrics}, &rest.Config{Host: "https://member.example", Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var (
	readyz    = rbac.Permission{Verb: "get", Path: "/readyz"}
	listJobs  = rbac.Permission{Verb: "list", Group: "batch", Resource: "jobs"}
	patchWeb  = rbac.Permission{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "web"}
	patchShop = rbac.Permission{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "shop"}
)

// A permission is reviewed in all namespaces first, once, and in single ones only if it is not
// granted in all of them.
func TestLacking(t *testing.T) {
	all := []rbac.Permission{readyz, listJobs, patchWeb, patchShop}
	general := []string{"get /readyz", "list jobs.batch", "patch deployments.apps"}
	tests := map[string]struct {
		denies []string
		want   []rbac.Permission
		asked  []string
	}{
		"all are granted":                 {nil, nil, general},
		"a path":                          {[]string{"get /readyz"}, []rbac.Permission{readyz}, general},
		"a cluster-wide permission":       {[]string{"list jobs.batch"}, []rbac.Permission{listJobs}, general},
		"granted in the namespaces alone": {[]string{"patch deployments.apps"}, nil, append(slices.Clone(general), "patch deployments.apps in namespace shop", "patch deployments.apps in namespace web")},
		"granted in one of them": {[]string{"patch deployments.apps", "patch deployments.apps in namespace web"}, []rbac.Permission{patchWeb},
			append(slices.Clone(general), "patch deployments.apps in namespace shop", "patch deployments.apps in namespace web")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := &authorizer{denies: test.denies}
			got, err := Lacking(t.Context(), connected(t, a), 2, all)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("lacking %v, want %v: %v", got, test.want, err)
			}
			if asked := a.take(); !slices.Equal(asked, test.asked) {
				t.Errorf("asked %v, want %v", asked, test.asked)
			}
		})
	}
}

// Permissions that cannot be reviewed are an error, and not missing. A review sends a limited
// number of requests.
func TestLackingIsBounded(t *testing.T) {
	var many []rbac.Permission
	for range maxReviews + 1 {
		many = append(many, rbac.Permission{Verb: "list", Group: "example.com", Resource: strings.Repeat("x", len(many)+1)})
	}
	a := &authorizer{}
	if got, err := Lacking(t.Context(), connected(t, a), 8, many); err != nil || len(got) > 0 {
		t.Errorf("lacking %v, %v", got, err)
	}
	if n := len(a.take()); n != maxReviews {
		t.Errorf("%d requests, want %d", n, maxReviews)
	}
	a.broken = errors.New("broken")
	if got, err := Lacking(t.Context(), connected(t, a), 8, many); err == nil || got != nil {
		t.Errorf("lacking %v, %v", got, err)
	}
}

// A reviewer asks after a refused request, again every minute while something is missing, and
// otherwise not for some minutes, unless other permissions are needed.
func TestReviewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		a := &authorizer{denies: []string{"list jobs.batch"}}
		conn := connected(t, a)
		r := New(Config{Cluster: "east", Concurrency: 2, Log: slog.New(slog.NewTextHandler(&log, nil))})
		var basis Basis
		review := func(wantReviewed, wantChanged bool, needs ...rbac.Permission) {
			t.Helper()
			basis.Count++
			if reviewed, changed := r.Review(t.Context(), conn, basis, func() []rbac.Permission { return needs }); reviewed != wantReviewed || changed != wantChanged {
				t.Errorf("reviewed %t, changed %t", reviewed, changed)
			}
		}
		r.RecordRefusal(errors.New("no answer"))
		terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "one", nil)
		terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		r.RecordRefusal(terminating)
		if r.Refused() || !r.NextRetry().IsZero() {
			t.Error("refused by nobody")
		}
		r.RecordRefusal(apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "one", nil))
		if !r.Refused() {
			t.Error("not refused")
		}
		review(true, true, listJobs, readyz)
		if want := []string{"list jobs.batch"}; !slices.Equal(r.Forbidden(), want) || !slices.Equal(r.Missing(), []rbac.Permission{listJobs}) {
			t.Errorf("missing %v %v, want %v", r.Forbidden(), r.Missing(), want)
		}
		if r.Refused() || !r.NextRetry().Equal(time.Now().Add(Retry)) {
			t.Errorf("again at %s", r.NextRetry())
		}
		review(false, false, listJobs, readyz)
		review(true, false, listJobs) // others are needed
		r.Review(t.Context(), conn, basis, func() []rbac.Permission {
			t.Error("the needed permissions are computed again")
			return nil
		})
		r.Expire()
		review(true, false, listJobs)

		a.denies = nil
		if changed := r.Update(t.Context(), conn, r.Missing()); !changed || len(r.Forbidden()) > 0 || !r.NextRetry().IsZero() {
			t.Errorf("granted: changed %t, missing %v", changed, r.Forbidden())
		}
		time.Sleep(2 * Retry)
		review(false, false, listJobs) // nothing was missing
		time.Sleep(pause)
		review(true, false, listJobs)

		a.broken = errors.New("broken")
		for range 2 {
			if r.Update(t.Context(), conn, []rbac.Permission{readyz}) {
				t.Error("changed by a review that failed")
			}
		}
		var messages []string
		for _, line := range strings.Split(strings.TrimSpace(log.String()), "\n") {
			_, rest, _ := strings.Cut(line, `msg="`)
			message, _, _ := strings.Cut(rest, `"`)
			messages = append(messages, message)
		}
		if want := []string{"permissions are missing", "no permissions are missing any more", "permissions cannot be reviewed"}; !slices.Equal(messages, want) {
			t.Errorf("logged %q, want %q", messages, want)
		}
	})
}
