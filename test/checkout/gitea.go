package checkout

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// giteaTags make Gitea store everything in SQLite, which needs cgo.
const giteaTags = "sqlite sqlite_unlock_notify"

// Gitea builds Gitea, unless it is up to date, and returns its path and the directory of its
// templates and translations. The first build takes minutes and fills Go's build cache.
func Gitea(ctx context.Context) (program, static string, err error) {
	root, err := Root()
	if err != nil {
		return "", "", err
	}
	source := filepath.Join(root, "test", "gitea")
	program = filepath.Join(root, "build", "gitea")
	unlock, err := lock(program + ".lock")
	if err != nil {
		return "", "", err
	}
	defer unlock()
	if err := Build(ctx, source, []string{"GOWORK=off"}, program, "-trimpath", "-tags="+giteaTags, "-ldflags=-s -w", "code.gitea.io/gitea"); err != nil {
		return "", "", err
	}
	find := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "code.gitea.io/gitea")
	find.Dir = source
	find.Env = append(find.Environ(), "GOWORK=off")
	out, err := find.Output()
	if err != nil {
		return "", "", fmt.Errorf("find the module of Gitea: %w", err)
	}
	return program, strings.TrimSpace(string(out)), nil
}
