package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// awaitDrift waits until the agent reports drift of an object.
func (a *agent) awaitDrift(p api.PlacementKey, name, what string, ok func(protocol.Drift) bool) protocol.Drift {
	a.t.Helper()
	var found protocol.Drift
	a.until(p, what, func(w protocol.WorkSeen) bool {
		i := slices.IndexFunc(w.Unusual().Drifts, func(d protocol.Drift) bool { return d.ID.Name == name })
		if i >= 0 {
			found = w.Unusual().Drifts[i]
		}
		return i >= 0 && ok(found)
	})
	return found
}

// driftText formats a drift without its times.
func driftText(d protocol.Drift) string {
	text := fmt.Sprintf("%s %s, %d times", d.ID.Name, d.State, d.Count)
	if d.Deleted {
		text += ", deleted"
	}
	for _, p := range d.Paths {
		text += fmt.Sprintf("; %s %q→%q by %v", p.Path, p.ValueInHub, p.ValueInMember, p.By)
	}
	return text
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Drift that is reverted remains in the report, also after a restart: how often it occurred,
// what it was and who caused it, but never the value of a Secret.
func TestRepairedDriftIsRecorded(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	secret := manifest("secret", map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token", "namespace": ns},
		"stringData": map[string]any{"password": "canary-in-git"},
	})
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"), configMap(ns, "two", "a"), configMap(ns, "three", "a"), secret)})
	a.applied(key, "1")
	cms := a.client.CoreV1().ConfigMaps(ns)
	repaired := func(n int) func(protocol.Drift) bool {
		return func(d protocol.Drift) bool { return d.State == api.DriftRepaired && d.Count == n }
	}
	is := func(d protocol.Drift, want string) {
		t.Helper()
		if got := driftText(d); got != want {
			t.Errorf("reported: %s\nwant: %s", got, want)
		}
		if d.FirstSeen.IsZero() || d.LastSeen.Before(d.FirstSeen) {
			t.Errorf("%s: first seen %s, last %s", d.ID, d.FirstSeen, d.LastSeen)
		}
	}

	noError(t, situation{a, ns, "one"}.edit(ctx, `{"data":{"key":"tampered"}}`))
	is(a.awaitDrift(key, "one", "repaired", repaired(1)), `one repaired, 1 times; /data/key "a"→"tampered" by [kubectl-edit (Update)]`)
	noError(t, cms.Delete(ctx, "two", metav1.DeleteOptions{}))
	is(a.awaitDrift(key, "two", "repaired", repaired(1)), "two repaired, 1 times, deleted")
	_, err := a.client.CoreV1().Secrets(ns).Patch(ctx, "token", types.MergePatchType, []byte(`{"stringData":{"password":"canary-on-member"}}`), metav1.PatchOptions{FieldManager: "thief"})
	noError(t, err)
	is(a.awaitDrift(key, "token", "repaired", repaired(1)), fmt.Sprintf("token repaired, 1 times; /data/password %q→%q by [thief (Update)]",
		"(redacted for security reasons)", "(redacted for security reasons)"))
	_, err = cms.Patch(ctx, "three", types.MergePatchType, []byte(`{"metadata":{"labels":{"`+api.ManagedByLabel+`":null}}}`), metav1.PatchOptions{FieldManager: "kubectl-label"})
	noError(t, err)
	is(a.awaitDrift(key, "three", "repaired", repaired(1)), fmt.Sprintf("three repaired, 1 times; /metadata/labels/gitfleet.dev~1managed-by %q→%q by []", a.fleet, ""))

	last := a.until(key, "reported", func(w protocol.WorkSeen) bool { return len(w.Unusual().Drifts) == 4 })
	if raw, err := json.Marshal(last); err != nil || strings.Contains(string(raw), "canary") {
		t.Errorf("a secret is reported: %s %v", raw, err)
	}
	a.stop()
	a.startWith(protocol.MemberRecord{Drifts: map[api.PlacementKey][]protocol.Drift{key: last.Unusual().Drifts}})
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"), configMap(ns, "two", "a"), secret)})
	a.applied(key, "1")
	noError(t, situation{a, ns, "one"}.edit(ctx, `{"data":{"key":null}}`))
	d := a.awaitDrift(key, "one", "repaired", repaired(2))
	if len(d.Paths) != 1 || d.Paths[0].ValueInHub != "a" || !d.FirstSeen.Equal(last.Unusual().Drifts[0].FirstSeen) {
		t.Errorf("after a restart: %+v", d)
	}
	a.until(key, "without what is not wanted any more", func(w protocol.WorkSeen) bool { return len(w.Unusual().Drifts) == 3 })
}

