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

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
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
				if len(c.seen.Unusual().Drifts) > 0 {
					t.Errorf("drift: %+v", c.seen.Unusual().Drifts)
				}
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An object with fields that are left to others is created again if it was deleted between two attempts
// to put back what somebody has changed.
func TestDeletedBeforeItIsSentAgain(t *testing.T) {
	const config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default, annotations: {gitfleet.dev/ignore-fields: /data/b}}, data: {a: "1", b: "1"}}`
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		var stale atomic.Bool
		c.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodPatch || r.URL.Query().Get("fieldManager") != "gitfleet" || !strings.HasSuffix(r.URL.Path, "/configmaps/web") || !stale.CompareAndSwap(true, false) {
					return next.RoundTrip(r)
				}
				if err := c.of("", "v1", "configmaps").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
				body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`
				return &http.Response{StatusCode: http.StatusConflict, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
			})
		})
		c.start(placed(t, "web", config))
		defer c.stop()
		maps := c.of("", "v1", "configmaps")
		stale.Store(true)
		c.patch(maps, "web", "kubectl", `{"data":{"a":"2"}}`)
		c.settle()
		if live := c.live(maps, "web"); live == nil || stale.Load() {
			t.Fatalf("live %v, stale %t", live, stale.Load())
		} else if got, _, _ := unstructured.NestedString(live.Object, "data", "a"); got != "1" {
			t.Errorf("a is %q", got)
		}
	})
}

// A field that somebody has changed goes when a commit removes it, whatever happens to drift: the change
// is overwritten by the new version, although gitfleet no longer owns the field.
func TestChangedFieldsGoWithTheCommitThatRemovesThem(t *testing.T) {
	for _, name := range []string{"revert", "report", "propose", "report, with a restart", "propose, with a restart"} {
		mode, _, restarted := strings.Cut(name, ", ")
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newControlled(t)
				with := strings.Replace(strings.Replace(deployment, "name: web", "name: web, annotations: {gitfleet.dev/drift: "+mode+"}", 1), "replicas: 6, ", "replicas: 6, minReadySeconds: 5, ", 1)
				c.start(placed(t, "web", with))
				defer c.stop()
				deployments := c.of("apps", "v1", "deployments")
				if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"minReadySeconds":7}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
					t.Fatal(err)
				}
				if mode != "revert" { // or else the commit arrives before the change is reverted
					synctest.Wait()
				}
				less := placed(t, "web", strings.Replace(with, "minReadySeconds: 5, ", "", 1))
				if restarted {
					c.stop()
					c.mu.Lock()
					c.recorded = map[api.PlacementKey][]protocol.Drift{less.Placement: c.seen.Unusual().Drifts}
					c.mu.Unlock()
					c.start(less)
					c.settle()
				} else {
					c.set(less)
				}
				if got, has, _ := unstructured.NestedInt64(c.live(deployments, "web").Object, "spec", "minReadySeconds"); has {
					t.Errorf("minReadySeconds is still there: %d", got)
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				for _, d := range c.seen.Unusual().Drifts {
					if d.State.Present() {
						t.Errorf("drift: %+v", d)
					}
				}
			})
		})
	}
}

