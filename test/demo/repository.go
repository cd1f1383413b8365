package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gitfleet/gitfleet/test/githttp"
)

const (
	repositoryName = "fleet.git"
	branch         = "main"
)

// gitAddress is the preferred address of the Git server, so that a clone from an earlier demo
// can still reach it.
const gitAddress = "127.0.0.1:8086"

// A repository is a bare repository on a Git server, and a clone of it.
type repository struct {
	server   *githttp.Server // nil if a forge serves it
	url      string
	origin   string // the URL that the checkout pushes to
	checkout string
	head     string
	created  bool // by this demo, and not by an earlier one
}

// serveRepository creates a repository from examples/quickstart and the files of the staged rollout, by a push
// as a user would. An existing one is kept.
func (d *demo) serveRepository(ctx context.Context) (string, error) {
	r := &repository{checkout: d.file("fleet")}
	d.repository = r
	serve := d.startGitServer
	if d.hosted {
		serve = d.startForge
	}
	if err := serve(ctx, r); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(r.checkout, ".git")); err != nil {
		err = r.create(ctx, filepath.Join(d.root, "examples", "quickstart"), filepath.Join(d.root, "test", "demo", "staged"))
		if err != nil {
			return "", err
		}
		r.created = true
	}
	if _, err := r.git(ctx, "remote", "set-url", "origin", r.origin); err != nil {
		return "", err
	}
	if _, err := r.git(ctx, "fetch", "--quiet", "origin", branch); err != nil {
		return "", err
	}
	var err error
	r.head, err = r.git(ctx, "rev-parse", "FETCH_HEAD")
	return r.url, err
}

// startGitServer serves a bare repository, to which everybody on this machine may push.
func (d *demo) startGitServer(_ context.Context, r *repository) error {
	address, err := free(gitAddress)
	if err != nil {
		return err
	}
	bare := d.file("repositories", repositoryName)
	if _, err := githttp.Create(bare); err != nil {
		return err
	}
	if r.server, err = githttp.New(githttp.Config{Root: filepath.Dir(bare), Addr: address}); err != nil {
		return err
	}
	r.url = r.server.URL(repositoryName)
	r.origin = r.url
	return nil
}

// create clones the empty repository, and pushes the files of some directories.
func (r *repository) create(ctx context.Context, from ...string) error {
	if err := os.MkdirAll(r.checkout, 0o755); err != nil {
		return err
	}
	for _, dir := range from {
		if err := os.CopyFS(r.checkout, os.DirFS(dir)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=" + branch},
		{"config", "user.name", "Demo"},
		{"config", "user.email", "demo@example.com"},
		{"config", "commit.gpgSign", "false"},
		{"remote", "add", "origin", r.origin},
		{"add", "--all"},
		{"commit", "--quiet", "--message=Begin with the quick start"},
		{"push", "--quiet", "--set-upstream", "origin", branch},
	} {
		if _, err := r.git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// git runs git in the clone, and returns its output.
func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = r.checkout
	out, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

func (r *repository) close() error {
	if r.server == nil {
		return nil
	}
	return r.server.Close()
}
