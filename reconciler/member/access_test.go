package member

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/permission"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An authorizer is an API server without a network that grants only some permissions, and has
// only the objects that were created on it.
type authorizer struct {
	mu sync.Mutex
	// denies are the permissions that it does not grant, as "VERB RESOURCE" or "VERB RESOURCE
	// NAMESPACE".
	denies  []string
	denied  int // number of refused requests
	reviews int
}

func (a *authorizer) permits(verb, resource, namespace string) bool {
	return !slices.Contains(a.denies, verb+" "+resource) && !slices.Contains(a.denies, verb+" "+resource+" "+namespace)
}

// RoundTrip implements http.RoundTripper.
func (a *authorizer) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	status := func(code int, reason metav1.StatusReason, message string) (int, any) {
		return code, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	parts = parts[min(len(parts), map[string]int{"api": 2, "apis": 3}[parts[0]]):]
	namespace := ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	code, reply := http.StatusOK, any("ok")
	verb := map[string]string{http.MethodGet: "get", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodPost: "create"}[r.Method]
	if verb == "get" && len(parts) == 1 {
		verb = "list"
	}
	if r.URL.Query().Has("watch") {
		verb = "watch"
	}
	switch {
	case len(parts) == 0 && r.URL.Path == "/api/v1":
		reply = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}}}
	case len(parts) == 0 && r.URL.Path == "/apis/apps/v1":
		reply = metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true}}}
	case len(parts) == 0:
	case parts[0] == "selfsubjectaccessreviews":
		a.reviews++
		var review authorization.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			return nil, err
		}
		review.Status.Allowed = true
		if attributes := review.Spec.ResourceAttributes; attributes != nil {
			review.Status.Allowed = a.permits(attributes.Verb, attributes.Resource, attributes.Namespace) &&
				// A permission in all namespaces is more than one in each.
				(attributes.Namespace != "" || !slices.ContainsFunc(a.denies, func(d string) bool {
					return strings.HasPrefix(d, attributes.Verb+" "+attributes.Resource+" ")
				}))
		}
		code, reply = http.StatusCreated, review
	case !a.permits(verb, parts[0], namespace):
		a.denied++
		code, reply = status(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf("%s is forbidden: User \"fleet\" cannot %s resource", parts[0], verb))
	case verb == "watch":
		a.mu.Unlock()
		<-r.Context().Done()
		a.mu.Lock()
		return nil, r.Context().Err()
	case verb == "list":
		reply = metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	case verb == "patch":
		var applied unstructured.Unstructured
		if err := json.NewDecoder(r.Body).Decode(&applied.Object); err != nil {
			return nil, err
		}
		applied.SetUID("1")
		applied.SetResourceVersion("7")
		reply = applied.Object
	default:
		code, reply = status(http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	}
	body, err := json.Marshal(reply)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

func (a *authorizer) grant(denies ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denies = denies
}

func (a *authorizer) asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reviews
}

// All missing permissions are reported at once, whether they prevent the whole session or
// single objects only. A cluster that lacks permissions is not reported as unreachable,
// reviews are limited, and granted permissions are used soon.
func TestMissingPermissionsAreReportedTogether(t *testing.T) {
	tests := map[string]struct {
		denies  []string
		healthy bool
		want    []string
	}{
		"inventories cannot be read": {
			[]string{"list configmaps", "create deployments", "patch deployments"}, false,
			[]string{"list configmaps", "create, patch deployments.apps in namespace web"},
		},
		"a part of the work": {
			[]string{"create deployments", "patch deployments", "watch configmaps", "delete configmaps"}, true,
			[]string{"watch configmaps", "delete configmaps in namespace gitfleet-system", "delete configmaps in namespace web", "create, patch deployments.apps in namespace web"},
		},
		"one namespace": {
			[]string{"patch deployments web"}, true, []string{"patch deployments.apps in namespace web"},
		},
		"none that is needed": {[]string{"list nodes", "update deployments"}, true, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &authorizer{denies: test.denies}
				var mu sync.Mutex
				var cluster protocol.ClusterSeen
				var placed protocol.WorkSeen
				reported := map[string]bool{} // the missing permissions that were reported
				var logged bytes.Buffer
				a := New(Config{
					Name: "east", Fleet: "prod", Encoder: apply.NewEncoder("prod", ""), Log: slog.New(slog.NewTextHandler(&logged, nil)),
					Connect: func(context.Context) (*rest.Config, error) {
						return &rest.Config{Host: "https://east.example", Transport: server}, nil
					},
					Report: func(o protocol.Observation) {
						mu.Lock()
						defer mu.Unlock()
						switch o := o.(type) {
						case protocol.ClusterSeen:
							cluster = o
							reported[strings.Join(o.Forbidden, "; ")] = true
						case protocol.WorkSeen:
							placed = o
						}
					},
				})
				deployment := manifestOf(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "one", "namespace": "web"}})
				a.Set([]*work.Work{{Placement: web, Manifests: []*work.Manifest{oneManifest(), deployment}, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); a.Run(ctx) }()
				stop := func() { cancel(); <-done }
				defer func() { stop() }()
				after := func(d time.Duration) (protocol.ClusterSeen, protocol.WorkSeen) {
					time.Sleep(d)
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					return cluster, placed
				}

				seen, _ := after(20 * time.Second)
				if seen.Healthy != test.healthy || !slices.Equal(seen.Forbidden, test.want) {
					t.Errorf("healthy %t, error %q, missing:\n%q\nwant %t and\n%q", seen.Healthy, seen.Error, seen.Forbidden, test.healthy, test.want)
				}
				first := server.asked()
				mu.Lock()
				clear(reported)
				mu.Unlock()
				after(setBackInterval + time.Minute) // in which the session ends once and another one begins
				mu.Lock()
				if all := slices.Collect(maps.Keys(reported)); !slices.Equal(all, []string{strings.Join(test.want, "; ")}) {
					t.Errorf("in between it says %q, want %q", all, test.want)
				}
				mu.Unlock()
				if n := server.asked() - first; n > 11*20 {
					t.Errorf("asked %d times in eleven minutes, %d at first", n, first)
				}
				server.grant()
				seen, work := after(permission.Retry + time.Minute)
				if !seen.Healthy || len(seen.Forbidden) > 0 || !work.Applied() {
					t.Errorf("once all is granted: healthy %t, missing %q, applied %t", seen.Healthy, seen.Forbidden, work.Applied())
				}
				stop()
				stop = func() {}
				if n := strings.Count(logged.String(), `msg="permissions are missing"`); n != min(1, len(test.want)) {
					t.Errorf("logged %d times:\n%s", n, &logged)
				}
			})
		})
	}
}

