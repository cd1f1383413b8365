package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// built builds the demo, so that tests can signal its process.
func built(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs API servers; run without -short")
	}
	path := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// left lists processes whose command line contains a directory; nil without /proc.
func left(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), dir) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

func noneLeft(t *testing.T, dir string) {
	t.Helper()
	var found []string
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if found = left(t, dir); len(found) == 0 {
			return
		}
	}
	t.Errorf("still running:\n%s", strings.Join(found, "\n"))
}

// The demo succeeds and prints a table. It is started again with the same directory, and
// killed. No process is left in either case.
func TestDemoLeavesNothingRunning(t *testing.T) {
	demo, dir := built(t), filepath.Join(t.TempDir(), "d")
	out, err := exec.Command(demo, "--once", "--dir", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"placements applied", "platform       1     PickAll     True        1               True                1                       True ", "stage approved", "announcement ", "crp/orders", "Members: 3 of 3 ready"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "\033") {
		t.Errorf("control characters for somebody who is no terminal:\n%q", out)
	}
	noneLeft(t, dir)

	command := exec.Command(demo, "--dir", dir)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ready := false
	for lines := bufio.NewScanner(output); !ready && lines.Scan(); {
		ready = strings.HasPrefix(lines.Text(), "Ready ")
	}
	if !ready {
		t.Fatalf("it ended before it was ready: %v", command.Wait())
	}
	if len(left(t, dir)) == 0 {
		t.Error("nothing is running while it should")
	}
	command.Process.Kill()
	_, _ = io.Copy(io.Discard, output) // ends when the last writer has ended
	command.Wait()
	noneLeft(t, dir)
}

// If the repository cannot be applied, the demo prints the reason and the end of the daemon's
// log, and fails.
func TestOnceReportsFailures(t *testing.T) {
	demo, dir := built(t), filepath.Join(t.TempDir(), "d")
	r := &repository{checkout: filepath.Join(dir, "fleet")}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "broken.yaml"), []byte("kind: [\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(dir, "repositories", repositoryName)
	if out, err := exec.Command("git", "init", "--quiet", "--bare", "--initial-branch="+branch, bare).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.origin = bare
	if err := r.create(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(demo, "--once", "--dir", dir).CombinedOutput()
	if err == nil {
		t.Errorf("ended well:\n%s", out)
	}
	for _, want := range []string{"the commit is refused", "broken.yaml:", "the end of its log"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	noneLeft(t, dir)
}

// With a Gitea, a change on a cluster becomes a pull request, and the demo prints its URL.
func TestDemoOpensAPullRequestForDrift(t *testing.T) {
	demo, dir := built(t), filepath.Join(t.TempDir(), "d")
	out, err := exec.Command(demo, "--once", "--forge", "--dir", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"drift offered", "plan shown", "/fleet/fleet/pulls/1", "/fleet/fleet/pulls/2", "offered as ", "Sign in as fleet with the password " + forgePassword} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	noneLeft(t, dir)
}
