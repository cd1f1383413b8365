package e2e

import (
	"context"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// guard adds a policy that denies ConfigMaps of a namespace whose key is "forbidden", and a
// webhook, whose server does not exist, for all with a certain label.
func (a *agent) guard(ns string) {
	a.t.Helper()
	ctx := context.Background()
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}}
	rules := admission.RuleWithOperations{
		Operations: []admission.OperationType{admission.Create, admission.Update},
		Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}
	policies, bindings := a.client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), a.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	webhooks := a.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	meta := metav1.ObjectMeta{Name: ns}
	_, err := policies.Create(ctx, &admission.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admission.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: rules}}},
		Validations:      []admission.Validation{{Expression: "!has(object.data) || !('key' in object.data) || object.data.key != 'forbidden'", Message: "the key may not be that"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	_, err = bindings.Create(ctx, &admission.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admission.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: ns, ValidationActions: []admission.ValidationAction{admission.Deny}, MatchResources: &admission.MatchResources{NamespaceSelector: here},
	}}, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	_, err = webhooks.Create(ctx, &admission.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admission.ValidatingWebhook{{
		Name: "policy.example.com", ClientConfig: admission.WebhookClientConfig{URL: new("https://127.0.0.1:1/")}, Rules: []admission.RuleWithOperations{rules},
		NamespaceSelector: here, ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}},
		FailurePolicy: new(admission.Fail), SideEffects: new(admission.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(1)),
	}}}, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = bindings.Delete(ctx, ns, metav1.DeleteOptions{})
		_ = policies.Delete(ctx, ns, metav1.DeleteOptions{})
		_ = webhooks.Delete(ctx, ns, metav1.DeleteOptions{})
	})
	try := func(cm *corev1.ConfigMap) error {
		_, err := a.client.CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	a.eventually("guarded", func() (bool, error) {
		return try(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{"key": "forbidden"}}) != nil &&
			try(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"guarded": "yes"}}}) != nil, nil
	})
}

// Refusals of a real API server are reported with its message, object by object, and the
// objects are applied once the cause is gone.
func TestRefusalsOfTheAPIServerAreReported(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := a.makeNamespace(), api.PlacementKey{Name: "web"}, context.Background()
	full := a.makeNamespace()
	a.guard(ns)
	quota, err := a.client.CoreV1().ResourceQuotas(full).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"configmaps": resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	limit := func(n string) { // as the quota controller would do
		quota.Status = corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"configmaps": resource.MustParse(n)}, Used: corev1.ResourceList{"configmaps": resource.MustParse("1")}}
		if quota, err = a.client.CoreV1().ResourceQuotas(full).UpdateStatus(ctx, quota, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	limit("1")
	fixed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "immutable"}, Data: map[string]string{"key": "fixed"}, Immutable: new(true)}
	if _, err := a.client.CoreV1().ConfigMaps(ns).Create(ctx, fixed, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	large := func(name string, size int) *work.Manifest {
		m := configMap(ns, name, "a")
		m.Object.Content.Object["data"] = map[string]any{"key": strings.Repeat("x", size)}
		return m
	}
	guarded := configMap(ns, "guarded", "a")
	guarded.Object.Content.SetLabels(map[string]string{"guarded": "yes"})
	typo := configMap(ns, "typo", "a")
	typo.Object.Content.Object["bogus"] = map[string]any{"key": "x"}
	wrong := configMap(ns, "wrong-type", "a")
	wrong.Object.Content.Object["data"] = map[string]any{"key": int64(1)}
	tests := map[string]struct {
		object *work.Manifest
		want   string // in the message
		mend   func() error
	}{
		"immutable": {configMap(ns, "immutable", "a"), "field is immutable when `immutable` is set", func() error {
			return a.client.CoreV1().ConfigMaps(ns).Delete(ctx, "immutable", metav1.DeleteOptions{})
		}},
		"quota": {configMap(full, "quota", "a"), "exceeded quota: small, requested: configmaps=1, used: configmaps=1, limited: configmaps=1", func() error {
			limit("9")
			return nil
		}},
		"policy": {configMap(ns, "policy", "forbidden"), "denied request: the key may not be that", func() error {
			return a.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, ns, metav1.DeleteOptions{})
		}},
		"guarded": {guarded, `failed calling webhook "policy.example.com"`, func() error {
			return a.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, ns, metav1.DeleteOptions{})
		}},
		"large":      {large("large", 1<<20+1), "may not be more than 1048576 bytes", nil},
		"very-large": {large("very-large", 4<<20), "Request entity too large: limit is 3145728", nil},
		"typo":       {typo, ".bogus: field not declared in schema", nil},
		"wrong-type": {wrong, ".data.key: expected string", nil},
	}
	w := workOf("web", "1", configMap(ns, "fine", "a"))
	for _, test := range tests {
		w.Manifests = append(w.Manifests, test.object)
	}
	a.Set([]*work.Work{w})
	got := a.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	for name, test := range tests {
		v := verdictOf(got, name)
		if v.OK || v.Reason != api.ManifestApplyFailed || !strings.Contains(v.Message(), test.want) {
			t.Errorf("%s: %t %s: %s\nwant: %s", name, v.OK, v.Reason, v.Message(), test.want)
		}
		if len(v.Message()) > 2000 {
			t.Errorf("%s: the message has %d characters", name, len(v.Message()))
		}
	}
	if len(got.Exceptions) != len(tests) {
		t.Errorf("%d objects failed, want %d", len(got.Exceptions), len(tests))
	}
	for name, test := range tests {
		if test.mend != nil {
			if err := test.mend(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	a.until(key, "fixed", func(w protocol.WorkSeen) bool {
		for name, test := range tests {
			if test.mend != nil && !verdictOf(w, name).OK {
				return false
			}
		}
		return true
	})
	if cm, err := a.get(ns, "immutable"); err != nil || cm.Data["key"] != "a" {
		t.Errorf("immutable: %v, %v", cm, err)
	}
}

// A long message of a server is cut: a status is for people, and goes to everybody who reads
// it.
func TestLongMessagesAreTruncated(t *testing.T) {
	t.Parallel()
	a, f := newFaulty(t)
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	f.set("long", fault{writesOf("one"), refusing(422, metav1.StatusReasonInvalid, "it is all wrong: "+strings.Repeat("wrong ", 100_000))})
	a.Set([]*work.Work{workOf("web", "1", namespaceOf(ns), configMap(ns, "one", "a"))})
	w := a.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	if got := verdictOf(w, "one"); !strings.Contains(got.Message(), "it is all wrong: wrong") || len(got.Message()) > 10_000 {
		t.Errorf("%d characters: %.200s", len(got.Message()), got.Message())
	}
}
