package gitsource

import (
	"errors"
	"net/http"
	"testing"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// Branches, tags, ranges and commits are tracked over every transport.
func TestReferencesAreFollowed(t *testing.T) {
	for _, kind := range []string{"http", "file"} {
		t.Run(kind, func(t *testing.T) {
			g := gitrepo.New(t)
			commits := map[string]string{}
			for _, name := range []string{"one", "two", "three", "four", "five"} {
				commits[name] = g.Commit(name, map[string]string{name: name})
			}
			g.Git("branch", "side", commits["two"])
			g.Git("tag", "light", commits["one"])
			g.Git("tag", "-a", "-m", "heavy", "heavy", commits["two"])
			g.Git("tag", "-a", "-m", "tag of a tag", "nested", "heavy")
			g.Git("tag", "v1.2.0", commits["one"])
			g.Git("tag", "-a", "-m", "release", "v1.10.0", commits["two"])
			g.Git("tag", "1.9.0", commits["three"])
			g.Git("tag", "v1.11.0-rc.1", commits["four"])
			g.Git("tag", "v2.0.0", commits["five"])
			g.Git("tag", "latest", commits["five"])
			g.Git("tag", "a-file", "HEAD:one")
			tests := map[string]struct {
				ref  Ref
				want string
				says string
			}{
				"default branch":        {Ref{}, "five", ""},
				"branch":                {Ref{Branch: "side"}, "two", ""},
				"light tag":             {Ref{Tag: "light"}, "one", ""},
				"annotated tag":         {Ref{Tag: "heavy"}, "two", ""},
				"tag of a tag":          {Ref{Tag: "nested"}, "two", ""},
				"range":                 {Ref{SemVer: "1.x"}, "two", ""},
				"range with an end":     {Ref{SemVer: ">=1.2 <1.10"}, "three", ""},
				"range of pre-releases": {Ref{SemVer: ">=1.2.0-0 <2"}, "four", ""},
				"any version":           {Ref{SemVer: "*"}, "five", ""},
				"commit at a tip":       {Ref{Commit: commits["five"]}, "five", ""},
				"commit below a tip":    {Ref{Commit: commits["three"]}, "three", ""},
				"no such branch":        {Ref{Branch: "gone"}, "", "branch gone: not on the remote"},
				"branch named as a tag": {Ref{Branch: "light"}, "", "branch light: not on the remote"},
				"no such tag":           {Ref{Tag: "gone"}, "", "tag gone: not on the remote"},
				"nothing in the range":  {Ref{SemVer: ">=3"}, "", "no tag is in the range"},
				"no such commit":        {Ref{Commit: "0123456789012345678901234567890123456789"}, "", "commit 0123456789012345678901234567890123456789: not on the remote"},
				"tag of a file":         {Ref{Tag: "a-file"}, "", "another type"},
			}
			s := serveGit(t, g)
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					address := s.URL
					if kind == "file" {
						address = g.Dir
					}
					cfg := config(t, address)
					cfg.Ref = test.ref
					r := start(t, cfg)
					if err := r.poll(); test.says != "" {
						wantError(t, err, test.says)
						r.wantNoHead()
						wantError(t, r.again(), test.says)
						return
					} else if err != nil {
						t.Fatal(err)
					}
					r.wantHead(commits[test.want])
					s.requests()
					if err := r.again(); err != nil {
						t.Fatal(err)
					}
					r.wantNoHead()
					if got := s.requests(); len(got) > 1 || test.ref.Commit != "" && len(got) > 0 {
						t.Errorf("an unchanged poll made the requests %q", got)
					}
				})
			}
		})
	}
}

// In a range, a new higher tag is tracked from then on. If the tracked tag is moved, the new
// commit is fetched; if it is deleted, the next lower tag is tracked.
func TestTagsMove(t *testing.T) {
	g := gitrepo.New(t)
	one := g.Commit("one", nil)
	g.Git("tag", "-a", "-m", "release", "v1.0.0")
	cfg := config(t, serveGit(t, g).URL)
	cfg.Ref = Ref{SemVer: "^1"}
	r := start(t, cfg)
	r.wantHead(one)
	two := g.Commit("two", nil)
	g.Git("tag", "v1.1.0")
	if err := errors.Join(r.poll(), r.again()); err != nil {
		t.Fatal(err)
	}
	r.wantHead(two)
	three := g.Commit("three", nil)
	g.Git("tag", "-f", "v1.1.0")
	if err := r.again(); err != nil {
		t.Fatal(err)
	}
	r.wantHead(three)
	g.Git("tag", "-d", "v1.1.0")
	if err := r.again(); err != nil {
		t.Fatal(err)
	}
	r.wantHead(one)
}

// Once a pinned commit was fetched, the remote is not needed any more.
func TestAPinnedCommitNeedsNoRemote(t *testing.T) {
	g := gitrepo.New(t)
	one := g.Commit("one", nil)
	g.Commit("two", nil)
	s := serveGit(t, g)
	cfg := config(t, s.URL)
	cfg.Ref = Ref{Commit: one}
	t.Run("before", func(t *testing.T) { start(t, cfg).wantHead(one) })
	s.answer(status(http.StatusServiceUnavailable))
	r := start(t, cfg)
	r.wantHead(one)
	if err := r.poll(); err != nil {
		t.Error(err)
	}
}

// Follows tells a webhook which pushes matter.
func TestFollows(t *testing.T) {
	for _, test := range []struct {
		ref  Ref
		push string
		want bool
	}{
		{Ref{Branch: "main"}, "refs/heads/main", true},
		{Ref{Branch: "main"}, "refs/heads/main2", false},
		{Ref{Branch: "main"}, "refs/tags/main", false},
		{Ref{Tag: "v1"}, "refs/tags/v1", true},
		{Ref{Tag: "v1"}, "refs/heads/v1", false},
		{Ref{SemVer: "1.x"}, "refs/tags/v1.0.0", true},
		{Ref{SemVer: "1.x"}, "refs/heads/main", false},
		{Ref{Commit: "0123456789012345678901234567890123456789"}, "refs/heads/any", true},
		{Ref{}, "refs/heads/any", true},
		{Ref{}, "refs/tags/any", false},
	} {
		if got := test.ref.Follows(test.push); got != test.want {
			t.Errorf("%s follows %s: %t", test.ref, test.push, got)
		}
	}
}
