package checkout

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Image builds the container image for this machine as "make image" does, and returns the path
// of its archive.
func Image(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	target := filepath.Join(root, "build", "gitfleet-image-"+runtime.GOARCH+".tar")
	unlock, err := lock(target + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	command := exec.CommandContext(ctx, filepath.Join(root, ".ci", "image"), target, "")
	command.Env = append(command.Environ(), "PLATFORMS=linux/"+runtime.GOARCH, "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the image: %w\n%s", err, out)
	}
	return target, nil
}
