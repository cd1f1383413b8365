package gitsource

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// cloned returns a user's clone of a repository that is served.
func cloned(t *testing.T, url string) (*Clone, string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := githttp.Git(dir, "clone", "-q", url, "."); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c, err := OpenClone(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c, dir
}

// A branch that restores files changes only these files, and a push changes only that branch on
// the server.
func TestFilesAreTakenBackOnABranchOfTheirOwn(t *testing.T) {
	s := githttp.Serve(t, githttp.Config{Token: "writer"})
	repo := s.Repo(t, "hub.git")
	good := repo.Commit(t, "main", map[string]string{"web/app.yaml": "good", "web/old.yaml": "old", "other": "1", "a.b": "x", "a/c": "y"})
	bad := repo.Change(t, "main", githttp.Change{Files: map[string]string{"web/app.yaml": "bad", "web/new/file.yaml": "new", "other": "2"}, Remove: []string{"web/old.yaml"}})
	url := strings.Replace(s.URL("hub.git"), "http://", "http://git:writer@", 1)
	c, dir := cloned(t, url)

	paths := []string{"web/app.yaml", "web/old.yaml", "web/new/file.yaml", "a/c"}
	differing, err := c.Differing(good, bad, paths)
	if got := strings.Join(differing, " "); err != nil || got != "web/app.yaml web/old.yaml web/new/file.yaml" {
		t.Errorf("the commits differ in %q, %v", got, err)
	}
	made, err := c.Restore(RestoreOptions{Base: bad, From: good, Paths: paths, Message: "web: back\n", Author: "Ada", Email: "ada@example.com", Time: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Parents) != 1 || made.Parents[0] != bad || made.Subject != "web: back" || made.Author != "Ada" {
		t.Errorf("the commit is %+v", made)
	}
	if err := c.Branch("back", made.Hash); err != nil {
		t.Fatal(err)
	}
	if out, err := githttp.Git(dir, "fsck", "--strict"); err != nil {
		t.Errorf("git finds fault with the clone: %v\n%s", err, out)
	}
	out, err := githttp.Git(dir, "diff", "--name-status", bad, "back")
	if want := "M\tweb/app.yaml\nD\tweb/new/file.yaml\nA\tweb/old.yaml"; err != nil || strings.TrimSpace(out) != want {
		t.Errorf("the branch changes\n%s\nwant\n%s (%v)", out, want, err)
	}
	files, err := c.Files(made.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := fs.ReadFile(files, "web/app.yaml"); string(data) != "good" {
		t.Errorf("web/app.yaml is %q, %v", data, err)
	}

	cfg := config(t, s.URL("hub.git"))
	cfg.Auth.Token = remote.SecretSource{File: writeTemp(t, "token", "writer")}
	if err := c.Push(t.Context(), cfg, "back", made.Hash); err != nil {
		t.Fatal(err)
	}
	for branch, want := range map[string]string{"back": made.Hash, "main": bad} {
		if got := repo.Head(t, branch); got != want {
			t.Errorf("on the server %s is at %s, want %s", branch, got, want)
		}
	}
	wantError(t, c.Push(t.Context(), cfg, "back", made.Hash), "has a branch of that name already")
	wantError(t, c.Push(t.Context(), cfg, "main", made.Hash), "has a branch of that name already")
	wantError(t, c.Branch("back", made.Hash), "exists already")
	wantError(t, c.Branch("a..b", made.Hash), "a..b")

	cfg.Auth.Token = remote.SecretSource{File: writeTemp(t, "reader", "reader")}
	err = c.Push(t.Context(), cfg, "again", made.Hash)
	wantError(t, err, "must be allowed to write", "git push")
	if strings.Contains(err.Error(), "reader") {
		t.Errorf("the error tells the token: %v", err)
	}
}

// A push over SSH to OpenSSH and git creates its branch and changes nothing else. The errors
// distinguish a read-only key, which deploy keys often are, from a server that refuses the
// push, and contain the server's message.
func TestABranchIsPushedOverSSH(t *testing.T) {
	s := serveSSH(t)
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"web/app.yaml": "good", "other": strings.Repeat("o", 100_000)})
	second := g.Commit("second", map[string]string{"web/app.yaml": "bad"})
	c, _ := cloned(t, g.Dir)
	made, err := c.Restore(RestoreOptions{Base: second, From: first, Paths: []string{"web/app.yaml"}, Message: "back\n", Author: "Ada", Email: "ada@example.com", Time: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.config(t, g.Dir)
	if err := c.Push(t.Context(), cfg, "gitfleet/back", made.Hash); err != nil {
		t.Fatal(err)
	}
	want := "gitfleet/back " + made.Hash + "\nmain " + second
	if got := g.Git("for-each-ref", "--format=%(refname:short) %(objectname)"); got != want {
		t.Errorf("on the server are\n%s\nwant\n%s", got, want)
	}
	if got := g.Git("show", "gitfleet/back:web/app.yaml"); got != "good" {
		t.Errorf("on the branch web/app.yaml is %q", got)
	}
	g.Git("fsck", "--strict")
	wantError(t, c.Push(t.Context(), cfg, "gitfleet/back", made.Hash), "has a branch of that name already")
	wantError(t, c.Push(t.Context(), cfg, "main", made.Hash), "has a branch of that name already")

	refuseInWords(t, filepath.Join(g.Dir, ".git", "hooks"))
	err = c.Push(t.Context(), cfg, "refused", made.Hash)
	wantError(t, err, "push branch refused", "branches begin with team/", "hook declined")
	if strings.Contains(err.Error(), "allowed to write") {
		t.Errorf("a hook is taken for credentials: %v", err)
	}

	s.Allow(t, `command="echo ERROR: this key is read-only >&2; exit 1" `+read(t, s.Identity+".pub"))
	wantError(t, c.Push(t.Context(), cfg, "again", made.Hash), "this key is read-only", "must be allowed to write", "git push")
	if got := g.Git("for-each-ref", "--format=%(refname:short) %(objectname)"); got != want {
		t.Errorf("what was refused left\n%s", got)
	}
}

// refuseInWords makes a repository refuse every push with a message.
func refuseInWords(t *testing.T, hooks string) {
	t.Helper()
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte("#!/bin/sh\necho branches begin with team/ >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A push trusts a private CA in the same way as a fetch.
func TestABranchIsPushedOverHTTPS(t *testing.T) {
	s := githttp.Serve(t, githttp.Config{TLS: true, Username: "ada", Password: "writer"})
	repo := s.Repo(t, "hub.git")
	head := repo.Commit(t, "main", map[string]string{"a": "1"})
	c, _ := cloned(t, repo.Dir)
	cfg := config(t, s.URL("hub.git"))
	cfg.AllowHTTP = false
	cfg.Auth.Username, cfg.Auth.Password = "ada", remote.SecretSource{File: writeTemp(t, "password", "writer")}
	wantError(t, c.Push(t.Context(), cfg, "back", head), "certificate")
	cfg.Auth.CABundle = writeTemp(t, "ca.pem", string(s.CA()))
	if err := c.Push(t.Context(), cfg, "back", head); err != nil {
		t.Fatal(err)
	}
	if got := repo.Head(t, "back"); got != head {
		t.Errorf("on the server back is at %s, want %s", got, head)
	}
	refuseInWords(t, filepath.Join(repo.Dir, "hooks"))
	wantError(t, c.Push(t.Context(), cfg, "refused", head), "branches begin with team/", "hook declined")
	cfg.Auth.Password = remote.SecretSource{File: writeTemp(t, "reader", "reader")}
	wantError(t, c.Push(t.Context(), cfg, "again", head), "401", "must be allowed to write")
}

// The files of a clone satisfy the contract of io/fs.
func TestFilesOfACloneAreAFileSystem(t *testing.T) {
	s := githttp.Serve(t, githttp.Config{})
	repo := s.Repo(t, "hub.git")
	repo.Commit(t, "main", map[string]string{"web/app.yaml": "good", "web/deep/er.yaml": "er", "top": "1"})
	c, _ := cloned(t, s.URL("hub.git"))
	files, err := c.Files("main")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(files, "web/app.yaml", "web/deep/er.yaml", "top"); err != nil {
		t.Error(err)
	}
	_, err = c.Files("0123456789012345678901234567890123456789")
	wantError(t, err, "is not in this clone")
	_, err = OpenClone(t.TempDir())
	wantError(t, err, "is not in a clone")
}
