package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
)

func (d *demo) buildProduct(ctx context.Context) (string, error) {
	d.binary = filepath.Join(d.root, "build", "gitfleet")
	// As "make build" does, so that neither compiles what the other has compiled.
	args := []string{"-trimpath", "-ldflags=-s -w -X main.release=", "./cmd/gitfleet"}
	return d.short(d.binary), goBuild(ctx, d.root, []string{"CGO_ENABLED=0"}, d.binary, args...)
}

// buildControlPlane makes the program that runs clusters: with Kubernetes in it,
// or without where KUBEBUILDER_ASSETS has it already.
func (d *demo) buildControlPlane(ctx context.Context) (string, error) {
	d.controlPlane = filepath.Join(d.root, "build", "controlplane")
	source := filepath.Join(d.root, "test", "controlplane")
	flags, err := linkFlags(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", err
	}
	args := []string{"-trimpath", "-ldflags=" + flags}
	if prebuilt(os.Getenv("KUBEBUILDER_ASSETS")) {
		d.controlPlane += "-prebuilt"
		args = append(args, "-tags=prebuilt")
	}
	unlock, err := lock(d.controlPlane + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	return d.short(d.controlPlane), goBuild(ctx, source, []string{"GOWORK=off"}, d.controlPlane, append(args, ".")...)
}

func goBuild(ctx context.Context, dir string, env []string, target string, args ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"build", "-o", target}, args...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // it then ends its compilers
	out, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", dir, err, out)
	}
	return nil
}

// prebuilt reports whether a directory has every program that clusters are made
// of.
func prebuilt(assets string) bool {
	if assets == "" {
		return false
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			return false
		}
	}
	return true
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)$`)

// linkFlags are those that tests build the control planes with (test/fleet), so
// that neither has to link what the other has linked.
func linkFlags(gomod string) (string, error) {
	text, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	found := kubernetesVersion.FindStringSubmatch(string(text))
	if found == nil {
		return "", fmt.Errorf("%s: does not require a release of k8s.io/kubernetes", gomod)
	}
	const set = " -X k8s.io/component-base/version."
	return "-s -w" + set + "gitVersion=" + found[1] + set + "gitMajor=" + found[2] + set + "gitMinor=" + found[3], nil
}

// lock keeps tests from building the same file at the same time.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}
