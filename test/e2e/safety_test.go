package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// owned creates a ConfigMap with an owner on the member.
func (a *agent) owned(namespace, name string, owner *corev1.ConfigMap) {
	a.t.Helper()
	cm := &corev1.ConfigMap{Data: map[string]string{"key": "theirs"}, ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true)},
	}}}
	_, err := a.client.CoreV1().ConfigMaps(namespace).Create(context.Background(), cm, metav1.CreateOptions{})
	noError(a.t, err)
}

// A placement with Always does not take over objects that have an owner on the member, however
// many there are, unless that is allowed.
func TestTakeOverAlwaysLooksAtOwners(t *testing.T) {
	t.Parallel()
	for name, objects := range map[string]int{"one object": 1, "many objects": 5} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			ns, ctx := a.makeNamespace(), context.Background()
			owner, err := a.client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
			noError(t, err)
			a.owned(ns, "owned", owner)
			a.owned(ns, "shared", owner)
			alone, together := workOf("alone", "1", configMap(ns, "owned", "a")), workOf("together", "1", configMap(ns, "shared", "a"))
			together.Strategy.AllowCoOwnership = true
			for i := 1; i < objects; i++ {
				alone.Manifests = append(alone.Manifests, configMap(ns, fmt.Sprint("free-", i), "a"))
			}
			a.Set([]*work.Work{alone, together})
			a.applied(together.Placement, "1")
			w := a.until(alone.Placement, "tried", func(w protocol.WorkSeen) bool { return w.Done })
			v := verdictOf(w, "owned")
			if len(w.Exceptions) != 1 || v.Reason != api.FailedToTakeOver || !strings.Contains(v.Message(), "co-ownership is disallowed (existingOwnerRefs: [{APIVersion:v1 Kind:ConfigMap Name:owner") {
				t.Errorf("it says %+v", w.Exceptions)
			}
			for name, want := range map[string]string{"owned": "theirs", "shared": "a"} {
				if cm, err := a.get(ns, name); err != nil || cm.Data["key"] != want {
					t.Errorf("%s: %v %v", name, cm, err)
				}
			}
		})
	}
}

// If the server refuses dry runs, objects are compared without them, and the report says so.
func TestObjectsAreComparedWithoutADryRun(t *testing.T) {
	t.Parallel()
	refusals := map[string]func(http.RoundTripper, *http.Request) (*http.Response, error){
		"a webhook knows no dry run": refusing(400, metav1.StatusReasonBadRequest, `admission webhook "w.example.com" does not support dry run`),
		"a webhook denies":           refusing(403, metav1.StatusReasonForbidden, `admission webhook "w.example.com" denied the request: no`),
		"a webhook is down":          refusing(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "w.example.com"`),
	}
	for name, do := range refusals {
		t.Run(name, func(t *testing.T) {
			a, f := newFaulty(t)
			ns, ctx := a.makeNamespace(), context.Background()
			f.set("dry run", fault{func(r *http.Request) bool { return r.URL.Query().Get("dryRun") != "" }, do})
			noError(t, situation{a, ns, "equal"}.create(ctx, "a", true))
			noError(t, situation{a, ns, "different"}.create(ctx, "b", false))
			w := workOf("web", "1", configMap(ns, "equal", "a"), configMap(ns, "different", "a"), configMap(ns, "ours", "a"))
			w.Strategy.WhenToTakeOver, w.Strategy.WhenToApply = api.TakeOverIfNoDiff, api.ApplyIfNotDrifted
			a.Set([]*work.Work{w})
			seen := a.until(w.Placement, "tried", func(w protocol.WorkSeen) bool { return w.Done })
			if got := verdict(seen, "different"); got != `FailedToTakeOver, diff /data/key "a"→"b"` {
				t.Errorf("the different one: %s", got)
			}
			if text := verdictOf(seen, "different").Message(); !strings.Contains(text, "compared without a dry run, which the API server refused: ") || !strings.Contains(text, "w.example.com") {
				t.Errorf("it says %s", text)
			}
			if got := (situation{a, ns, "equal"}).outcome(ctx); got != "a + theirs, ours" {
				t.Errorf("the equal one: %s", got)
			}
			noError(t, situation{a, ns, "ours"}.edit(ctx, `{"data":{"key":"tampered"}}`))
			a.until(w.Placement, "drifted", func(w protocol.WorkSeen) bool {
				return verdict(w, "ours") == `FoundDrifts, drift /data/key "a"→"tampered"`
			})
		})
	}
}

// A server may quote the live object as well as the request: neither is repeated.
func TestLiveSecretInARefusalIsMasked(t *testing.T) {
	t.Parallel()
	a, f := newFaulty(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	_, err := a.client.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token"}, StringData: map[string]string{"password": "canary-on-member"},
	}, metav1.CreateOptions{})
	noError(t, err)
	f.set("secret", fault{func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/secrets/token")
	}, refusing(422, metav1.StatusReasonInvalid, `Secret "token" is invalid: data: may not change from "canary-on-member" to "canary-in-git"`)})
	other := func(name string) *work.Manifest {
		return manifest(name, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": ns},
			"stringData": map[string]any{"password": "canary-in-git"},
		})
	}
	a.Set([]*work.Work{workOf("web", "1", other("token"), other("second"))})
	w := a.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	text := verdictOf(w, "token").Message()
	if !strings.Contains(text, "may not change from") || strings.Contains(text, "canary") {
		t.Errorf("it says %s", text)
	}
}
