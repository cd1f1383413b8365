package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// workloadFleet starts the test's own fleet, with the controllers for workloads. It stops at
// the end of the test.
func workloadFleet(t *testing.T, o fleet.Options) *fleet.Fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("needs control planes; run without -short")
	}
	o.Controllers, o.Output = "workload", t.Output()
	f, err := fleet.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A kubelet sets the readiness of every pod, and runs none: controllers see no difference.
type kubelet struct {
	client kubernetes.Interface
	sick   atomic.Bool
}

// startKubelet runs a kubelet on a cluster until the end of the test.
func startKubelet(t *testing.T, client kubernetes.Interface) *kubelet {
	k, ended := &kubelet{client: client}, make(chan struct{})
	ctx := t.Context()
	go func() { defer close(ended); k.run(ctx) }()
	t.Cleanup(func() { <-ended })
	return k
}

func (k *kubelet) run(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := k.client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && p.DeletionTimestamp == nil {
				k.report(ctx, p)
			}
		}
	}
}

// report sets the status of a pod, unless it has it already.
func (k *kubelet) report(ctx context.Context, p *corev1.Pod) {
	want := corev1.ConditionTrue
	if k.sick.Load() {
		want = corev1.ConditionFalse
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == want {
			return
		}
	}
	now := time.Now().UTC().Format(time.RFC3339) // minReadySeconds are counted from it
	status := fmt.Sprintf(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q},{"type":"ContainersReady","status":%[1]q,"lastTransitionTime":%[2]q}]}}`, want, now)
	// A pod that is gone by now needs no status.
	_, _ = k.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
}

// reportAll sets the status of every pod of a namespace again.
func (k *kubelet) reportAll(ctx context.Context, namespace string) error {
	pods, err := k.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		k.report(ctx, &pods.Items[i])
	}
	return nil
}

// A workload with real controllers becomes available, loses its pods' readiness and gets it
// back: each change is reported by the watch, without polling.
func TestWorkloadBecomesAvailable(t *testing.T) {
	t.Parallel()
	f := workloadFleet(t, fleet.Options{Clusters: 1})
	a := newAgentOn(t, f.Members()[0])
	defer a.stop()
	k, ctx := startKubelet(t, a.client), t.Context()

	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	set := manifest("set", map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": "db", "namespace": ns},
		"spec": map[string]any{
			"replicas": int64(1), "serviceName": "db", "selector": map[string]any{"matchLabels": map[string]any{"app": "db"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "db"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "registry.example.com/db:1.0"}}},
			},
		},
	})
	a.Set([]*work.Work{workOf("web", "1", namespaceOf(ns), deployment(ns, "web", 2, nil), set)})
	a.available(key, "web", "available")
	a.available(key, "db", "available")

	a.sent.Reset()
	k.sick.Store(true)
	noError(t, k.reportAll(ctx, ns))
	a.available(key, "web", "0 of 2 replicas available")
	a.available(key, "db", api.ManifestNotAvailableYet)
	k.sick.Store(false)
	noError(t, k.reportAll(ctx, ns))
	a.available(key, "web", "available")
	a.available(key, "db", "available")
	if got := a.sent.Requests(fleet.Watches, fleet.Probes); len(got) > 0 {
		t.Errorf("it asked: %v", got)
	}

	// It is deleted, and not reported as gone before its pods are.
	pods := a.client.CoreV1().Pods(ns)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("pods: %v, %v", list, err)
	}
	held := list.Items[0].Name
	finalizers := func(patch string) {
		_, err := pods.Patch(ctx, held, types.MergePatchType, []byte(`{"metadata":{"finalizers":`+patch+`}}`), metav1.PatchOptions{})
		noError(t, err)
	}
	finalizers(`["example.com/log"]`)
	a.Set([]*work.Work{{Placement: key, Remove: true, AllowDelete: true}})
	a.until(key, "waiting for the pod", func(w protocol.WorkSeen) bool {
		return !w.Removed && slices.ContainsFunc(w.Unusual().Collecting, func(id api.ID) bool { return id.Kind == "Deployment" }) &&
			!slices.ContainsFunc(w.Unusual().Lingering, func(id api.ID) bool { return id.Kind == "StatefulSet" })
	})
	finalizers("null")
	a.until(key, "removed", func(w protocol.WorkSeen) bool { return w.Removed })

	// A definition is deleted with its objects, although those take a while: no trailer is
	// needed, since they are all owned.
	group, crd := ns+".example.com", api.PlacementKey{Name: "crd"}
	a.Set([]*work.Work{workOf("crd", "1", namespaceOf(ns+"-crd"), gadget(group, ns+"-crd", "one"), definition(group))})
	a.applied(crd, "1")
	a.Set([]*work.Work{{Placement: crd, Remove: true}})
	a.eventually("the definition is going", func() (bool, error) {
		w := a.until(crd, "reported", func(protocol.WorkSeen) bool { return true })
		if len(w.Unusual().BlockedDeletions) > 0 {
			return false, fmt.Errorf("held: %v", w.Unusual().BlockedDeletions)
		}
		return w.Removed || slices.ContainsFunc(w.Unusual().Lingering, func(id api.ID) bool { return id.Kind == "CustomResourceDefinition" }), nil
	})
}
