package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"filippo.io/age"
	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/sopsfile"
)

// Values that must not appear in any output: of a Secret in Git, of one that somebody changed
// on a member, of one in an annotation that a tool wrote, and of a ConfigMap that is encrypted in Git.
const (
	canaryInGit    = "canaryInGitQ7wX2"
	canaryEncoded  = "canaryEncodedV9kR4"
	canaryOnMember = "canaryOnMemberZ3pL8"
	canaryKept     = "canaryKeptByKubectlT6mN1"
	canaryNumber   = "7306149025518"
	canaryInSOPS   = "canaryInSOPSH5jD3"
)

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// leakedCanaries returns the canaries that a text contains, plain or encoded.
func leakedCanaries(text string) []string {
	var out []string
	for _, c := range []string{canaryInGit, canaryEncoded, canaryOnMember, canaryKept, canaryNumber, canaryInSOPS} {
		for _, form := range []string{c, encoded(c), encoded(c + "\n"), strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(c)), "=")} {
			if i := strings.Index(text, form); i >= 0 {
				out = append(out, fmt.Sprintf("%s in …%s…", c, text[max(0, i-120):min(len(text), i+60)]))
				break
			}
		}
	}
	return out
}

func yamlSecret(namespace, name string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nstringData: {password: " + canaryInGit + "}\ndata: {token: " + encoded(canaryEncoded) + "}\n"
}

// failingExpression gives a Secret an availability expression that cannot be evaluated without quoting a
// value.
func failingExpression(secret string) string {
	return strings.Replace(secret, "metadata: {", "metadata: {annotations: {"+api.AvailableAnnotation+": int(object.data.token) > 1}, ", 1)
}

// envelopes returns Secrets in envelopes of both kinds, one as exported by kubectl, and an
// override of each.
func envelopes(namespace string) string {
	indented := strings.ReplaceAll(strings.TrimSpace(yamlSecret(namespace, "in-a-config-map")), "\n", "\n    ")
	exported := strings.Replace(yamlSecret(namespace, "exported"), "metadata: {", `metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"password":"`+canaryInGit+`"}}'}, `, 1)
	return strings.Join([]string{
		"apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceEnvelope\nmetadata: {name: env, namespace: " + namespace + "}\n" +
			"data:\n  secret.yaml: {apiVersion: v1, kind: Secret, metadata: {name: in-an-envelope, namespace: " + namespace + "}, stringData: {password: " + canaryInGit + "}}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env, namespace: " + namespace + `, annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}` + "\n" +
			"data:\n  secret.yaml: |\n    " + indented + "\n",
		exported, secretOverride(namespace, "add", "/stringData/added"),
	}, "---\n")
}

// secretOverride returns an override that writes into a Secret of a namespace.
func secretOverride(namespace, op, path string) string {
	return "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceOverride\nmetadata: {name: ro, namespace: " + namespace + "}\n" +
		"spec:\n  resourceSelectors: [{group: \"\", version: v1, kind: Secret, name: s}]\n  policy:\n    overrideRules:\n    - clusterSelector: {}\n" +
		"      jsonPatchOverrides: [{op: " + op + ", path: " + path + ", value: " + canaryInGit + "}]\n"
}

// placementWithStrategy returns a placement of one namespace with an apply strategy.
func placementWithStrategy(name, namespace, strategy string) string {
	return yamlPlacement(name, namespace, only("1")+"  strategy:\n    rollingUpdate: {maxUnavailable: 100%}\n    applyStrategy: {"+strategy+"}\n")
}

