package checkout

import (
	"context"
	"path/filepath"
)

// Helm builds Helm, unless it is up to date, and returns its path. The first build takes
// minutes and fills Go's build cache.
func Helm(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	target := filepath.Join(root, "build", "helm")
	unlock, err := lock(target + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	return target, Build(ctx, filepath.Join(root, "test", "helm"), []string{"GOWORK=off"}, target, "-ldflags=-s -w", "helm.sh/helm/v4/cmd/helm")
}
