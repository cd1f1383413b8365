package gitsource

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// in returns the repository in another directory.
func in(g *gitrepo.Repo, dir string) *gitrepo.Repo { return &gitrepo.Repo{T: g.T, Dir: dir} }

// clonedHistory is a repository with the commits one, two, three and a merge, as first, second and so on.
func clonedHistory(t *testing.T) (g *gitrepo.Repo, commits []string) {
	g = gitrepo.New(t)
	for _, name := range []string{"one", "two", "three"} {
		commits = append(commits, g.Commit(name, map[string]string{"fleet/a.yaml": name}))
		g.Git("tag", "-a", "-m", name, "web@1.0."+name)
	}
	g.Git("checkout", "-q", "-b", "feature/x", "HEAD~1")
	g.Commit("side", map[string]string{"fleet/b.yaml": "side"})
	g.Git("checkout", "-q", "main")
	g.Git("merge", "-q", "--no-ff", "-m", "merge", "feature/x")
	g.Git("tag", "v1.2.0", "HEAD~1")
	g.Git("tag", "v1.3.0")
	return g, append(commits, g.Head())
}

// Revisions mean what they mean to git, in every form of a clone.
func TestRevisionsInEveryFormOfAClone(t *testing.T) {
	g, _ := clonedHistory(t)
	g.Git("config", "uploadpack.allowFilter", "true")
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	worktree, bare, shared, nested, complete, packed := at("worktree"), at("bare.git"), at("shared"), at("nested"), at("complete"), at("packed")
	g.Git("worktree", "add", "-q", "--detach", worktree, "main")
	g.Git("clone", "-q", "--bare", ".", bare)
	g.Git("clone", "-q", "--shared", ".", shared)
	g.Git("clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+g.Dir, complete)
	in(g, complete).Git("fetch", "-q", "--refetch", "--filter=blob:limit=1g")
	g.Git("clone", "-q", ".", packed)
	in(g, packed).Git("pack-refs", "--all")
	in(g, packed).Git("gc", "-q")
	in(g, packed).Git("sparse-checkout", "set", "nothing")
	in(g, shared).Git("branch", "-q", "feature/x", "origin/feature/x")
	in(g, shared).Git("clone", "-q", "--shared", ".", nested)
	alternates := filepath.Join(nested, ".git/objects/info/alternates")
	relative, err := filepath.Rel(filepath.Join(nested, ".git/objects"), filepath.Join(shared, ".git/objects"))
	if err == nil {
		err = os.WriteFile(alternates, []byte("# relative\n"+relative+"\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	super := gitrepo.New(t)
	super.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", g.Dir, "module")
	inSub := filepath.Join(super.Dir, "module")
	for form, dir := range map[string]string{
		"a checkout": g.Dir, "a directory in a checkout": filepath.Join(g.Dir, "fleet"), "its Git directory": filepath.Join(g.Dir, ".git"),
		"a linked working tree": worktree, "a directory in a linked working tree": filepath.Join(worktree, "fleet"), "a bare clone": bare,
		"a clone with alternates": shared, "one with relative alternates that have alternates": nested, "a partial clone that is complete": complete, "packed references": packed, "a submodule": inSub,
	} {
		t.Run(form, func(t *testing.T) {
			c, err := OpenClone(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, revision := range []string{
				"HEAD", "main", "feature/x", "origin/feature/x", "web@1.0.two", "refs/tags/web@1.0.one", "v1.3.0", "HEAD~2", "HEAD^", "HEAD^2", "HEAD^2~1", "main~1^{commit}",
				"web@1.0.two^{}", "HEAD^0", g.Head(), g.Head()[:7], strings.ToUpper(g.Head()[:8]), g.Head()[:7] + "~1",
			} {
				want := g.Git("rev-parse", strings.Replace(revision, "origin/", "", 1)+"^{commit}")
				if strings.Contains(revision, "origin/") && (dir == bare || strings.HasPrefix(dir, g.Dir) || strings.HasPrefix(dir, worktree)) {
					continue // it has no remote-tracking branches
				}
				found, err := c.Commit(revision)
				if err != nil || found.Hash != want {
					t.Errorf("%s is %s, %v; want %s", revision, found.Hash, err, want)
				}
			}
			if found, err := c.Tagged(">=1.0 <1.3"); err != nil || found.Hash != g.Git("rev-parse", "v1.2.0") {
				t.Errorf("the highest version is %s, %v", found.Hash, err)
			}
			files, err := c.Files("web@1.0.one")
			if err != nil {
				t.Fatal(err)
			}
			if info, err := fs.Stat(files, "fleet/a.yaml"); err != nil || info.Size() != 3 {
				t.Errorf("the file is %v, %v", info, err)
			}
			if text, err := fs.ReadFile(files, "fleet/a.yaml"); err != nil || string(text) != "one" {
				t.Errorf("the file has %q, %v", text, err)
			}
			if want := "fleet"; filepath.Base(dir) == want && c.Within() != want || filepath.Base(dir) != want && c.Within() != "." {
				t.Errorf("it is %s in the working tree", c.Within())
			}
		})
	}
}

// What a clone lacks is said, with the command that adds it, and that command does.
func TestIncompleteClonesSayWhatTheyLack(t *testing.T) {
	g, commits := clonedHistory(t)
	g.Git("config", "uploadpack.allowFilter", "true")
	clone := func(args ...string) *gitrepo.Repo {
		dir := filepath.Join(t.TempDir(), "clone")
		g.Git(append(append([]string{"clone", "-q"}, args...), "file://"+g.Dir, dir)...)
		return in(g, dir)
	}
	read := func(g *gitrepo.Repo, revision string) error {
		c, err := OpenClone(g.Dir)
		if err != nil {
			return err
		}
		files, err := c.Files(revision)
		if err != nil {
			return err
		}
		_, err = fs.ReadFile(files, "fleet/a.yaml")
		return err
	}
	for name, test := range map[string]struct {
		clone          *gitrepo.Repo
		revision, want string
	}{
		"shallow, a parent":        {clone("--depth", "1"), "HEAD~1", "is not in this clone: object " + g.Git("rev-parse", "HEAD~1") + ": object not found; it is a shallow clone"},
		"shallow, an older commit": {clone("--depth", "1"), commits[0], "it is a shallow clone"},
		"shallow, a short hash":    {clone("--depth", "1"), commits[0][:8], "it is a shallow clone"},
		"shallow, another branch":  {clone("--depth", "1"), "feature/x", "it has no branch and no tag \"feature/x\"; it is a shallow clone"},
		"without blobs":            {clone("--filter=blob:none", "--no-checkout"), "main", "it is a partial clone"},
		"without trees":            {clone("--filter=tree:0", "--no-checkout"), "HEAD~1", "it is a partial clone"},
	} {
		t.Run(name, func(t *testing.T) {
			err := read(test.clone, test.revision)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, want %q", err, test.want)
			}
			_, command, _ := strings.Cut(err.Error(), `run "git -C `+test.clone.Dir+" ")
			command, _, _ = strings.Cut(command, `"`)
			test.clone.Git(strings.Fields(strings.ReplaceAll(command, "'", ""))...)
			if err := read(test.clone, test.revision); err != nil {
				t.Errorf("after git %s: %v", command, err)
			}
		})
	}
}

// Clones that cannot be read, and revisions that mean nothing, are refused with the reason.
func TestClonesThatCannotBeRead(t *testing.T) {
	g, _ := clonedHistory(t)
	linked := filepath.Join(t.TempDir(), "linked")
	g.Git("worktree", "add", "-q", linked, "feature/x")
	if err := os.RemoveAll(filepath.Join(g.Dir, ".git/worktrees")); err != nil {
		t.Fatal(err)
	}
	sha256 := in(g, t.TempDir())
	sha256.Git("init", "-q", "--object-format=sha256")
	reftable := gitrepo.New(t)
	reftable.Git("config", "core.repositoryformatversion", "1")
	reftable.Git("config", "extensions.refStorage", "reftable")
	for dir, want := range map[string]string{
		linked: "which does not exist", sha256.Dir: "has SHA256 hashes", reftable.Dir: "refs migrate --ref-format=files", t.TempDir(): "is not in a clone",
	} {
		_, err := OpenClone(dir)
		wantError(t, err, want)
	}
	c, err := OpenClone(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[string]string{
		"nothing": `it has no branch and no tag "nothing"`, "main~9": "has no parent 1", "main^3": "has no parent 3", "main^{tree}": "only ~N and ^N", "main~1~x": "only ~N and ^N",
		"main@{1}": "a commit is named by", "main:fleet": "a commit is named by", "HEAD^{/one}": "only ~N and ^N", "abcdef": "a hash that begins so",
		strings.Repeat("1", 40): "object not found", "../../HEAD": "no branch and no tag", ".main": "no branch and no tag",
	} {
		_, err := c.Commit(revision)
		wantError(t, err, want)
		if !errors.Is(err, ErrUnknownCommit) {
			t.Errorf("%s: %v is no ErrUnknownCommit", revision, err)
		}
	}
}
