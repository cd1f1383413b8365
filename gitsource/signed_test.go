package gitsource

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/test/gitrepo"
	"github.com/gitfleet/gitfleet/test/sshd"
)

// A signedRepo is a repository whose committers sign with SSH keys.
type signedRepo struct {
	*gitrepo.Repo
	keys    map[string]string // private key file by name
	allowed string
}

func newSignedRepo(t *testing.T, people ...string) *signedRepo {
	t.Helper()
	s := &signedRepo{Repo: gitrepo.New(t), keys: map[string]string{}}
	dir := t.TempDir()
	var lines strings.Builder
	for _, name := range people {
		s.keys[name] = sshd.NewKey(t, filepath.Join(dir, name), "")
		fmt.Fprintf(&lines, "%s %s", name, read(t, s.keys[name]+".pub"))
	}
	s.keys["mallory"] = sshd.NewKey(t, filepath.Join(dir, "mallory"), "")
	s.allowed = filepath.Join(dir, "allowed")
	s.allow(lines.String())
	return s
}

// copy returns another clone of the repository, with the same committers.
func (s *signedRepo) copy(t *testing.T) *signedRepo {
	t.Helper()
	c := *s
	c.Repo = &gitrepo.Repo{T: t, Dir: filepath.Join(t.TempDir(), "repo")}
	if err := os.CopyFS(c.Dir, os.DirFS(s.Dir)); err != nil {
		t.Fatal(err)
	}
	return &c
}

func (s *signedRepo) allow(lines string) {
	s.T.Helper()
	if err := os.WriteFile(s.allowed, []byte(lines), 0o600); err != nil {
		s.T.Fatal(err)
	}
}

// as runs git with the key of a committer.
func (s *signedRepo) as(name string, args ...string) string {
	s.T.Helper()
	return s.Git(append([]string{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + s.keys[name], "-c", "commit.gpgsign=true"}, args...)...)
}

// sign commits files signed by a committer, or unsigned if the name is empty.
func (s *signedRepo) sign(name string, files map[string]string) string {
	s.T.Helper()
	if name == "" {
		return s.Commit("unsigned", files)
	}
	s.Write(files)
	s.Git("add", "-A")
	s.as(name, "commit", "-q", "--allow-empty", "-m", "by "+name)
	return s.Head()
}

// config allows ada to change everything, and bob only the files below apps.
func (s *signedRepo) config(t *testing.T) Config {
	t.Helper()
	cfg := config(t, s.Dir)
	cfg.Signatures = &Signatures{AllowedSigners: s.allowed, Paths: []SignedPath{
		{Grant: grant.Grant{Path: "", Placements: []string{"*"}}, Signers: []string{"ada"}},
		{Grant: grant.Grant{Path: "apps", Placements: []string{"crp/apps-*"}}, Signers: []string{"ada", "bob"}},
	}}
	return cfg
}

type file = map[string]string

