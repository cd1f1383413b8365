package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/repository"
)

// validate has the same output for a checkout as for the commit, which it reads from Git with
// the limits of the daemon.
func TestACheckoutIsJudgedAsItsCommit(t *testing.T) {
	const scenes = "../../gitsource/hub/testdata/*/*.txtar"
	archives, err := filepath.Glob(scenes)
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in %s: %v", scenes, err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			r, err := repository.Read(archive)
			if err != nil {
				t.Fatal(err)
			}
			if r.Limits["buildTime"] != "" {
				t.Skip("a build that is cut off goes on for a while, and the next one waits for it")
			}
			t.Parallel()
			compareCommit(t, r, nil)
		})
	}
	examples, err := os.ReadDir("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		if example.IsDir() {
			t.Run(example.Name(), func(t *testing.T) {
				t.Parallel()
				compareCommit(t, &repository.Repository{}, func(t *testing.T, dir string) {
					if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples", example.Name()))); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

// That is also so for files that only a working tree, or only a commit, can have.
func TestWorkTreesAreJudgedAsTheirCommits(t *testing.T) {
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"
	const broken = "kind: [\n"
	tests := map[string]struct {
		make   func(t *testing.T, dir string)
		limits map[string]string
		path   string
		says   string // part of both outputs
	}{
		"a repository in it": {
			make: func(t *testing.T, dir string) { nestedRepository(t, filepath.Join(dir, "vendor/lib"), broken) },
			says: "vendor/lib: this is a submodule",
		},
		"a repository in it that is the hub": {
			make: func(t *testing.T, dir string) { nestedRepository(t, filepath.Join(dir, "vendor/lib"), namespace) },
			path: "vendor/lib",
			says: "vendor/lib: this is a submodule",
		},
		"a kustomization that refers to a repository in it": {
			make: func(t *testing.T, dir string) {
				nestedRepository(t, filepath.Join(dir, "vendor/lib"), namespace)
				write(t, dir, "app/kustomization.yaml", "resources: [../vendor/lib]\n")
			},
			says: "app/kustomization.yaml:1: resources[0]: vendor/lib is a submodule",
		},
		"a linked working tree in it": {
			make: func(t *testing.T, dir string) {
				write(t, dir, "a.yaml", namespace)
				commitAll(t, dir)
				gitIn(t, dir, "worktree", "add", "-q", "linked/tree")
			},
			says: "linked/tree: this is a submodule",
		},
		"a directory .git that is no repository": {
			make: func(t *testing.T, dir string) {
				write(t, dir, "a/.git/config.yaml", broken)
				write(t, dir, "a/b.yaml", broken)
			},
			says: "a/b.yaml:",
		},
		"a link out of the tree": {
			make: func(t *testing.T, dir string) {
				outside := filepath.Join(t.TempDir(), "outside.yaml")
				write(t, filepath.Dir(outside), "outside.yaml", namespace)
				for _, name := range []string{"a.yaml", "b"} {
					if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
						t.Fatal(err)
					}
				}
			},
			says: "a.yaml: this is a symbolic link",
		},
		"a named pipe": {
			make: func(t *testing.T, dir string) {
				write(t, dir, "a.yaml", namespace)
				if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			says: "valid",
		},
		"a name that is not UTF-8": {
			make: func(t *testing.T, dir string) { write(t, dir, "caf\xe9.yaml", namespace) },
			says: "the name is not UTF-8",
		},
		"a directory whose name is not UTF-8": {
			make: func(t *testing.T, dir string) {
				write(t, dir, "caf\xe9/a.yaml", namespace)
				write(t, dir, "a.yaml", namespace)
			},
			says: "the name is not UTF-8",
		},
		"directories that are deeper than the default": {
			make:   func(t *testing.T, dir string) { write(t, dir, strings.Repeat("d/", 150)+"a.yaml", broken) },
			limits: map[string]string{"depth": "200"},
			says:   "d/a.yaml:",
		},
		"deep directories that are ignored": {
			make: func(t *testing.T, dir string) {
				write(t, dir, "node_modules/"+strings.Repeat("d/", 150)+"a.yaml", broken)
				write(t, dir, ".gitfleetignore", "node_modules/\n")
				write(t, dir, "a.yaml", namespace)
			},
			says: "valid",
		},
		"exactly as many files as allowed": {
			make: func(t *testing.T, dir string) {
				write(t, dir, ".gitfleetignore", "x*\n")
				for i := range 29 { // ten names count as one file, also ignored ones
					write(t, dir, "x"+strings.Repeat("x", i), "")
				}
			},
			limits: map[string]string{"files": "3"},
			says:   "valid",
		},
		"a large file that is not read": {
			make: func(t *testing.T, dir string) {
				write(t, dir, "a.yaml", namespace)
				write(t, dir, "large.bin", strings.Repeat("0123456789abcdef", 17<<16))
			},
			says: "valid",
		},
		"a large file that a generator reads": {
			make: func(t *testing.T, dir string) {
				write(t, dir, "kustomization.yaml", "configMapGenerator: [{name: a, namespace: web, files: [large.bin]}]\n")
				write(t, dir, "large.bin", strings.Repeat("0123456789abcdef", 17<<16))
			},
			says: "large.bin",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := compareCommit(t, &repository.Repository{Path: test.path, Limits: test.limits}, test.make)
			if !strings.Contains(said, test.says) {
				t.Errorf("validate said\n%s\nnot %q", said, test.says)
			}
		})
	}
}

// compareCommit runs validate on a working tree and on a commit of all its files, compares the
// outputs, and returns them.
func compareCommit(t *testing.T, r *repository.Repository, prepare func(t *testing.T, dir string)) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	submodules, err := r.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(t, dir)
	}
	commitAll(t, dir, submodules...)

	args := []string{"validate"}
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		args = append(args, "--set", "limits."+name+"="+r.Limits[name])
	}
	if r.Path != "" {
		args = append(args, "--path", r.Path)
	}
	judge := func(what string) string {
		_, out, errOut := command(append(args, what)...)
		return out + strings.ReplaceAll(errOut, what, "it")
	}
	checkout, commit := judge(dir), judge(dir+"@main")
	if checkout != commit {
		t.Errorf("of the checkout validate said\n%s\nof the commit\n%s", checkout, commit)
	}
	return checkout
}

func nestedRepository(t *testing.T, dir, text string) {
	t.Helper()
	write(t, dir, "a.yaml", text)
	gitIn(t, dir, "init", "-q", "-b", "main")
	commitAll(t, dir)
}

// commitAll commits all files that Git can commit, and submodules that were not fetched.
func commitAll(t *testing.T, dir string, submodules ...string) {
	t.Helper()
	gitIn(t, dir, "add", "--all", "--force", ".")
	for _, name := range submodules {
		gitIn(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("5e", 20)+","+name)
	}
	gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "all")
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := githttp.Git(dir, args...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
