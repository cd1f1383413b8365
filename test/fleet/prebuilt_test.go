package fleet_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// assets makes a directory of prebuilt programs from shell scripts, and has
// KUBEBUILDER_ASSETS point at it.
func assets(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
}

func TestPrebuiltProgramsAreRun(t *testing.T) {
	fleet.Shared(t) // has built the programs that serve as prebuilt ones here
	binary, err := filepath.Abs("../../build/controlplane")
	if err != nil {
		t.Fatal(err)
	}
	assets(t, map[string]string{
		"etcd":           `exec "` + binary + `" etcd "$@"`,
		"kube-apiserver": `exec "` + binary + `" apiserver "$@"`,
	})
	f, err := fleet.Start(t.Context(), fleet.Options{Clusters: 1, Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := client(t, f.Member("member-1").Config).Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
	for _, line := range processes(t, f.Dir()) {
		if strings.Contains(line, " up ") && !strings.Contains(line, "controlplane-prebuilt") {
			t.Errorf("programs were built although all are there: %s", line)
		}
	}
}

func TestFailedStartQuotesTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a build of control planes; run without -short")
	}
	assets(t, map[string]string{"etcd": "echo the disk is on fire; exit 3", "kube-apiserver": "exit 0"})
	f, err := fleet.Start(t.Context(), fleet.Options{Clusters: 1, Output: io.Discard})
	if err == nil {
		f.Close()
		t.Fatal("started without an etcd")
	}
	for _, want := range []string{"etcd ended: exit status 3", "etcd.log", "the disk is on fire"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in: %v", want, err)
		}
	}
}

func TestProgramMissingFromAssetsIsNamed(t *testing.T) {
	fleet.Shared(t) // the full build is there, and meets no etcd
	assets(t, map[string]string{"kube-apiserver": "exit 0"})
	f, err := fleet.Start(t.Context(), fleet.Options{Clusters: 1, Output: io.Discard})
	if err == nil {
		f.Close()
		t.Fatal("started without an etcd")
	}
	if !strings.Contains(err.Error(), "KUBEBUILDER_ASSETS") {
		t.Error(err)
	}
}
