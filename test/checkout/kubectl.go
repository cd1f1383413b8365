package checkout

import (
	"context"
	"path/filepath"
)

// Kubectl builds a stock kubectl, or finds it up to date, and returns its path.
// The first build takes minutes, as Go's build cache is filled.
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
