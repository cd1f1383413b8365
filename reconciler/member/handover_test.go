package member_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Replicas that a commit leaves to an autoscaler keep their live value although somebody else has
// applied them too, or the apply after the handover fails and is repeated.
func TestSharedReplicasAreHandedOver(t *testing.T) {
	left := strings.Replace(deployment, "replicas: 6, ", "", 1)
	for name, test := range map[string]struct{ shared, fails bool }{"kubectl has applied them": {shared: true}, "the apply fails": {fails: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newControlled(t)
				var failures atomic.Int32
				c.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return roundTripper(func(r *http.Request) (*http.Response, error) {
						if failures.Load() == 0 || r.Method != http.MethodPatch || r.URL.Query().Get("fieldManager") != "gitfleet" || !strings.HasSuffix(r.URL.Path, "/deployments/web") {
							return next.RoundTrip(r)
						}
						failures.Add(-1)
						return &http.Response{StatusCode: http.StatusInternalServerError, Request: r, Header: http.Header{}, Body: io.NopCloser(&bytes.Buffer{})}, nil
					})
				})
				c.start(placed(t, "web", deployment))
				defer c.stop()
				deployments := c.of("apps", "v1", "deployments")
				if test.shared {
					raw := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":6}}`
					if _, err := deployments.Patch(t.Context(), "web", types.ApplyPatchType, []byte(raw), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
						t.Fatal(err)
					}
				}
				if test.fails {
					failures.Store(1)
				}
				c.set(placed(t, "web", left, hpa))
				if got, _, _ := unstructured.NestedInt64(c.live(deployments, "web").Object, "spec", "replicas"); got != 6 || failures.Load() != 0 {
					t.Errorf("%d replicas, want 6; %d failures are left", got, failures.Load())
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				if len(c.seen.Drifts) > 0 {
					t.Errorf("drift: %+v", c.seen.Drifts)
				}
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
