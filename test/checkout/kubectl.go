package checkout

import (
	"context"
	"path/filepath"
)

// Kubectl builds an unmodified kubectl, unless it is up to date, and returns its path. The
// first build takes minutes and fills Go's build cache.
func Kubectl(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	target := filepath.Join(root, "build", "kubectl")
	unlock, err := lock(target + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	return target, Build(ctx, filepath.Join(root, "test", "kubectl"), []string{"GOWORK=off"}, target, "-ldflags=-s -w", ".")
}
