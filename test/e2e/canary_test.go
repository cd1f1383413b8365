package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// Values that must be seen nowhere: what Git says, what somebody put on a member,
// and what a tool kept there.
const (
	canaryInGit    = "canaryInGitQ7wX2"
	canaryEncoded  = "canaryEncodedV9kR4"
	canaryOnMember = "canaryOnMemberZ3pL8"
	canaryKept     = "canaryKeptByKubectlT6mN1"
	canaryNumber   = "7306149025518"
)

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// sings returns the canaries that a text tells, plain or encoded.
func sings(text string) []string {
	var out []string
	for _, c := range []string{canaryInGit, canaryEncoded, canaryOnMember, canaryKept, canaryNumber} {
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

// asking has a Secret say by an expression whether it is available: one that
// cannot be answered without quoting a value.
func asking(secret string) string {
	return strings.Replace(secret, "metadata: {", "metadata: {annotations: {"+api.AvailableAnnotation+": int(object.data.token) > 1}, ", 1)
}

// strategic is a placement of one namespace with an apply strategy.
func strategic(name, namespace, strategy string) string {
	return yamlPlacement(name, namespace, only("1")+"  strategy:\n    rollingUpdate: {maxUnavailable: 100%}\n    applyStrategy: {"+strategy+"}\n")
}

// A value planted in a Secret is told nowhere, whatever becomes of the Secret: it
// drifts, differs, cannot be taken over, or is refused by an API server whose
// answer quotes it. Every output there is, is searched for it.
func TestNoOutputTellsASecret(t *testing.T) {
	d := newDaemon(t, "--log-level", "debug")
	ctx, client := context.Background(), d.clients["member-1"]
	drift, look, take, refused, repair := d.name+"-drift", d.name+"-look", d.name+"-take", d.name+"-refused", d.name+"-repair"
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

	d.startAt(d.repo.Commit(t, "main", map[string]string{
		"drift.yaml":  yamlNamespace(drift) + "---\n" + yamlSecret(drift, "s") + "---\n" + strategic("drift", drift, "whenToApply: IfNotDrifted"),
		"repair.yaml": yamlNamespace(repair) + "---\n" + asking(yamlSecret(repair, "s")) + "---\n" + strategic("repair", repair, ""),
	}))
	// drifted: not put back, or put back, and told.
	patch := `{"stringData":{"password":"` + canaryOnMember + `","extra":"` + canaryOnMember + `"},"metadata":{"annotations":{"note":"` + canaryOnMember + `"}}}`
	for _, ns := range []string{drift, repair} {
		if _, err := client.CoreV1().Secrets(ns).Patch(ctx, "s", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
			t.Fatal(err)
		}
	}
	commit := d.repo.Commit(t, "main", map[string]string{
		"look.yaml":    yamlNamespace(look) + "---\n" + yamlSecret(look, "s") + "---\n" + strategic("look", look, "type: ReportDiff, comparisonOption: FullComparison"),
		"take.yaml":    yamlNamespace(take) + "---\n" + yamlSecret(take, "s") + "---\n" + strategic("take", take, "whenToTakeOver: IfNoDiff"),
		"refused.yaml": yamlNamespace(refused) + "---\n" + yamlSecret(refused, "denied") + "---\n" + strategic("refused", refused, ""),
	})
	r := d.until("told what is wrong with each", func(r *status.Report) bool {
		told := map[string]bool{}
		for _, p := range r.Placements {
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
		return r.Source.InForce.Hash == commit && told["crp/repair repaired"] && told["crp/take foreign"] && told["s "+api.ManifestNotAvailableYet] && told["drifted drift"] && told["differs look"] && told["differs take"] &&
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

	outputs := d.outputs([]string{"get", "crp"}, []string{"get", "crp", "-o", "wide"}, []string{"get", "crp", "-o", "json"}, []string{"get", "crp", "-o", "yaml"},
		[]string{"get", "crp", "refused", "-o", "yaml"}, []string{"get", "clusters", "-o", "wide"}, []string{"get", "clusters", "-o", "yaml"},
		[]string{"drift", "list"}, []string{"drift", "show", "crp/repair"}, []string{"drift", "show", "crp/drift"}, []string{"history"}, []string{"events"},
		[]string{"status"}, []string{"tree", "crp/repair"}, []string{"describe", "crp", "repair"}, []string{"describe", "crp", "take"},
		[]string{"plan"}, []string{"plan", "-o", "json"}, []string{"validate"})
	for name, text := range outputs {
		if len(text) == 0 {
			t.Errorf("%s: empty", name)
		}
		for _, canary := range sings(text) {
			t.Errorf("%s tells %s", name, canary)
		}
	}
	for _, name := range []string{"gitfleet drift show crp/repair", "gitfleet drift show crp/drift"} {
		if text := outputs[name+" --server http://"+d.address]; !strings.Contains(text, diff.Mask) || !strings.Contains(text, "kubectl-edit") {
			t.Errorf("%s does not tell of the Secret:\n%s", name, text)
		}
	}
	if !strings.Contains(outputs["/report"], diff.Mask) {
		t.Error("the report masks nothing: it does not tell of the Secrets at all")
	}

	// Nor is a commit quoted that does not load, whatever is wrong with it.
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
	for name, text := range d.outputs([]string{"get", "crp"}, []string{"plan"}, []string{"validate"}) {
		for _, canary := range sings(text) {
			t.Errorf("of a broken commit %s tells %s", name, canary)
		}
	}
}

// Nor is an API server quoted that tells what is in a Secret: in a field of the
// wrong type, or in whatever words it has.
func TestServerThatQuotesASecret(t *testing.T) {
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
	// Each way to decide about an object has its own way to fail.
	var all []work.Work
	for name, strategy := range map[string]api.ApplyStrategy{
		"always": {}, "if-no-diff": {WhenToTakeOver: api.TakeOverIfNoDiff}, "report": {Type: api.ReportDiff}, "full": {ComparisonOption: api.FullComparison},
	} {
		v := work.Work{Placement: api.PlacementKey{Name: name}, Revision: w.Revision, Strategy: strategy}
		for _, m := range w.Manifests {
			o := m.Object.Object.DeepCopy()
			o.SetName(name + "-" + o.GetName())
			v.Manifests = append(v.Manifests, manifest("secret", o.Object))
			if text := quoting[m.ID.Name]; text != "" {
				f.set(o.GetName(), fault{func(r *http.Request) bool {
					return strings.HasSuffix(r.URL.Path, "/"+o.GetName()) && r.Method != http.MethodGet
				}, refusing(422, metav1.StatusReasonInvalid, text)})
			}
			if name != "always" { // somebody's is there, so that it is compared
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
		seen := a.until(v.Placement, "tried", func(w ledger.WorkSeen) bool { return w.Done })
		if len(seen.Exceptions) == 0 {
			t.Errorf("%s: nothing failed", v.Placement)
		}
		text, err := json.Marshal(seen)
		if err != nil {
			t.Fatal(err)
		}
		for _, canary := range sings(string(text)) {
			t.Errorf("%s: the report tells %s", v.Placement, canary)
		}
	}
	a.stop()
	for _, canary := range sings(log.String()) {
		t.Errorf("the log tells %s", canary)
	}
	if !strings.Contains(log.String(), diff.Mask) {
		t.Error("nothing was masked in the log: the server was not quoted at all")
	}
}

// lines is a log that several goroutines write.
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

// quoteSecrets makes the API server of the first member refuse Secrets of a
// namespace, and say what is in them.
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

// outputs is everything that the daemon tells anybody, and what some commands
// print: those that get something ask it, the others look at a checkout.
func (d *daemon) outputs(commands ...[]string) map[string]string {
	d.t.Helper()
	out := map[string]string{}
	for _, path := range []string{"/report", "/metrics", "/explain?placement=crp/drift", "/explain?placement=crp/refused&cluster=member-1"} {
		resp, err := http.Get("http://" + d.address + path)
		if err != nil {
			d.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			d.t.Fatal(err)
		}
		out[path] = string(text)
	}
	checkout := d.checkout()
	for _, args := range commands {
		if !slices.Contains([]string{"plan", "validate"}, args[0]) {
			args = append(args, "--server", "http://"+d.address)
		} else {
			args = append(args, checkout)
		}
		out["gitfleet "+strings.Join(args, " ")] = d.gitfleet(args...) + " "
	}
	log, err := os.ReadFile(d.log.Name())
	if err != nil {
		d.t.Fatal(err)
	}
	out["the log"] = string(log)
	for _, m := range d.members {
		list, err := d.clients[m].CoreV1().ConfigMaps(api.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + d.name})
		if err != nil {
			d.t.Fatal(err)
		}
		out["inventories of "+m] = fmt.Sprint(" ", list.Items)
	}
	out["the ledger"] = d.ledger()
	return out
}

// gitfleet runs a command of the command line and returns all it prints.
func (d *daemon) gitfleet(args ...string) string {
	d.t.Helper()
	path, err := binary()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !asExit(err, &exit) {
		d.t.Fatalf("%s: %v", args, err)
	}
	return string(out)
}

func asExit(err error, exit **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*exit = e
	return ok
}

// checkout is the head of the repository as files.
func (d *daemon) checkout() string {
	d.t.Helper()
	dir := d.t.TempDir()
	if _, err := githttp.Git(dir, "clone", "--quiet", d.repo.Dir, "."); err != nil {
		d.t.Fatal(err)
	}
	return dir
}

// ledger is what the daemon remembers, as it lies on the disk.
func (d *daemon) ledger() string {
	d.t.Helper()
	dir := d.args[slices.Index(d.args, "--state-dir")+1]
	var text strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || !strings.Contains(path, "ledger") {
			return err
		}
		raw, err := os.ReadFile(path)
		text.Write(raw)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return text.String()
}
