package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// applyAsGitfleet applies an object with one changed value, under gitfleet's own field manager: the
// ownership of fields stays the same.
func (a *agent) applyAsGitfleet(m *work.Manifest, value any, path ...string) {
	a.t.Helper()
	ctx := context.Background()
	dynamics, err := dynamic.NewForConfig(a.config)
	noError(a.t, err)
	gvk := m.Object.Content.GroupVersionKind()
	plural := strings.ToLower(gvk.Kind) + "s"
	objects := dynamics.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural}).Namespace(m.ID.Namespace)
	live, err := objects.Get(ctx, m.ID.Name, metav1.GetOptions{})
	noError(a.t, err)
	o := m.Object.Content.DeepCopy()
	o.SetLabels(live.GetLabels())
	o.SetAnnotations(live.GetAnnotations())
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	noError(a.t, unstructured.SetNestedField(o.Object, value, path...))
	raw, err := json.Marshal(o.Object)
	noError(a.t, err)
	_, err = objects.Patch(ctx, m.ID.Name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: api.FieldManager, Force: new(true)})
	noError(a.t, err)
}

// An apply under gitfleet's own field manager changes values without changing their ownership.
// It is reverted nevertheless, and recorded; a change that a restart missed is reverted at
// gitfleet sync.
func TestApplyWithGitfleetsFieldManagerIsDrift(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(cfg *member.Config) { cfg.Sweep = time.Hour })
	ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
	one, two, web := configMap(ns, "one", "a"), configMap(ns, "two", "a"), deployment(ns, "web", 1, nil)
	w := workOf("web", "1", one, two, web)
	a.Set([]*work.Work{w})
	a.allApplied(key, "1")
	repaired := func(d protocol.Drift) bool { return d.State == api.DriftRepaired && d.Count == 1 }

	a.applyAsGitfleet(one, "tampered", "data", "key")
	d := a.awaitDrift(key, "one", "repaired", repaired)
	if got, want := driftText(d), `one repaired, 1 times; /data/key "a"→"tampered" by [gitfleet (Apply)]`; got != want {
		t.Errorf("reported: %s\nwant: %s", got, want)
	}
	if cm, err := a.get(ns, "one"); err != nil || cm.Data["key"] != "a" {
		t.Errorf("it is %v, %v", cm.Data, err)
	}
	a.applyAsGitfleet(web, int64(3), "spec", "replicas")
	d = a.awaitDrift(key, "web", "repaired", repaired)
	if got, want := driftText(d), `web repaired, 1 times; /spec/replicas "1"→"3" by [gitfleet (Apply)]`; got != want {
		t.Errorf("reported: %s\nwant: %s", got, want)
	}

	a.stop()
	a.applyAsGitfleet(two, "tampered", "data", "key")
	a.start()
	a.Set([]*work.Work{w})
	a.allApplied(key, "1")
	a.Check()
	a.awaitDrift(key, "two", "repaired", repaired)
}

// allApplied waits until all objects are applied, whether or not they are available.
func (a *agent) allApplied(p api.PlacementKey, hash string) {
	a.t.Helper()
	a.until(p, "applied at "+hash, func(w protocol.WorkSeen) bool { return w.Revision.Hash == hash && w.Done && w.Applied() })
}

// mutate has the API server itself change a value of ConfigMaps whose name begins with
// "mutated" in every write, and returns a function that ends that.
func (a *agent) mutate(ns, to string) (end func()) {
	a.t.Helper()
	ctx, name := context.Background(), ns+"-"+to
	policies := a.client.AdmissionregistrationV1().MutatingAdmissionPolicies()
	bindings := a.client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	equivalent, fail := admissionregistrationv1.Equivalent, admissionregistrationv1.Fail
	_, err := policies.Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
				MatchPolicy:       &equivalent,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "name", Expression: `object.metadata.name.startsWith("mutated")`}},
			FailurePolicy:   &fail, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(`[JSONPatch{op: "replace", path: "/data/key", value: %q}]`, to)},
			}},
		},
	}, metav1.CreateOptions{})
	noError(a.t, err)
	_, err = bindings.Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}, metav1.CreateOptions{})
	noError(a.t, err)
	try := func() string {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mutated-probe"}, Data: map[string]string{"key": "as sent"}}
		made, err := a.client.CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err.Error()
		}
		return made.Data["key"]
	}
	a.eventually("mutating", func() (bool, error) { return try() == to, fmt.Errorf("stored %q", try()) })
	end = func() {
		_ = bindings.Delete(ctx, name, metav1.DeleteOptions{})
		_ = policies.Delete(ctx, name, metav1.DeleteOptions{})
		a.eventually("not mutating any more", func() (bool, error) { return try() == "as sent", fmt.Errorf("stored %q", try()) })
	}
	a.t.Cleanup(end)
	return end
}