// An object of a kind that may be written and not listed is as available as its apply shows: a claim does not
// hold a rollout, and a workload that is not available says which permission is missing. That is
// also so after a restart, when nothing is written.
func TestKindsThatMayNotBeListed(t *testing.T) {
	const claim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: default}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		c.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodGet && (strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims") || strings.HasSuffix(r.URL.Path, "/deployments")) {
					body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"forbidden","code":403}`
					return &http.Response{StatusCode: http.StatusForbidden, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
				}
				return next.RoundTrip(r)
			})
		})
		for _, when := range []string{"at first", "after a restart"} {
			c.start(placed(t, "web", claim, deployment))
			c.mu.Lock()
			if len(c.seen.Exceptions) != 1 || c.seen.Exceptions[0].ID.Kind != "Deployment" || !strings.Contains(c.seen.Exceptions[0].Available.Message(), "may not list and watch deployments.apps") {
				t.Errorf("%s: exceptions: %+v", when, c.seen.Exceptions)
			}
			c.mu.Unlock()
			if when == "after a restart" {
				c.patch(c.of("apps", "v1", "deployments"), "web", "kube-controller-manager",
					`{"status":{"observedGeneration":1,"replicas":6,"updatedReplicas":6,"availableReplicas":6,"readyReplicas":6}}`, "status")
				c.settle()
				c.mu.Lock()
				if len(c.seen.Exceptions) > 0 {
					t.Errorf("it has become available, and the exceptions are %+v", c.seen.Exceptions)
				}
				c.mu.Unlock()
			}
			c.stop()
		}
	})
}

// A claim that somebody has enlarged is no drift, keeps its size, and does not keep other changes of Git from
// arriving.
func TestEnlargedClaimKeepsItsSize(t *testing.T) {
	claim := `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: default, labels: {v: "1"}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
	for _, mode := range []string{"revert", "report", "propose"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newControlled(t)
				claim := strings.Replace(claim, "labels:", "annotations: {gitfleet.dev/drift: "+mode+"}, labels:", 1)
				c.start(placed(t, "web", claim))
				defer c.stop()
				claims := c.of("", "v1", "persistentvolumeclaims")
				expect := func(size, version string) {
					t.Helper()
					o := c.live(claims, "data")
					if got, _, _ := unstructured.NestedString(o.Object, "spec", "resources", "requests", "storage"); got != size || o.GetLabels()["v"] != version {
						t.Errorf("the size is %s of version %s, want %s of %s", got, o.GetLabels()["v"], size, version)
					}
					c.mu.Lock()
					defer c.mu.Unlock()
					for _, d := range c.seen.Unusual().Drifts {
						if d.State != api.DriftIgnored && d.State != api.DriftEnded {
							t.Errorf("drift: %+v", d)
						}
					}
					if len(c.seen.Exceptions) > 0 {
						t.Errorf("exceptions: %+v", c.seen.Exceptions)
					}
				}
				for range 4 {
					c.patch(claims, "data", "pvc-autoresizer", `{"spec":{"resources":{"requests":{"storage":"5Gi"}}}}`)
					c.settle()
				}
				expect("5Gi", "1")
				c.set(placed(t, "web", strings.Replace(claim, `v: "1"`, `v: "2"`, 1)))
				expect("5Gi", "2")
				c.set(placed(t, "web", strings.NewReplacer(`v: "1"`, `v: "3"`, "1Gi", "9Gi").Replace(claim)))
				expect("9Gi", "3")
			})
		})
	}
}

// A workload that KEDA has scaled to zero stays there, whatever Git changes beside it, although nobody owns its replicas then, nor
// when KEDA scales it up at once. What scales one to zero that no ScaledObject in Git names is reverted.
func TestScaledToZeroStaysThere(t *testing.T) {
	for _, kind := range []string{"apiVersion: keda.sh/v1alpha1, kind: ScaledObject", "apiVersion: http.keda.sh/v1alpha1, kind: HTTPScaledObject"} {
		testScaledToZero(t, "{"+kind+", metadata: {name: web, namespace: default}, spec: {scaleTargetRef: {name: web}}}")
	}
}

func testScaledToZero(t *testing.T, scaledObject string) {
	t.Helper()
	version := func(v string) string { return strings.Replace(deployment, `v: "1"`, `v: "`+v+`"`, 1) }
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		works := placed(t, "web", deployment, scaledObject)
		c.start(works)
		defer func() { c.stop() }()
		deployments := c.of("apps", "v1", "deployments")
		// scale acts while no agent runs, since the server has no scale, and the entry of it is corrected by a second write.
		scale := func(text string, owned bool) {
			t.Helper()
			c.settle()
			c.stop()
			defer func() { c.start(works); c.settle() }()
			c.patch(deployments, "web", "keda", `{"spec":{"replicas":`+text+`}}`)
			live := c.live(deployments, "web")
			var entries []metav1.ManagedFieldsEntry
			for _, e := range live.GetManagedFields() {
				if e.Manager == "keda" {
					e.Subresource = "scale"
				}
				if e.Manager != "keda" || owned {
					entries = append(entries, e)
				}
			}
			live.SetManagedFields(entries)
			if _, err := deployments.Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(when string, want int64) {
			t.Helper()
			if got, _, _ := unstructured.NestedInt64(c.live(deployments, "web").Object, "spec", "replicas"); got != want {
				t.Errorf("%s: %d replicas, want %d", when, got, want)
			}
		}
		for _, v := range []string{"2", "3"} {
			scale("0", false)
			expect("scaled to zero", 0)
			works = placed(t, "web", version(v), scaledObject)
			c.set(works)
			expect("after a commit", 0)
			scale("3", true)
			expect("scaled up", 3)
		}
		scale("4", false)
		expect("scaled to zero and up at once", 4)
		works = placed(t, "web", version("4"))
		c.set(works)
		expect("without the ScaledObject", 6)
		scale("0", false)
		expect("scaled to zero by others", 6)
	})
}
