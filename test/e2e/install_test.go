package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/process"
)

// All commands on the page "Install and first fleet" work as written, on two clusters named
// paris and oslo.
func TestInstallPageWorks(t *testing.T) {
	t.Parallel()
	f := workloadFleet(t, fleet.Options{Names: []string{"paris", "oslo"}})
	for _, m := range f.Members() {
		client, err := kubernetes.NewForConfig(m.Config)
		if err != nil {
			t.Fatal(err)
		}
		startKubelet(t, client)
	}

	out := runPage(t, "../../docs/install.md", f.Kubeconfig())
	for _, want := range []string{
		"crp/hello: 2 of 2 clusters", // plan
		"crp/hello [",                // status
		"Hello again",                // the change
		"Deployment.apps/hello/web",  // the drift
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in what the page prints:\n%s", want, out)
		}
	}
	for _, m := range f.Members() {
		client, err := kubernetes.NewForConfig(m.Config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.AppsV1().Deployments("hello").Get(t.Context(), "web", metav1.GetOptions{}); err == nil {
			t.Errorf("%s still has the app", m.Name)
		}
	}
}

// blocksOf returns the code blocks of a page in a language.
func blocksOf(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, part := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// runPage runs the code blocks of a page in the language sh, as one script, and returns the
// output.
func runPage(t *testing.T, page, kubeconfig string) string {
	t.Helper()
	script := "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n" + strings.Join(blocksOf(t, page, "sh"), "")
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := checkout.Kubectl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	// Other tests may use the default address.
	script = strings.ReplaceAll(script, "gitfleet run ", "gitfleet run --listen "+address+" ")

	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(),
		"PATH="+filepath.Dir(program)+":"+filepath.Dir(kubectl)+":"+os.Getenv("PATH"),
		"HOME="+dir, "KUBECONFIG="+kubeconfig, "GITFLEET_SERVER=http://"+address,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "gitfleet.log"))
		t.Fatalf("%v:\n%s\nlog of the daemon:\n%s", err, out, log)
	}
	return string(out)
}