// Drift that is not reverted is reported with the manager that caused it, until it ends.
func TestStandingDriftIsRecorded(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	w := workOf("web", "1", configMap(ns, "one", "a"))
	w.Strategy.WhenToApply = api.ApplyIfNotDrifted
	a.Set([]*work.Work{w})
	a.applied(key, "1")
	noError(t, situation{a, ns, "one"}.edit(ctx, `{"data":{"key":"tampered"}}`))
	d := a.awaitDrift(key, "one", "standing", func(d protocol.Drift) bool { return d.State == api.DriftStanding })
	if got, want := driftText(d), `one standing, 1 times; /data/key "a"→"tampered" by [kubectl-edit (Update)]`; got != want {
		t.Errorf("reported: %s\nwant: %s", got, want)
	}
	seen := a.until(key, "reported", func(w protocol.WorkSeen) bool { return len(w.Exceptions) == 1 })
	if diffs := seen.Exceptions[0].Diffs; len(diffs) != 1 || len(diffs[0].By) != 1 || diffs[0].By[0].Manager != "kubectl-edit" {
		t.Errorf("the exception: %+v", diffs)
	}
	noError(t, situation{a, ns, "one"}.edit(ctx, `{"data":{"key":"a"}}`))
	a.awaitDrift(key, "one", "ended", func(d protocol.Drift) bool { return d.State == api.DriftEnded || d.State == api.DriftRepaired })
}

func deployment(namespace, name string, replicas int64, notes map[string]any) *work.Manifest {
	labels := map[string]any{"app": name}
	return manifest(fmt.Sprint(name, replicas, notes), map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": namespace, "annotations": notes},
		"spec": map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "registry.example.com/app:1.0"}}},
			},
		},
	})
}

// scale changes the replicas in the name of a field manager, such as that of an autoscaler or
// of a person.
func (a *agent) scale(namespace, name, manager string, replicas int32) {
	a.t.Helper()
	s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	_, err := a.client.AppsV1().Deployments(namespace).UpdateScale(context.Background(), name, s, metav1.UpdateOptions{FieldManager: manager})
	noError(a.t, err)
}

func (a *agent) replicas(namespace, name string) int32 {
	a.t.Helper()
	d, err := a.client.AppsV1().Deployments(namespace).Get(context.Background(), name, metav1.GetOptions{})
	noError(a.t, err)
	return *d.Spec.Replicas
}

