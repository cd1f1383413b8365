package checkout

import (
	"context"
	"os"
	"path/filepath"
)

// BuiltHelm returns the path of the program that Helm has built; false if it has not.
func BuiltHelm() (string, bool, error) {
	root, err := Root()
	if err != nil {
		return "", false, err
	}
	target := helmPath(root)
	_, err = os.Stat(target)
	return target, err == nil, nil
}

func helmPath(root string) string { return filepath.Join(root, "build", "helm") }

// Helm builds Helm, unless it is up to date, and returns its path. The first build takes
// minutes and fills Go's build cache.
func Helm(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	target := helmPath(root)
	unlock, err := lock(target + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	return target, Build(ctx, filepath.Join(root, "test", "helm"), []string{"GOWORK=off"}, target, "-ldflags=-s -w", "helm.sh/helm/v4/cmd/helm")
}