// Each case begins with an accepted first commit of ada, and ends with a head that is accepted,
// or refused with the given reason.
func TestSignedHistories(t *testing.T) {
	tests := map[string]struct {
		tell func(s *signedRepo, base string)
		says string // empty if the head is accepted
		set  func(c *Signatures)
	}{
		"ada changes anything": {tell: func(s *signedRepo, _ string) { s.sign("ada", file{"infra/x": "1", "apps/x": "1", "top": "1"}) }},
		"bob changes apps":     {tell: func(s *signedRepo, _ string) { s.sign("bob", file{"apps/x": "1", "apps/deep/x": "1"}) }},
		"bob releases his deletions": {tell: func(s *signedRepo, _ string) {
			s.sign("bob", file{"apps/x": "1"})
			s.as("bob", "commit", "-q", "--amend", "-m", "x\n\nGitfleet-Allow-Delete: apps-a, crp/apps-b")
		}},
		"bob releases deletions of others": {tell: func(s *signedRepo, _ string) {
			s.sign("bob", file{"apps/x": "1"})
			s.as("bob", "commit", "-q", "--amend", "-m", "x\n\nGitfleet-Allow-Delete: apps-a, orders")
		}, says: "may not release deletions of orders"},
		"bob releases all deletions": {tell: func(s *signedRepo, _ string) {
			s.as("bob", "commit", "-q", "--allow-empty", "-m", "x\n\nGitfleet-Allow-Delete: *")
		}, says: "may not release deletions of *"},
		"ada after bob released deletions": { // which have no effect, since bob's commit was never the head
			tell: func(s *signedRepo, _ string) {
				s.as("bob", "commit", "-q", "--allow-empty", "-m", "x\n\nGitfleet-Allow-Delete: *")
				s.sign("ada", file{"apps/x": "1"})
			}},
		"bob changes infra":          {tell: func(s *signedRepo, _ string) { s.sign("bob", file{"infra/x": "1"}) }, says: "signed by bob (SHA256:"},
		"bob deletes infra":          {tell: func(s *signedRepo, _ string) { s.sign("bob", file{"infra/base": ""}) }, says: "who may not change infra/base; have somebody sign it whom source.signatures.paths[0].signers names, or add the signer there"},
		"bob changes what is beside": {tell: func(s *signedRepo, _ string) { s.sign("bob", file{"apps2/x": "1"}) }, says: "may not change apps2/x"},
		"bob makes apps a file": {tell: func(s *signedRepo, _ string) {
			if err := os.RemoveAll(filepath.Join(s.Dir, "apps")); err != nil {
				s.T.Fatal(err)
			}
			s.sign("bob", file{"apps": "1"})
		}},
		"nobody signed":  {tell: func(s *signedRepo, _ string) { s.sign("", file{"apps/x": "1"}) }, says: "not signed"},
		"mallory signed": {tell: func(s *signedRepo, _ string) { s.sign("mallory", file{"apps/x": "1"}) }, says: "is not of an allowed signer"},
		"a signed head on an unsigned commit": {tell: func(s *signedRepo, _ string) {
			s.sign("", file{"apps/x": "1"})
			s.sign("ada", file{"apps/x": "2"})
		}, says: "not signed"},
		"mallory in a merged branch": {tell: func(s *signedRepo, base string) {
			s.Git("checkout", "-q", "-b", "side")
			s.sign("mallory", file{"apps/x": "1"})
			s.Git("checkout", "-q", "main")
			s.sign("ada", file{"apps/y": "1"})
			s.as("ada", "merge", "-q", "--no-ff", "-m", "merge", "side")
		}, says: "is not of an allowed signer"},
		"ada merges bob": {tell: func(s *signedRepo, base string) {
			s.Git("checkout", "-q", "-b", "side")
			s.sign("bob", file{"apps/x": "1"})
			s.Git("checkout", "-q", "main")
			s.sign("ada", file{"infra/x": "1"})
			s.as("ada", "merge", "-q", "--no-ff", "-m", "merge", "side")
		}},
		"bob merges ada's infra as it is": {tell: func(s *signedRepo, base string) {
			s.Git("checkout", "-q", "-b", "side")
			s.sign("ada", file{"infra/x": "1"})
			s.Git("checkout", "-q", "main")
			s.sign("bob", file{"apps/x": "1"})
			s.as("bob", "merge", "-q", "--no-ff", "-m", "merge", "side")
		}},
		"bob edits infra in a merge": {tell: func(s *signedRepo, base string) {
			s.Git("checkout", "-q", "-b", "side")
			s.sign("ada", file{"infra/x": "1"})
			s.Git("checkout", "-q", "main")
			s.sign("bob", file{"apps/x": "1"})
			s.as("bob", "merge", "-q", "--no-ff", "--no-commit", "side")
			s.sign("bob", file{"infra/x": "evil"})
		}, says: "may not change infra/x"},
		"bob adds infra in a merge": {tell: func(s *signedRepo, base string) {
			s.Git("checkout", "-q", "-b", "side")
			s.sign("bob", file{"apps/y": "1"})
			s.Git("checkout", "-q", "main")
			s.sign("bob", file{"apps/x": "1"})
			s.as("bob", "merge", "-q", "--no-ff", "--no-commit", "side")
			s.sign("bob", file{"infra/new": "evil"})
		}, says: "may not change infra/new"},
		"bob drops ada's infra in a merge": {tell: func(s *signedRepo, base string) {
			s.Git("checkout", "-q", "-b", "side")
			s.sign("bob", file{"apps/x": "1"})
			s.Git("checkout", "-q", "main")
			s.sign("ada", file{"infra/x": "1"})
			s.Git("checkout", "-q", "side")
			s.as("bob", "merge", "-q", "--no-ff", "-s", "ours", "-m", "merge", "main")
			s.Git("branch", "-q", "-M", "main")
		}, says: "may not change infra/x"},
		"bob merges three": {tell: func(s *signedRepo, base string) {
			for _, name := range []string{"one", "two"} {
				s.Git("checkout", "-q", "-b", name, base)
				s.sign("bob", file{"apps/" + name: "1"})
			}
			s.Git("checkout", "-q", "main")
			s.sign("bob", file{"apps/three": "1"})
			s.as("bob", "merge", "-q", "--no-ff", "-m", "merge", "one", "two")
		}},
		"a history of its own": {tell: func(s *signedRepo, base string) {
			s.Git("checkout", "-q", "--orphan", "other")
			s.sign("ada", file{"infra/x": "1"})
			s.Git("branch", "-q", "-M", "main")
		}, says: "does not descend from"},
		"an older commit pushed back": {tell: func(s *signedRepo, base string) { s.Git("reset", "-q", "--hard", base+"~1") }, says: "does not descend from"},
		"ada may rewrite": {tell: func(s *signedRepo, base string) {
			s.Git("reset", "-q", "--hard", base+"~1")
			s.sign("ada", file{"infra/x": "1"})
		}, set: func(c *Signatures) { c.AllowRewrite = true }},
		"bob may rewrite apps": {tell: func(s *signedRepo, base string) {
			s.Git("reset", "-q", "--hard", base+"~1")
			s.sign("bob", file{"apps/base": "2"})
		}, set: func(c *Signatures) { c.AllowRewrite = true }},
	}
	beginning := newSignedRepo(t, "ada", "bob")
	beginning.sign("ada", file{"infra/base": "1"})
	base := beginning.sign("ada", file{"apps/base": "1"})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := beginning.copy(t)
			cfg := s.config(t)
			if test.set != nil {
				test.set(cfg.Signatures)
			}
			r := start(t, cfg)
			r.wantHead(base)
			if err := r.poll(); err != nil {
				t.Fatal(err)
			}
			test.tell(s, base)
			err := r.again()
			if test.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				r.wantHead(s.Head())
				return
			}
			wantError(t, err, test.says, "commit ")
			r.wantNoHead()
			if got := r.Status(); got.Head != base || got.Failures != 1 {
				t.Errorf("status is %+v", got)
			}
			wantError(t, r.again(), test.says) // it is refused at the next poll, too
		})
	}
}