// Replicas that an autoscaler sets are left to it and reported with its name. A change of the
// rest of the object keeps them without additional writes. Replicas that a person sets are
// reverted, and so are those of an autoscaler that was removed.
func TestReplicasOfAnAutoscalerAreKept(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	asks := map[string]any{api.IgnoreFieldsAnnotation: "/spec/replicas"}
	a.Set([]*work.Work{workOf("web", "1", deployment(ns, "web", 2, nil), deployment(ns, "manual", 2, nil), deployment(ns, "open", 2, asks))})
	a.until(key, "applied", func(w protocol.WorkSeen) bool { return w.Done && w.Applied() })
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web-scaler"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 9, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "web",
		}},
	}
	scalers := a.client.AutoscalingV2().HorizontalPodAutoscalers(ns)
	_, err := scalers.Create(ctx, hpa, metav1.CreateOptions{})
	noError(t, err)

	for _, n := range []int32{5, 6} {
		a.scale(ns, "web", "kube-controller-manager", n)
		d := a.awaitDrift(key, "web", "contested", func(d protocol.Drift) bool {
			return d.State == api.DriftContested && len(d.Paths) == 1 && d.Paths[0].ValueInMember == fmt.Sprint(n)
		})
		want := fmt.Sprintf("web contested, 1 times; /spec/replicas %q→%q by [kube-controller-manager (Update through scale)]", "2", fmt.Sprint(n))
		if got := driftText(d); got != want || !strings.Contains(d.Message, "the HorizontalPodAutoscaler web-scaler") {
			t.Errorf("reported: %s (%s)\nwant: %s", got, d.Message, want)
		}
	}
	seen := a.until(key, "reported", func(w protocol.WorkSeen) bool { return len(w.Unusual().Drifts) == 1 })
	if got := verdict(seen, "web"); got != `Applied, drift /spec/replicas "2"→"6"` || !seen.Applied() {
		t.Errorf("the object: %s", got)
	}
	if n := a.replicas(ns, "web"); n != 6 {
		t.Errorf("scaled to %d", n)
	}

	// An annotation of the object allows changes of the field, so that nothing is reported.
	a.scale(ns, "open", "kube-controller-manager", 7)
	a.scale(ns, "manual", "kubectl", 8)
	a.eventually("a manual scaling reverted", func() (bool, error) { return a.replicas(ns, "manual") == 2, nil })
	next := deployment(ns, "web", 2, map[string]any{"note": "changed"})
	open := deployment(ns, "open", 2, map[string]any{api.IgnoreFieldsAnnotation: "/spec/replicas", "note": "changed"})
	a.Set([]*work.Work{workOf("web", "2", next, deployment(ns, "manual", 2, nil), open)})
	a.until(key, "applied again", func(w protocol.WorkSeen) bool { return w.Done && w.Revision.Hash == "2" && w.Applied() })
	if web, open := a.replicas(ns, "web"), a.replicas(ns, "open"); web != 6 || open != 7 {
		t.Errorf("a new version scaled to %d and %d", web, open)
	}
	a.awaitDrift(key, "open", "ignored", func(d protocol.Drift) bool { return d.State == api.DriftIgnored })

	noError(t, scalers.Delete(ctx, "web-scaler", metav1.DeleteOptions{}))
	a.eventually("the autoscaler gone", func() (bool, error) {
		_, err := scalers.Get(ctx, "web-scaler", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	last := deployment(ns, "web", 3, map[string]any{"note": "changed again"})
	a.Set([]*work.Work{workOf("web", "3", last, deployment(ns, "manual", 2, nil), open)})
	a.eventually("what it left behind taken back", func() (bool, error) { return a.replicas(ns, "web") == 3, nil })
	a.awaitDrift(key, "web", "ended", func(d protocol.Drift) bool { return d.State == api.DriftEnded })
}

// Taking over a workload with an autoscaler does not scale it.
func TestTakeOverKeepsTheReplicasOfAnAutoscaler(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	for _, name := range []string{"web", "other"} {
		raw, err := json.Marshal(deployment(ns, name, 2, nil).Object.Content.Object)
		noError(t, err)
		_, err = a.client.AppsV1().Deployments(ns).Patch(ctx, name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: "helm", Force: new(true)})
		noError(t, err)
		a.scale(ns, name, "acme-autoscaler", 5)
	}
	a.Set([]*work.Work{workOf("web", "1", deployment(ns, "web", 2, nil), deployment(ns, "other", 2, nil))})
	d := a.awaitDrift(key, "web", "contested", func(d protocol.Drift) bool { return d.State == api.DriftContested })
	if n := a.replicas(ns, "web"); n != 5 || !strings.Contains(d.Message, "acme-autoscaler") {
		t.Errorf("scaled to %d: %s", n, d.Message)
	}
}

// An object that was deleted and created again by somebody else is foreign: the rules of
// takeover apply to it again.
func TestObjectCreatedAgainByOthersIsForeign(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	w := workOf("web", "1", configMap(ns, "one", "a"), configMap(ns, "two", "a"))
	w.Strategy.WhenToTakeOver = api.TakeOverNever
	a.Set([]*work.Work{w})
	a.applied(key, "1")
	a.stop()
	noError(t, a.client.CoreV1().ConfigMaps(ns).Delete(ctx, "one", metav1.DeleteOptions{}))
	noError(t, situation{a, ns, "one"}.create(ctx, "theirs", false))
	a.start()
	a.Set([]*work.Work{w})
	seen := a.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	if got := verdict(seen, "one"); got != api.NotTakenOver {
		t.Errorf("it says %s", got)
	}
	if got := (situation{a, ns, "one"}).outcome(ctx); got != "theirs, not ours" {
		t.Errorf("it is %s", got)
	}
}

// After it was killed and restarted, the daemon still reports reverted drift, and continues to
// count.
func TestDriftRecordsSurviveARestart(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	commit := d.repo.Commit(t, "main", map[string]string{
		"app.yaml":       yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"placement.yaml": yamlPlacement("all", d.name, pickAll),
	})
	d.start()
	d.applied(commit)
	repaired := func(n int) func(*status.Report) bool {
		return func(r *status.Report) bool {
			return slices.ContainsFunc(r.Drifts, func(f status.Drift) bool {
				return f.Placement == "crp/all" && f.Cluster == "member-2" && f.Name == "one" && f.State == api.DriftRepaired && f.Count == n &&
					len(f.By) == 1 && f.By[0].Manager == "tamperer" && len(f.Paths) == 1 && f.Paths[0].ValueInMember == fmt.Sprint("theirs ", n)
			})
		}
	}
	edit := func(value string) {
		t.Helper()
		_, err := d.clients["member-2"].CoreV1().ConfigMaps(d.name).Patch(context.Background(), "one", types.MergePatchType,
			[]byte(`{"data":{"value":"`+value+`"}}`), metav1.PatchOptions{FieldManager: "tamperer"})
		noError(t, err)
	}
	edit("theirs 1")
	d.until("reported", repaired(1))
	d.kill()
	d.start()
	d.until("reported after a restart", repaired(1))
	d.applied(commit)
	edit("theirs 2")
	d.until("counted on", repaired(2))
}
