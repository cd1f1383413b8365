package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/process"
)

// A person follows the section about the management cluster, with a directory for the
// kustomization, a checkout of the repository, kubectl and gitfleet.
type person struct {
	t   *testing.T
	dir string
	env []string
}

func newPerson(t *testing.T, kubeconfig string) *person {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := checkout.Kubectl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS("../../deploy")); err != nil {
		t.Fatal(err)
	}
	return &person{t, dir, append(os.Environ(),
		"PATH="+filepath.Join(dir, "bin")+":"+filepath.Dir(program)+":"+filepath.Dir(kubectl)+":"+os.Getenv("PATH"), "HOME="+dir, "KUBECONFIG="+kubeconfig,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")}
}

// edit replaces a text that must be in a file.
func (p *person) edit(file, old, with string) {
	p.t.Helper()
	path := filepath.Join(p.dir, file)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		p.t.Fatalf("%s has no %q: %v", file, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, with)), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// run runs a script and returns what it prints.
func (p *person) run(script string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "bash", "-c", "set -euo pipefail\n"+script)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v:\n%s\n%s", err, script, out)
	}
	return string(out)
}

// The section "Run it in a management cluster" works as written: the daemon runs from the built
// image with the pod's spec, as its user, with its volumes and the token of its service account
// only, and manages three members. It keeps its state when its process is killed and when its pod
// is replaced.
func TestManagementCluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs control planes; run without -short")
	}
	probe := exec.Command("true")
	probe.SysProcAttr = asUser(65532, 65532)
	if err := probe.Run(); err != nil {
		t.Skipf("a container needs a user namespace: %v", err)
	}
	f, err := fleet.Start(t.Context(), fleet.Options{
		Names: []string{"management", "paris", "oslo", "lima"}, Controllers: "deployment,replicaset,serviceaccount-token", Output: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	git := githttp.Serve(t, githttp.Config{Token: "s3cret"})
	repo := git.Repo(t, "fleet.git")
	repo.Commit(t, "main", map[string]string{
		"web.yaml":  yamlNamespace("web") + "---\n" + yamlConfigMap("web", "greeting", "hello"),
		"crps.yaml": yamlPlacement("web", "web", ""),
	})
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(address, ":")

	p := newPerson(t, f.Kubeconfig())
	p.run("git clone --quiet " + repo.Dir + " fleet && printf s3cret > token")
	p.edit("deploy/kubernetes/gitfleet.yaml", "url: https://git.example.com/org/fleet", "url: "+git.URL("fleet.git")+"\n  interval: 1s\n  allowHTTP: true")
	// The pod uses the network of this machine, where its port may be in use.
	p.edit("deploy/kubernetes/gitfleet.yaml", "0.0.0.0:8443", "0.0.0.0:"+port)
	p.edit("deploy/kubernetes/deployment.yaml", "containerPort: 8443", "containerPort: "+port)

	n := startNode(t, f.Member("management"), "gitfleet")
	for _, block := range blocksOf(t, "../../docs/install.md", "sh management") {
		t.Log(p.run(block))
	}
	ask := func(command string) string {
		return p.run("gitfleet " + command + " --server https://localhost:" + port + " --ca-file tls.crt --token-file reader.token")
	}
	ask("wait crp/web --timeout 1m")
	if out := ask("get clusters -o name"); out != "membercluster.cluster.kubernetes-fleet.io/lima\nmembercluster.cluster.kubernetes-fleet.io/oslo\nmembercluster.cluster.kubernetes-fleet.io/paris\n" {
		t.Errorf("members:\n%s", out)
	}
	for _, name := range []string{"paris", "oslo", "lima"} {
		client, err := kubernetes.NewForConfig(f.Member(name).Config)
		if err != nil {
			t.Fatal(err)
		}
		if cm, err := client.CoreV1().ConfigMaps("web").Get(t.Context(), "greeting", metav1.GetOptions{}); err != nil || cm.Data["value"] != "hello" {
			t.Errorf("%s: %v, %v", name, cm, err)
		}
	}
	if n.image.config.User != "65532:65532" {
		t.Errorf("the image runs as %q", n.image.config.User)
	}
	if out, err := n.exec("version"); err != nil || !strings.Contains(out, "gitfleet") {
		t.Errorf("version: %v\n%s", err, out)
	}
	out, err := n.exec("doctor", "--config", "/etc/gitfleet/config/gitfleet.yaml")
	if err != nil || strings.Contains(out, "warn") || strings.Count(out, ": reachable, ") != 3 {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	if out, err := n.exec("kubeconfig", "-f", "/etc/fleet.kubeconfig"); err == nil || !strings.Contains(out, "/etc") {
		t.Errorf("the root file system can be written: %v\n%s", err, out)
	}
	for _, command := range []string{"status", "explain crp/web", "tree crp/web", "history", "trace ConfigMap/greeting --namespace web --cluster paris"} {
		if out := ask(command); strings.Contains(out, "may not") {
			t.Errorf("gitfleet %s:\n%s", command, out)
		}
	}

	if out := p.run("! gitfleet sync --server https://localhost:" + port + " --ca-file tls.crt --token-file reader.token 2>&1"); !strings.Contains(out, "may not post /actions/sync") {
		t.Errorf("a reader syncs:\n%s", out)
	}
	p.run("kubectl create clusterrolebinding operator --clusterrole gitfleet-operator --serviceaccount gitfleet:reader")
	p.run("mkdir bin && ln -s $(command -v gitfleet) bin/kubectl-gitfleet && cp deploy/kubectl_complete-gitfleet bin/")
	if out := p.run("kubectl __complete gitfleet susp 2>/dev/null"); !strings.HasPrefix(out, "suspend\t") {
		t.Errorf("kubectl completes:\n%s", out)
	}
	before := ask("history crp/web")
	n.kill()
	repo.Commit(t, "main", map[string]string{"web.yaml": yamlNamespace("web") + "---\n" + yamlConfigMap("web", "greeting", "hello again")})
	p.run("kubectl --namespace gitfleet rollout restart deployment/gitfleet && kubectl --namespace gitfleet rollout status deployment/gitfleet --timeout 2m")
	ask("sync --wait --timeout 1m")
	if after := ask("history crp/web"); !strings.Contains(after, strings.TrimSpace(before)[:20]) {
		t.Errorf("the history is lost; it was\n%s\nand is\n%s", before, after)
	}
}