// If rewriting is allowed, the files that a rewrite removes count as changed.
func TestARewriteIsJudgedByWhatItChanges(t *testing.T) {
	s := newSignedRepo(t, "ada", "bob")
	old := s.sign("ada", file{"apps/base": "1"})
	base := s.sign("ada", file{"infra/x": "1"})
	cfg := s.config(t)
	cfg.Signatures.AllowRewrite = true
	r := start(t, cfg)
	r.wantHead(base)
	s.Git("reset", "-q", "--hard", old)
	s.sign("bob", file{"apps/base": "2"})
	if err := r.poll(); err != nil {
		t.Fatal(err)
	}
	wantError(t, r.again(), "signed by bob", "may not change infra/x", "it rewrites history")
	r.wantNoHead()
}

// The signer of the first fetched commit must be allowed to change all files in it, unless a
// trusted earlier commit is configured.
func TestTheFirstCommitMustBeVouchedFor(t *testing.T) {
	tests := map[string]struct {
		signers []string // signers of the commits, in order
		since   int      // index of the trusted commit; -1 for none
		says    string
	}{
		"ada":                           {[]string{"ada"}, -1, ""},
		"ada on top of anything":        {[]string{"", "mallory", "ada"}, -1, ""},
		"nobody":                        {[]string{"ada", ""}, -1, "not signed"},
		"bob, who may not do so much":   {[]string{"ada", "bob"}, -1, "set signatures.since"},
		"bob since ada":                 {[]string{"ada", "bob"}, 0, ""},
		"since an unsigned one":         {[]string{"", "ada", "bob"}, 0, ""},
		"unsigned after since":          {[]string{"ada", "", "ada"}, 0, "not signed"},
		"since the head, whoever it is": {[]string{"ada", ""}, 1, ""},
		"since what is not in it":       {[]string{"ada"}, 7, "signatures.since names"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSignedRepo(t, "ada", "bob")
			var commits []string
			for i, signer := range test.signers {
				dir := "infra"
				if signer == "bob" {
					dir = "apps"
				}
				commits = append(commits, s.sign(signer, file{fmt.Sprintf("%s/%d", dir, i): "1"}))
			}
			cfg := s.config(t)
			if test.since >= len(commits) {
				cfg.Signatures.Since = strings.Repeat("1", 40)
			} else if test.since >= 0 {
				cfg.Signatures.Since = commits[test.since]
			}
			r := start(t, cfg)
			err := r.poll()
			if test.says != "" {
				wantError(t, err, test.says)
				r.wantNoHead()
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r.wantHead(s.Head())
		})
	}
}