// A value in a Secret appears in no output, whatever happens to the Secret: it drifts, differs,
// cannot be taken over, or is refused by an API server that quotes it. All outputs are searched
// for it.
func TestOutputsContainNoSecret(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "age.txt")
	if err := os.WriteFile(keyFile, []byte(key.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, "--log-level", "debug", "--set", "decryption.keyFile="+keyFile)
	ctx, client := context.Background(), d.clients["member-1"]
	drift, look, take, refused, repair, spoilt := d.name+"-drift", d.name+"-look", d.name+"-take", d.name+"-refused", d.name+"-repair", d.name+"-spoilt"
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"password":"` + canaryKept + `"},"data":{"old":"` + encoded(canaryKept) + `"}}`,
			"note": "the password is " + canaryOnMember,
		}},
		StringData: map[string]string{"password": canaryOnMember, "more": canaryOnMember},
	}
	for _, ns := range []string{look, take, refused} {
		if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if ns != refused {
			if _, err := client.CoreV1().Secrets(ns).Create(ctx, theirs, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.quoteSecrets(refused)

	first := d.repo.Commit(t, "main", map[string]string{
		"drift.yaml":  yamlNamespace(drift) + "---\n" + yamlSecret(drift, "s") + "---\n" + placementWithStrategy("drift", drift, "whenToApply: IfNotDrifted"),
		"repair.yaml": yamlNamespace(repair) + "---\n" + failingExpression(yamlSecret(repair, "s")) + "---\n" + envelopes(repair) + "---\n" + placementWithStrategy("repair", repair, ""),
		"sops.yaml":   sopsfile.Encrypt("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: encrypted, namespace: "+repair+"}\ndata: {url: 'https://"+canaryInSOPS+"@db'}\n", "^data$", key.Recipient().String()),
	})
	d.startAt(first)
	// drift that is left alone, and drift that is reverted, both reported
	patch := `{"stringData":{"password":"` + canaryOnMember + `","extra":"` + canaryOnMember + `"},"metadata":{"annotations":{"note":"` + canaryOnMember + `"}}}`
	for _, ns := range []string{drift, repair} {
		if _, err := client.CoreV1().Secrets(ns).Patch(ctx, "s", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
			t.Fatal(err)
		}
	}
	encrypted, err := client.CoreV1().ConfigMaps(repair).Get(ctx, "encrypted", metav1.GetOptions{})
	if err != nil || !strings.Contains(encrypted.Data["url"], canaryInSOPS) {
		t.Errorf("what is encrypted in Git was not applied: %v", err)
	}
	encrypted.Data["url"] = canaryOnMember
	if _, err := client.CoreV1().ConfigMaps(repair).Update(ctx, encrypted, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	commit := d.repo.Commit(t, "main", map[string]string{
		"spoilt.yaml":  yamlNamespace(spoilt) + "---\n" + yamlSecret(spoilt, "s") + "---\n" + secretOverride(spoilt, "replace", "/stringData/none/of/that") + "---\n" + placementWithStrategy("spoilt", spoilt, ""),
		"look.yaml":    yamlNamespace(look) + "---\n" + yamlSecret(look, "s") + "---\n" + placementWithStrategy("look", look, "type: ReportDiff, comparisonOption: FullComparison"),
		"take.yaml":    yamlNamespace(take) + "---\n" + yamlSecret(take, "s") + "---\n" + placementWithStrategy("take", take, "whenToTakeOver: IfNoDiff"),
		"refused.yaml": yamlNamespace(refused) + "---\n" + yamlSecret(refused, "denied") + "---\n" + placementWithStrategy("refused", refused, ""),
	})
	r := d.until("all problems reported", func(r *status.Report) bool {
		told := map[string]bool{}
		for _, p := range r.Placements {
			told["spoilt"] = told["spoilt"] || p.Name == "spoilt" && conditionStatus(p.Status.Conditions, api.PlacementPrefix+api.Overridden) == metav1.ConditionFalse
			for _, c := range p.Status.PlacementStatuses {
				for _, o := range c.DriftedPlacements {
					told["drifted "+p.Name] = len(o.ObservedDrifts) > 0
				}
				for _, o := range c.DiffedPlacements {
					told["differs "+p.Name] = len(o.ObservedDiffs) > 1
				}
				for _, o := range c.FailedPlacements {
					told[o.Name+" "+o.Condition.Reason] = true
				}
			}
		}
		for _, f := range r.Drifts {
			told[f.Placement+" "+string(f.State)] = len(f.Paths) > 0
		}
		return r.Source.InForce.Hash == commit && told["spoilt"] && told["crp/repair repaired"] && told["crp/take foreign"] && told["s "+api.ManifestNotAvailableYet] && told["drifted drift"] && told["differs look"] && told["differs take"] &&
			told["s FoundDrifts"] && told["s FailedToTakeOver"] && told["denied ManifestApplyFailed"]
	})
	for _, p := range r.Placements {
		for _, c := range p.Status.PlacementStatuses {
			for _, o := range c.FailedPlacements {
				if p.Name == "refused" && !strings.Contains(o.Condition.Message, diff.Mask) {
					t.Errorf("%s: the mask is missing, so the server may have quoted nothing: %s", o.Name, o.Condition.Message)
				}
			}
		}
	}

	commands := []string{
		"get crp", "get crp -o wide", "get crp -o json", "get crp -o yaml", "get crp refused -o yaml", "get clusters -o wide", "get clusters -o yaml",
		"describe crp repair", "describe crp take", "describe crp spoilt", "explain crp/spoilt", "describe cluster member-1", "tree crp/repair", "tree crp/take -o json",
		"drift list", "drift list -o wide", "drift list -o json", "drift show crp/repair", "drift show crp/drift", "drift show crp/take -o json",
		"proposals list", "proposals list -o json", "proposals show 0", "proposals close 0", "proposals open 0",
		"drift adopt secret/s -n " + drift + " --cluster member-1 --write CHECKOUT",
		"history", "history crp/repair", "history -o json", "history --export", "events", "events -o json", "status", "status -o json",
		"explain crp/refused", "explain crp/take member-1 -o json", "explain crp/take --path CHECKOUT",
		"trace secret/s -n " + repair + " --cluster member-1", "trace secret/s -n " + drift + " --cluster member-1 -o json",
		"plan CHECKOUT", "plan CHECKOUT -o json", "plan CHECKOUT --current PLAN", "render CHECKOUT", "diff --config CONFIG", "diff --config CONFIG -o json",
		"diff --config CONFIG --path CHECKOUT", "validate CHECKOUT", "validate CHECKOUT -o json", "validate CHECKOUT -o sarif", "validate CHECKOUT -o github",
		"suspend secret/s -n " + drift + " --cluster member-1 --reason looking", "resume secret/s -n " + drift + " --cluster member-1",
		"freeze crp/look --reason looking", "unfreeze crp/look", "approve crp/look --stage canary", "evict crp/look nowhere --reason looking", "drain nowhere --reason looking", "uncordon member-1", "lock CHECKOUT",
		"wait crp/refused --for=applied --timeout 1s", "sync crp/refused --wait --timeout 3s", "rollback crp/repair --to " + first + " --path CHECKOUT --author AUTHOR",
		"adopt-fleet", "state export", "bugreport --config CONFIG --file SCRATCH", "kubeconfig", "version", "member rbac CHECKOUT", "doctor --config CONFIG", "doctor --config CONFIG -o json",
	}
	if forgotten := d.unchecked(commands); len(forgotten) > 0 {
		t.Errorf("the output of these commands is not checked: %v", forgotten)
	}
	outputs := d.outputs(commands...)
	for name, text := range outputs {
		if len(text) == 0 {
			t.Errorf("%s: empty", name)
		}
		for _, canary := range leakedCanaries(text) {
			t.Errorf("%s contains %s", name, canary)
		}
		if strings.Contains(text, key.String()) {
			t.Errorf("%s contains the key", name)
		}
	}
	for _, name := range []string{"gitfleet drift show crp/repair", "gitfleet drift show crp/drift"} {
		if text := outputs[name]; !strings.Contains(text, diff.Mask) || !strings.Contains(text, "kubectl-edit") {
			t.Errorf("%s does not tell of the Secret:\n%s", name, text)
		}
	}
	for _, name := range []string{"gitfleet diff --config CONFIG", "gitfleet render CHECKOUT"} {
		if !strings.Contains(outputs[name], diff.Mask) {
			t.Errorf("%s masks nothing, so it does not tell of the Secrets at all:\n%s", name, outputs[name])
		}
	}
	for _, name := range []string{secretsServed, "gitfleet bugreport --config CONFIG --file SCRATCH", "gitfleet state export", "gitfleet history --export", "the state directory"} {
		if !strings.Contains(outputs[name], repair) {
			t.Errorf("%s does not tell of the objects at all", name)
		}
	}
	if !strings.Contains(outputs["/report"], diff.Mask) {
		t.Error("the report masks nothing: it does not tell of the Secrets at all")
	}

	// A commit that does not load is not quoted either, whatever is wrong with it.
	broken := map[string]string{}
	for i, text := range []string{
		"data: {pin: " + canaryNumber + "}", "stringData: [" + canaryInGit + "]", "stringData: {password: " + canaryInGit,
		"data: {password: " + canaryInGit + "!}", "bogus: " + canaryInGit, "stringData: {password: *" + canaryInGit + "}",
		"stringData: {password: !" + canaryInGit + " x}", "stringData: {password " + canaryInGit + "}", "stringData: password " + canaryInGit,
		"stringData:\n  password: x\n " + canaryInGit + ": y", "stringData: {password: " + canaryInGit + ", password: " + canaryInGit + "}",
		"type: {" + canaryInGit + ": x}", "immutable: " + canaryInGit, "stringData: {password: &a [*a, " + canaryInGit + "]}",
	} {
		broken[fmt.Sprintf("bad-%02d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: bad-%d, namespace: %s}\n%s\n", i, look, text)
	}
	bad := d.repo.Commit(t, "main", broken)
	r = d.until("refused", func(r *status.Report) bool { return r.Source.Newest.Hash == bad && len(r.Source.Problems) > 0 })
	if len(r.Source.Problems) < 10 {
		t.Errorf("only %d problems: %v", len(r.Source.Problems), r.Source.Problems)
	}
	told := d.outputs("get crp", "status", "plan CHECKOUT", "validate CHECKOUT", "validate CHECKOUT -o json", "render CHECKOUT", "diff --config CONFIG", "diff --config CONFIG --path CHECKOUT", "history")
	d.end(syscall.SIGQUIT, "exit status 2") // a crash: Go prints the stacks of all goroutines
	log, err := os.ReadFile(d.log.Name())
	if err != nil || !bytes.Contains(log, []byte("goroutine ")) {
		t.Errorf("it did not crash: %v", err)
	}
	told["the log of a crash"] = string(log)
	for name, text := range told {
		for _, canary := range leakedCanaries(text) {
			t.Errorf("with a broken commit %s contains %s", name, canary)
		}
	}
}

// Responses of an API server that quote a Secret are not repeated: about a field of the wrong
// type, or with any other message.
func TestSecretQuotedByTheServerIsMasked(t *testing.T) {
	t.Parallel()
	var log lines
	a, f := newFaulty(t, func(cfg *member.Config) {
		cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	ns := a.makeNamespace()
	secret := func(name string, fields map[string]any) *work.Manifest {
		o := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": ns}}
		maps.Copy(o, fields)
		return manifest("secret", o)
	}
	fine := map[string]any{"stringData": map[string]any{"password": canaryInGit}, "data": map[string]any{"token": encoded(canaryEncoded)}}
	quoting := map[string]string{
		"plain":  `Secret "x" is invalid: data: Invalid value: "` + canaryInGit + `"`,
		"base64": `Secret "x" is invalid: data: Invalid value: map[string][]byte{"token": "` + encoded(canaryEncoded) + `"}`,
		"json":   `cannot parse {\"stringData\":{\"password\":\"` + canaryInGit + `\",\"token\":\"` + encoded(canaryEncoded) + `\"}}`,
	}
	w := workOf("web", "1", secret("number", map[string]any{"data": map[string]any{"pin": int64(7306149025518)}}), secret("nested", map[string]any{"data": map[string]any{"a": map[string]any{"b": canaryInGit}}}))
	for name, text := range quoting {
		f.set(name, fault{writesOf(name), refusing(422, metav1.StatusReasonInvalid, text)})
		w.Manifests = append(w.Manifests, secret(name, fine))
	}
	// Each strategy can fail in its own way.
	var all []*work.Work
	for name, strategy := range map[string]api.ApplyStrategy{
		"always": {}, "if-no-diff": {WhenToTakeOver: api.TakeOverIfNoDiff}, "report": {Type: api.ReportDiff}, "full": {ComparisonOption: api.FullComparison},
	} {
		v := &work.Work{Placement: api.PlacementKey{Name: name}, Revision: w.Revision, Strategy: strategy}
		for _, m := range w.Manifests {
			o := m.Object.Content.DeepCopy()
			o.SetName(name + "-" + o.GetName())
			v.Manifests = append(v.Manifests, manifest("secret", o.Object))
			if text := quoting[m.ID.Name]; text != "" {
				f.set(o.GetName(), fault{func(r *http.Request) bool {
					return strings.HasSuffix(r.URL.Path, "/"+o.GetName()) && r.Method != http.MethodGet
				}, refusing(422, metav1.StatusReasonInvalid, text)})
			}
			if name != "always" { // a foreign object exists, so that it is compared
				theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: o.GetName()}, StringData: map[string]string{"password": canaryOnMember}}
				if _, err := a.client.CoreV1().Secrets(ns).Create(context.Background(), theirs, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		all = append(all, v)
	}
	a.Set(all)
	for _, v := range all {
		seen := a.until(v.Placement, "tried", func(w protocol.WorkSeen) bool { return w.Done })
		if len(seen.Exceptions) == 0 {
			t.Errorf("%s: nothing failed", v.Placement)
		}
		text, err := json.Marshal(seen)
		if err != nil {
			t.Fatal(err)
		}
		for _, canary := range leakedCanaries(string(text)) {
			t.Errorf("%s: the report contains %s", v.Placement, canary)
		}
	}
	a.stop()
	for _, canary := range leakedCanaries(log.String()) {
		t.Errorf("the log contains %s", canary)
	}
	if !strings.Contains(log.String(), diff.Mask) {
		t.Error("nothing was masked in the log: the server was not quoted at all")
	}
}

