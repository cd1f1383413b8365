package checkout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// ControlPlane builds the program that runs clusters, unless it is up to date: with Kubernetes
// compiled in, or without if KUBEBUILDER_ASSETS has all the named programs. The first build
// takes minutes, later ones a second, thanks to Go's build cache.
func ControlPlane(ctx context.Context, programs ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	target, tags := filepath.Join(root, "build", "controlplane"), ""
	if prebuilt(os.Getenv("KUBEBUILDER_ASSETS"), programs) {
		target, tags = target+"-prebuilt", "prebuilt"
	}
	unlock, err := lock(target + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()

	source := filepath.Join(root, "test", "controlplane")
	flags, err := linkFlags(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", err
	}
	return target, Build(ctx, source, []string{"GOWORK=off"}, target, "-trimpath", "-tags="+tags, "-ldflags="+flags, ".")
}

// prebuilt reports whether assets has every program, so that none needs to be compiled.
func prebuilt(assets string, programs []string) bool {
	if assets == "" {
		return false
	}
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			return false
		}
	}
	return true
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)$`)

// linkFlags keep the binary small, and set the version of its API server; without it, the API
// server reports a version that kubectl cannot parse.
func linkFlags(gomod string) (string, error) {
	data, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	found := kubernetesVersion.FindStringSubmatch(string(data))
	if found == nil {
		return "", fmt.Errorf("%s: does not require a release of k8s.io/kubernetes", gomod)
	}
	const set = " -X k8s.io/component-base/version."
	return "-s -w" + set + "gitVersion=" + found[1] + set + "gitMajor=" + found[2] + set + "gitMinor=" + found[3], nil
}

// lock keeps several processes from building the same file at once.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
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