// The current key files decide: when signatures are required later, when a key was removed, and
// when a file cannot be read.
func TestTrustFollowsTheFiles(t *testing.T) {
	s := newSignedRepo(t, "ada", "bob")
	unsigned := s.sign("", file{"a": "1"})
	cfg := s.config(t)
	signatures := cfg.Signatures
	cfg.Signatures = nil
	t.Run("not asked for", func(t *testing.T) { start(t, cfg).wantHead(unsigned) })
	cfg.Signatures = signatures
	t.Run("asked for later", func(t *testing.T) {
		r := start(t, cfg)
		wantError(t, r.poll(), "not signed")
		r.wantNoHead() // although the store has accepted it before
	})
	first := s.sign("ada", file{"a": "2"})
	r := start(t, cfg)
	r.wantHead(first)
	if err := r.poll(); err != nil {
		t.Fatal(err)
	}
	trusted := read(t, s.allowed)
	second := s.sign("ada", file{"a": "3"})
	for _, content := range []string{"", "nonsense\n", "bob " + strings.SplitN(trusted, "bob ", 2)[1]} {
		s.allow(content)
		if err := r.again(); err == nil {
			t.Fatalf("accepted with %q", content)
		}
		r.wantNoHead()
	}
	s.allow(trusted)
	if err := r.again(); err != nil {
		t.Fatal(err)
	}
	r.wantHead(second)
}

// The last accepted commit is still the base for the next one after a restart, and after the
// store was cloned again.
func TestTheBaseSurvives(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		t.Run(fmt.Sprint("damaged: ", damaged), func(t *testing.T) {
			s := newSignedRepo(t, "ada", "bob")
			s.sign("ada", file{"infra/x": "1"})
			first := s.sign("ada", file{"infra/x": "2"})
			cfg := s.config(t)
			t.Run("before", func(t *testing.T) {
				r := start(t, cfg)
				r.wantHead(first)
				if !damaged {
					return
				}
				for _, path := range packFiles(t, r.Repo, ".idx") {
					if err := os.Truncate(path, 50); err != nil {
						t.Fatal(err)
					}
				}
			})
			s.Git("reset", "-q", "--hard", "HEAD~1")
			r := start(t, cfg)
			if !damaged {
				r.wantHead(first)
			}
			wantError(t, r.poll(), "does not descend from "+first)
			r.wantNoHead()
		})
	}
}

