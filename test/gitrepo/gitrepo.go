// Package gitrepo makes and changes repositories with the git program, for tests.
package gitrepo

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Repo is a real repository, made and changed with the git program.
type Repo struct {
	// T fails when the git program does.
	T testing.TB
	// Dir is the work tree, which may be that of a bare repository.
	Dir string
}

// New makes an empty repository with a branch main.
func New(t testing.TB) *Repo {
	t.Helper()
	g := &Repo{t, filepath.Join(t.TempDir(), "repo")}
	if err := os.MkdirAll(g.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	g.Git("init", "-q", "-b", "main")
	return g
}

// Git runs the git program without the configuration of the user and the machine.
func (g *Repo) Git(args ...string) string {
	g.T.Helper()
	return g.Input("", args...)
}

// Input runs the git program with a standard input.
func (g *Repo) Input(in string, args ...string) string {
	g.T.Helper()
	return strings.TrimSpace(g.Output(in, args...))
}

// Output is Input without trimming the output.
func (g *Repo) Output(in string, args ...string) string {
	g.T.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = g.Dir
	cmd.Stdin = strings.NewReader(in)
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.T.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Write puts files into the work tree; an empty content removes the file.
func (g *Repo) Write(files map[string]string) {
	g.T.Helper()
	for name, content := range files {
		path := filepath.Join(g.Dir, name)
		if content == "" {
			if err := os.Remove(path); err != nil {
				g.T.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			g.T.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			g.T.Fatal(err)
		}
	}
}

// Commit writes files and commits everything; it returns the hash.
func (g *Repo) Commit(message string, files map[string]string) string {
	g.T.Helper()
	g.Write(files)
	g.Git("add", "-A")
	g.Git("commit", "-q", "--allow-empty", "-m", message)
	return g.Head()
}

// Head returns the hash of the commit that is checked out.
func (g *Repo) Head() string {
	g.T.Helper()
	return g.Git("rev-parse", "HEAD")
}

// Tree stores a tree object with the given content.
func (g *Repo) Tree(raw string) string {
	g.T.Helper()
	return g.Input(raw, "hash-object", "--literally", "-t", "tree", "-w", "--stdin")
}

// Noise returns n bytes of text that do not compress.
func Noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('!' + r.IntN(90))
	}
	return string(b)
}
