// Package checkout finds the checkout that tests and tools run in, and builds the programs that
// they run.
package checkout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/gitfleet/gitfleet"

// Root finds this checkout in or above the working directory.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no checkout of %s in or above %s", module, start)
		}
	}
}

// Build runs go build in a directory, with variables added to the environment. If ctx ends, the
// compilers are ended, and the error is that of ctx.
func Build(ctx context.Context, dir string, env []string, target string, args ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"build", "-o", target}, args...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // go build then ends its compilers
	out, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", dir, err, out)
	}
	return nil
}