// A mutation by the cluster at every apply is reported as such: it is neither reverted nor
// reported as drift, and once it ends the manifest is applied.
func TestFieldsChangedByAWebhookAreReported(t *testing.T) {
	t.Parallel()
	metrics := member.NewMetrics()
	a := newAgent(t, func(cfg *member.Config) { cfg.Sweep, cfg.Metrics = time.Hour, metrics })
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	end := a.mutate(ns, "mutant")
	w := workOf("web", "1", configMap(ns, "mutated", "a"), configMap(ns, "mutated-later", "a"), configMap(ns, "fence", "a"))
	a.Set([]*work.Work{w})
	a.allApplied(key, "1")
	altered := func(d protocol.Drift) bool { return d.State == api.DriftAltered }
	d := a.awaitDrift(key, "mutated", "altered", altered)
	if got, want := driftText(d), `mutated altered, 0 times; /data/key "a"→"mutant" by []`; got != want || !strings.Contains(d.Message, "webhook") {
		t.Errorf("reported: %s (%s)\nwant: %s", got, d.Message, want)
	}

	// Others write to it, and a user asks for a sync: there is nothing to do.
	a.sent.Reset()
	label := func(name, value string) {
		t.Helper()
		_, err := a.client.CoreV1().ConfigMaps(ns).Patch(ctx, name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"theirs":"`+value+`"}}}`), metav1.PatchOptions{FieldManager: "kubectl-label"})
		noError(t, err)
	}
	label("mutated", "1")
	a.Check()
	label("mutated", "2")
	fence := func(n int) {
		t.Helper()
		noError(t, situation{a, ns, "fence"}.edit(ctx, `{"data":{"key":"tampered"}}`))
		a.awaitDrift(key, "fence", "repaired", func(d protocol.Drift) bool { return d.State == api.DriftRepaired && d.Count == n })
	}
	fence(1)
	if objects, _ := split(a.writes()); len(objects) != 1 || !strings.HasSuffix(objects[0], "/fence") {
		t.Errorf("it fights what the cluster does: %v", objects)
	}
	a.awaitDrift(key, "mutated", "altered still", altered)

	// After a restart the mutation is detected again.
	a.stop()
	a.start()
	a.Set([]*work.Work{w})
	a.allApplied(key, "1")
	a.Check()
	a.awaitDrift(key, "mutated", "altered", altered)
	if objects, _ := split(a.writes()); len(objects) > 0 {
		t.Errorf("it writes: %v", objects)
	}

	end()
	a.Check()
	a.awaitDrift(key, "mutated", "repaired", func(d protocol.Drift) bool { return d.State == api.DriftRepaired })
	if cm, err := a.get(ns, "mutated"); err != nil || cm.Data["key"] != "a" {
		t.Errorf("it is %v, %v", cm.Data, err)
	}
}

// A mutating policy that is added later changes applied values when another client updates the
// object. It would mutate gitfleet's apply too, so the difference is reported and the object is
// not applied again and again.
func TestFieldsMutatedDuringOtherWritesAreReported(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(cfg *member.Config) { cfg.Sweep = time.Hour })
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "mutated", "a"))})
	a.allApplied(key, "1")
	a.mutate(ns, "mutant")
	a.sent.Reset()
	_, err := a.client.CoreV1().ConfigMaps(ns).Patch(ctx, "mutated", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"theirs":"1"}}}`), metav1.PatchOptions{FieldManager: "kubectl-label"})
	noError(t, err)
	a.awaitDrift(key, "mutated", "altered", func(d protocol.Drift) bool { return d.State == api.DriftAltered })
	if got := a.writes(); len(got) > 0 {
		t.Errorf("it writes: %v", got)
	}
}
