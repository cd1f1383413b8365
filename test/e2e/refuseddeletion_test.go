package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// protect adds an admission policy to a member that denies deletions of ConfigMaps in the
// test's namespace.
func (d *daemon) protect(member, message string) {
	d.t.Helper()
	ctx, client, meta := context.Background(), d.clients[member].AdmissionregistrationV1(), metav1.ObjectMeta{Name: d.name}
	rules := admission.RuleWithOperations{
		Operations: []admission.OperationType{admission.Delete},
		Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}
	_, err := client.ValidatingAdmissionPolicies().Create(ctx, &admission.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admission.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: rules}}},
		Validations:      []admission.Validation{{Expression: "false", Message: message}},
	}}, metav1.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = client.ValidatingAdmissionPolicyBindings().Create(ctx, &admission.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admission.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: d.name, ValidationActions: []admission.ValidationAction{admission.Deny},
		MatchResources: &admission.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": d.name}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = client.ValidatingAdmissionPolicyBindings().Delete(ctx, d.name, metav1.DeleteOptions{})
		_ = client.ValidatingAdmissionPolicies().Delete(ctx, d.name, metav1.DeleteOptions{})
	})
	d.eventually("deletions are denied", func() bool {
		err := d.clients[member].CoreV1().ConfigMaps(d.name).Delete(ctx, "one", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), message)
	})
}

// finalize sets the finalizers of the ConfigMap one on a member.
func (d *daemon) finalize(member, finalizers string) {
	d.t.Helper()
	_, err := d.clients[member].CoreV1().ConfigMaps(d.name).Patch(context.Background(), "one", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{FieldManager: "theirs"})
	if err != nil {
		d.t.Fatal(err)
	}
}

// An object that is no longer in the repository and that a cluster does not delete, because of
// a missing permission, an admission policy or its finalizers: every output says which object
// it is, where, and why, no matter whether the placement stays or is deleted.
func TestRefusedDeletions(t *testing.T) {
	t.Parallel()
	const policy, finalizer = "nothing is deleted on a Friday", "example.com/backup"
	d := newDaemon(t)
	verbs := []string{"get", "list", "watch", "create", "patch"}
	token := d.account("account", []rbac.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: verbs},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs},
	})
	d.kubeconfigs(func(c *clientcmdapi.Config) {
		for user := range c.AuthInfos {
			c.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
		}
	})
	d.startAt(d.repo.Commit(t, "main", map[string]string{
		"namespace.yaml": yamlNamespace(d.name), "one.yaml": yamlConfigMap(d.name, "one", "a"), "two.yaml": yamlConfigMap(d.name, "two", "a"),
		"web.yaml": yamlPlacement("web", d.name, pickAll),
	}))
	d.protect("member-2", policy)
	d.finalize("member-3", `["`+finalizer+`"]`)
	t.Cleanup(func() { d.finalize("member-3", "null") })
	says := func(when, commit string, reasons ...string) {
		t.Helper()
		d.until("in force", func(r *status.Report) bool { return r.Source.InForce.Hash == commit })
		for _, args := range [][]string{{"status"}, {"tree", "crp/web"}, {"describe", "crp/web"}, {"sync", "crp/web", "--wait", "--timeout", "1s"}} {
			var out string
			for _, want := range reasons {
				for deadline := time.Now().Add(d.timeout); time.Now().Before(deadline); {
					if out, _ = d.cli(args...); strings.Contains(strings.Join(strings.Fields(out), " "), want) {
						break
					}
				}
				if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
					t.Fatalf("%s, gitfleet %s does not say %q:\n%s", when, strings.Join(args, " "), want, out)
				}
			}
			t.Logf("%s, gitfleet %s:\n%s", when, strings.Join(args, " "), out)
		}
	}
	object := "ConfigMap/" + d.name + "/one"
	reasons := []string{
		object + `: configmaps "one" is forbidden: User "system:serviceaccount:default:` + d.name + `-account" cannot delete`,
		object + `: configmaps "one" is forbidden: ValidatingAdmissionPolicy '` + d.name + `' with binding '` + d.name + `' denied request: ` + policy,
		object + " (since ", "; finalizers: " + finalizer + ")",
	}
	says("the placement stays", d.commitAllowing("*", githttp.Change{Remove: []string{"one.yaml"}}), reasons...)
	says("the placement goes", d.commitAllowing("*", githttp.Change{Remove: []string{"web.yaml", "two.yaml", "namespace.yaml"}}), reasons...)
}
