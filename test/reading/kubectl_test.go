package reading

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/golden"
)

// build builds kubectl once, and returns the directory with it and jq.
var build = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("../../build/reading")
	if err != nil {
		return "", err
	}
	program, err := checkout.Kubectl(context.Background())
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"kubectl", "jq"} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			return "", err
		}
	}
	return dir, nil
})

// A terminal runs command lines as a user types them.
type terminal struct {
	t   *testing.T
	env []string
}

func open(t *testing.T, d *daemon) *terminal {
	t.Helper()
	return openAt(t, d.kubeconfig())
}

func openAt(t *testing.T, kubeconfig string) *terminal {
	t.Helper()
	if testing.Short() {
		t.Skip("builds kubectl")
	}
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	return &terminal{t, []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + home, "KUBECONFIG=" + kubeconfig, "KUBECACHEDIR=" + home, "TZ=UTC",
		"TMPDIR=" + home, "KUBE_EDITOR=sed -i s/PickAll/PickN/",
	}}
}

func (r *terminal) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
	if strings.Contains(line, "|") {
		cmd = exec.CommandContext(ctx, "sh", "-c", line)
	}
	cmd.Env, cmd.Dir = r.env, "testdata"
	return cmd
}

// changing replaces parts of the output that differ in every run.
var changing = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(Resource Version: +)\d+`), "${1}N"},
	{regexp.MustCompile(`(Creation Timestamp: +)\S+`), "${1}T"},
	{regexp.MustCompile(`/\S+/kubectl-edit-\d+.yaml`), "/tmp/FILE"},
	{regexp.MustCompile(` +\n`), "\n"},
}

func (r *terminal) run(line string) string {
	out, err := r.command(r.t.Context(), line).CombinedOutput()
	text := string(out)
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.with)
	}
	if err != nil {
		text += "(" + err.Error() + ")\n"
	}
	return text
}

// A stock kubectl prints the same about the hub as about a cluster.
func TestKubectl(t *testing.T) {
	d := start(t)
	d.fill()
	terminal := open(t, d)
	golden.Archive(t, "testdata/kubectl.txtar", func(t *testing.T, scene *txtar.Archive) {
		golden.Steps(t, scene, func(words []string, _ string) (string, bool) { return terminal.run(strings.Join(words, " ")), true })
	})
}

// A watching kubectl prints each change.
func TestKubectlWatches(t *testing.T) {
	d := start(t)
	d.fill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := open(t, d).command(ctx, "kubectl get crp -o wide -w")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cancel()
	lines := bufio.NewScanner(out)
	for _, want := range []string{"NAME", "crp-1", "web", "web-2-crp"} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Fatalf("%q, want %s", lines.Text(), want)
		}
	}
	d.publish(func(r *status.Report) {
		fresh := placed("web", "", "aks-member-1", "aks-member-2")
		fresh.Generation = 6
		r.Placements = []*api.ClusterResourcePlacement{r.Placements[0], fresh, r.Placements[2]}
	})
	if !lines.Scan() || !regexp.MustCompile(`^web +6 +PickAll +True`).MatchString(lines.Text()) {
		t.Errorf("after a change: %q", lines.Text())
	}
}

// "kubectl wait" ends when the condition becomes true, and not before.
func TestKubectlWaits(t *testing.T) {
	d := start(t)
	d.fill()
	d.publish(func(r *status.Report) {
		r.Placements = []*api.ClusterResourcePlacement{r.Placements[0], placed("web", "aks-member-1", "aks-member-1"), r.Placements[2]}
	})
	terminal := open(t, d)
	if out := terminal.run("kubectl wait --for=condition=ClusterResourcePlacementApplied crp/web --timeout=1s"); !strings.Contains(out, "timed out") {
		t.Errorf("before: %s", out)
	}
	done := make(chan string, 1)
	go func() {
		done <- terminal.run("kubectl wait --for=condition=ClusterResourcePlacementApplied crp/web --timeout=60s")
	}()
	d.publish(func(r *status.Report) {
		r.Placements = []*api.ClusterResourcePlacement{r.Placements[0], placed("web", "", "aks-member-1"), r.Placements[2]}
	})
	if out := <-done; out != "clusterresourceplacement.placement.kubernetes-fleet.io/web condition met\n" {
		t.Errorf("after: %s", out)
	}
}