// A missing permission that is not needed any more is not reported any longer, although it was
// never granted.
func TestUnneededMissingPermissionsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &authorizer{denies: []string{"patch deployments"}}
		var mu sync.Mutex
		var missing []string
		a := New(Config{
			Name: "east", Fleet: "prod", Encoder: apply.NewEncoder("prod", ""), Log: slog.New(slog.DiscardHandler),
			Connect: func(context.Context) (*rest.Config, error) {
				return &rest.Config{Host: "https://east.example", Transport: server}, nil
			},
			Report: func(o protocol.Observation) {
				if seen, ok := o.(protocol.ClusterSeen); ok {
					mu.Lock()
					defer mu.Unlock()
					missing = seen.Forbidden
				}
			},
		})
		deployment := manifestOf(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "one", "namespace": "web"}})
		w := &work.Work{Placement: web, Manifests: []*work.Manifest{oneManifest(), deployment}, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}}
		a.Set([]*work.Work{w})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); a.Run(ctx) }()
		defer func() { cancel(); <-done }()
		says := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(missing, want) {
				t.Errorf("missing: %q, want %q", missing, want)
			}
		}
		says(20*time.Second, "patch deployments.apps in namespace web")
		fewer := *w
		fewer.Manifests, fewer.AllowDelete = w.Manifests[:1], true
		a.Set([]*work.Work{&fewer})
		says(2 * permission.Retry)
	})
}

// Permissions to read CustomResourceDefinitions are reviewed too, since the definitions show
// whether a kind that is not served was deleted.
func TestPermissionsToReadDefinitionsAreReviewed(t *testing.T) {
	s := sessionAt(t, apiserver.NewConfigMaps())
	read := rbac.Permission{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	if needs, complete := s.needs(); slices.Contains(needs, read) || !complete {
		t.Errorf("of nothing: complete %t, %v", complete, needs)
	}
	s.inventories.owned.Inventory(web).Items.Put(inventory.Item{Group: "example.com", Version: "v1", Kind: "Gadget", Namespace: "web", Name: "one"})
	if needs, complete := s.needs(); !slices.Contains(needs, read) || complete {
		t.Errorf("of a kind that is not served: complete %t, %v", complete, needs)
	}
}

// While requests are refused and nothing else changes, a pass does not compute the needed
// permissions again.
func TestRecentReviewComputesNoPermissions(t *testing.T) {
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.lastWorks = []*work.Work{{Placement: web, Manifests: []*work.Manifest{oneManifest()}}}
	s.access.Review(t.Context(), s.conn, s.permissionBasis(), func() []rbac.Permission { return nil })
	s.access.RecordRefusal(apierrors.NewForbidden(inventory.ConfigMaps.GroupResource(), "one", errors.New("no")))
	if n := testing.AllocsPerRun(10, func() { s.review(context.Background()) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if !s.access.Refused() {
		t.Error("it was reviewed")
	}
}

// The permissions are derived anew if Jobs run in another namespace than before, also if there are as many.
func TestNamespacesOfJobsArePartOfThePermissionBasis(t *testing.T) {
	s, other := sessionAt(t, apiserver.NewConfigMaps()), sessionAt(t, apiserver.NewConfigMaps())
	s.Jobs.Need("checks")
	other.Jobs.Need("smoke")
	if s.permissionBasis() == other.permissionBasis() {
		t.Error("the basis is the same")
	}
}