// between and mergeBases agree with git. With wrong commit times they may return more commits,
// but never fewer.
func TestHistoryAgreesWithGit(t *testing.T) {
	for _, mad := range []int{1, 2000} {
		t.Run(fmt.Sprint("clocks off by ", mad), func(t *testing.T) {
			g := gitrepo.New(t)
			random := rand.New(rand.NewPCG(5, 6))
			all := randomHistory(t, g, random, mad)
			r := start(t, config(t, g.Dir))
			r.next()
			st := r.stored.Load()
			for range 40 {
				a, b := all[random.IntN(len(all))], all[random.IntN(len(all))]
				one, other := readFrom(t, st, a), readFrom(t, st, b)
				fresh, descends, err := between(st, one.Hash, other, nil)
				if err != nil {
					t.Fatal(err)
				}
				wantHashes(t, "between", names(fresh), g.Git("rev-list", b, "^"+a), mad == 1)
				bases, err := mergeBases(st, one, other, nil)
				if err != nil {
					t.Fatal(err)
				}
				common := g.Git("merge-base", "--all", a, b)
				wantHashes(t, "merge bases", names(bases), common, mad == 1)
				if want := common == a; descends != want {
					t.Errorf("%s descends from %s: %t", b, a, descends)
				}
			}
		})
	}
}

// randomHistory creates commits with one to three parents each. All of them are ancestors of
// main.
func randomHistory(t *testing.T, g *gitrepo.Repo, random *rand.Rand, mad int) []string {
	t.Helper()
	tree := g.Git("mktree", "--missing")
	var all []string
	for i := range 40 {
		args := []string{"commit-tree", "-m", fmt.Sprint(i), tree}
		for n := range min(i, 1+random.IntN(3)) {
			parent := all[max(0, i-1-n-random.IntN(4))]
			if !slices.Contains(args, parent) {
				args = append(args, "-p", parent)
			}
		}
		t.Setenv("GIT_COMMITTER_DATE", fmt.Sprintf("%d +0000", 1_700_000_000+i*100+random.IntN(mad)))
		all = append(all, g.Git(args...))
	}
	args := []string{"commit-tree", "-m", "all", tree}
	for _, h := range all {
		args = append(args, "-p", h)
	}
	g.Git("update-ref", "refs/heads/main", g.Git(args...))
	return all
}

func readFrom(t *testing.T, st *objects.Store, hash string) *objects.Commit {
	t.Helper()
	c, err := readCommit(st, plumbing.NewHash(hash))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantHashes(t *testing.T, what string, got []string, want string, exactly bool) {
	t.Helper()
	wanted := strings.Fields(want)
	for _, h := range wanted {
		if !slices.Contains(got, h) {
			t.Errorf("%s lack %s", what, h)
		}
	}
	if exactly && len(got) != len(wanted) {
		t.Errorf("%s are %d, want %d", what, len(got), len(wanted))
	}
}

func names(commits []*objects.Commit) []string {
	var out []string
	for _, c := range commits {
		out = append(out, c.Hash.String())
	}
	return out
}

// Where signatures are asked for, a commit has the signer, whom its author cannot choose; elsewhere nothing is said about one.
func TestCommitsHaveTheirSigner(t *testing.T) {
	s := newSignedRepo(t, "ada", "bob")
	cfg := s.config(t)
	first := s.sign("ada", file{"apps/x": "1"})
	r := start(t, cfg)
	r.wantHead(first)
	if err := r.poll(); err != nil {
		t.Fatal(err)
	}
	s.Write(file{"apps/x": "2"})
	s.as("bob", "commit", "-q", "-a", "--author", "ada <ada@example.com>", "-m", "approve")
	if err := r.again(); err != nil {
		t.Fatal(err)
	}
	head := s.Head()
	if c := r.wantHead(head); !strings.HasPrefix(c.Signer, "bob (SHA256:") {
		t.Errorf("the signer of the head is %q", c.Signer)
	}
	c, err := r.Commit(t.Context(), head)
	if err != nil || c.Author != "ada" || !strings.HasPrefix(c.Signer, "bob (SHA256:") {
		t.Errorf("the author is %q, the signer %q, %v", c.Author, c.Signer, err)
	}
	unasked := s.config(t)
	unasked.Signatures = nil
	if c := start(t, unasked).wantHead(head); c.Signer != "" {
		t.Errorf("without signatures the signer is %q", c.Signer)
	}
}