// lines is a log that several goroutines write to.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// quoteSecrets makes the API server of the first member refuse Secrets of a namespace, with a
// message that quotes them.
func (d *daemon) quoteSecrets(ns string) {
	d.t.Helper()
	ctx, client, meta := context.Background(), d.clients["member-1"], metav1.ObjectMeta{Name: ns}
	policies, bindings := client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	_, err := policies.Create(ctx, &admission.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admission.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
			Operations: []admission.OperationType{admission.Create, admission.Update},
			Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
		}}}},
		Validations: []admission.Validation{{Expression: "false", Message: "no", MessageExpression: "'it holds ' + string(object.data['password']) + ' and ' + string(object.data['token'])"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = bindings.Create(ctx, &admission.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admission.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: ns, ValidationActions: []admission.ValidationAction{admission.Deny},
		MatchResources: &admission.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = bindings.Delete(ctx, ns, metav1.DeleteOptions{})
		_ = policies.Delete(ctx, ns, metav1.DeleteOptions{})
	})
	var last error
	defer func() {
		if d.t.Failed() {
			d.t.Logf("the last answer: %v", last)
		}
	}()
	d.eventually("refusing Secrets", func() bool {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}, StringData: map[string]string{"password": "open", "token": "sesame"}}
		_, err := client.CoreV1().Secrets(ns).Create(ctx, s, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		last = err
		return err != nil && strings.Contains(err.Error(), "it holds "+encoded("open"))
	})
}

// checkout returns the head of the repository as files.
func (d *daemon) checkout() string {
	d.t.Helper()
	dir := d.t.TempDir()
	if _, err := githttp.Git(dir, "clone", "--quiet", d.repo.Dir, "."); err != nil {
		d.t.Fatal(err)
	}
	return dir
}
