package fleet_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// orphanVariable makes this test binary a process that starts a fleet, prints its
// directory, and waits to be killed.
const orphanVariable = "FLEET_TEST_ORPHAN"

func runUntilKilled() {
	f, err := fleet.Start(context.Background(), fleet.Options{Clusters: 1})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(f.Dir())
	select {}
}

// processes returns the ids and command lines of what runs for the fleet in dir.
func processes(t *testing.T, dir string) map[int]string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc to see processes")
	}
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		if bytes.Contains(line, []byte(dir)) {
			var id int
			if _, err := fmt.Sscanf(path, "/proc/%d/", &id); err != nil {
				t.Fatal(err)
			}
			found[id] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}

func none(t *testing.T, dir string) error {
	if left := processes(t, dir); len(left) > 0 {
		return fmt.Errorf("left behind: %v", left)
	}
	return nil
}

// shortDir is a directory whose name is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs API servers; run without -short")
	}
	dir, err := os.MkdirTemp("", "fleet-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestCloseLeavesNoProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("needs API servers; run without -short")
	}
	f, err := fleet.Start(t.Context(), fleet.Options{Names: []string{"one"}, Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if running := processes(t, f.Dir()); len(running) != 3 {
		t.Errorf("want up, etcd and an API server, got %v", running)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := none(t, f.Dir()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.Dir()); !os.IsNotExist(err) {
		t.Errorf("the temporary directory is still there: %v", err)
	}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("needs API servers; run without -short")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), orphanVariable+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // "signal: killed", as was asked
	dir := strings.TrimSpace(line)
	if err != nil || !filepath.IsAbs(dir) {
		t.Fatalf("want a directory, got %q: %v", line, err)
	}
	eventually(t, func() error { return none(t, dir) })
	eventually(t, func() error {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("the temporary directory is still there: %v", err)
		}
		return nil
	})
}

func TestKilledControlPlanesLeaveNoProcess(t *testing.T) {
	dir := shortDir(t)
	f, err := fleet.Start(t.Context(), fleet.Options{Clusters: 1, Dir: dir, Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for id, line := range processes(t, dir) {
		if strings.Contains(line, " up ") {
			if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, func() error { return none(t, dir) })
}

// A cluster that fails by itself must not look like one that a test has stopped.
func TestLostAPIServerEndsTheFleet(t *testing.T) {
	dir := shortDir(t)
	var out bytes.Buffer
	f, err := fleet.Start(t.Context(), fleet.Options{Clusters: 1, Dir: dir, Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	for id, line := range processes(t, dir) {
		if strings.Contains(line, " apiserver ") {
			if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, func() error { return none(t, dir) })
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "member-1 kube-apiserver ended: signal: killed"; !strings.Contains(out.String(), want) {
		t.Errorf("want %q in\n%s", want, &out)
	}
}
