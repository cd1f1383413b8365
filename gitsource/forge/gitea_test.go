package forge_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/test/giteaserver"
)

func newGitea(t *testing.T, url, repository, token string) *forge.Gitea {
	t.Helper()
	g, err := forge.NewGitea(forge.Config{URL: url, Repository: repository, Token: func() (string, error) { return token, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A pull request is opened, found in every state, edited and closed.
func TestPullRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a Gitea")
	}
	server := giteaserver.Start(t)
	repository := server.Repository("hub", map[string]string{"apps/a b.yaml": "replicas: 1\n"})
	g, ctx := newGitea(t, server.URL, repository, server.Token), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	commit := forge.Commit{Base: "main", Branch: "gitfleet/drift/1", Path: "apps/a b.yaml", Before: []byte("replicas: 1\n"), After: []byte("replicas: 2\n"), Message: "scale"}

	for what, there := range map[string]bool{"main": true, commit.Branch: false} {
		if got, err := g.HasBranch(ctx, what); err != nil || got != there {
			t.Errorf("HasBranch(%s) = %v, %v", what, got, err)
		}
	}
	if pr, err := g.FindPullRequest(ctx, "main", commit.Branch); err != nil || pr != nil {
		t.Errorf("found %v, %v", pr, err)
	}
	stale := commit
	stale.Before = []byte("replicas: 7\n")
	if err := g.Commit(ctx, stale); !errors.Is(err, forge.ErrStale) {
		t.Errorf("a file that is another one: %v", err)
	}
	must(g.Commit(ctx, commit))
	if err := g.Commit(ctx, commit); err == nil {
		t.Error("a branch that is there was written to")
	}
	opened, err := g.OpenPullRequest(ctx, forge.Proposal{Base: "main", Branch: commit.Branch, Title: "Drift", Body: "one"})
	must(err)
	if opened.State != forge.Open || opened.Branch != commit.Branch || !strings.HasPrefix(opened.URL, server.URL) || opened.Body != "one" {
		t.Errorf("opened %+v", opened)
	}
	if _, err := g.OpenPullRequest(ctx, forge.Proposal{Base: "main", Branch: commit.Branch, Title: "Drift", Body: "two"}); err == nil {
		t.Error("two pull requests are open of one branch")
	}
	diff, _, err := server.Client.GetPullRequestDiff(giteaserver.User, "hub", opened.Number, gitea.PullRequestDiffOptions{})
	must(err)
	if got := string(diff); !strings.Contains(got, "-replicas: 1\n+replicas: 2\n") {
		t.Errorf("the diff is\n%s", got)
	}
	must(g.EditPullRequest(ctx, opened.Number, "edited"))
	list, err := g.OpenPullRequests(ctx, "main", "gitfleet/drift/")
	if err != nil || len(list) != 1 || list[0].Number != opened.Number || list[0].Body != "edited" {
		t.Errorf("open are %+v, %v", list, err)
	}
	if list, err := g.OpenPullRequests(ctx, "main", "other/"); err != nil || len(list) != 0 {
		t.Errorf("of another prefix are open %+v, %v", list, err)
	}
	must(g.ClosePullRequest(ctx, opened.Number, "it is over", "closed"))
	must(g.DeleteBranch(ctx, commit.Branch))
	must(g.DeleteBranch(ctx, commit.Branch))
	found, err := g.FindPullRequest(ctx, "main", commit.Branch)
	if err != nil || found == nil || found.State != forge.Closed || found.Body != "closed" || found.Ended.IsZero() {
		t.Errorf("closed: %+v, %v", found, err)
	}

	commit.Branch = "gitfleet/drift/2"
	must(g.Commit(ctx, commit))
	opened, err = g.OpenPullRequest(ctx, forge.Proposal{Base: "main", Branch: commit.Branch, Title: "Drift", Body: "one"})
	must(err)
	server.Merge("hub", opened.Number)
	found, err = g.FindPullRequest(ctx, "main", commit.Branch)
	if err != nil || found == nil || found.State != forge.Merged || found.Ended.IsZero() {
		t.Errorf("merged: %+v, %v", found, err)
	}

	const wrong = "not-a-token-of-this-forge"
	_, err = newGitea(t, server.URL, repository, wrong).OpenPullRequests(ctx, "main", "")
	if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), wrong) {
		t.Errorf("a wrong token: %v", err)
	}
	_, err = newGitea(t, server.URL, "fleet/absent", server.Token).OpenPullRequests(ctx, "main", "")
	if err == nil || !strings.Contains(err.Error(), "no such repository") {
		t.Errorf("no repository: %v", err)
	}
}

// What is no answer of a forge is an error that shows no credentials.
func TestBadAnswers(t *testing.T) {
	const token = "0123456789abcdef-secret"
	tests := map[string]struct {
		answer http.HandlerFunc
		want   string
		wait   time.Duration
	}{
		"a web page": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte("<html><title>Sign in</title>" + r.Header.Get("Authorization")))
		}, "a web page: Sign in", 0},
		"an echo": {func(w http.ResponseWriter, r *http.Request) { http.Error(w, r.Header.Get("Authorization"), 500) }, "500", 0},
		"a rate limit": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(429)
		}, "429", 90 * time.Second},
		"moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example.com", http.StatusMovedPermanently)
		}, "has moved", 0},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
					return
				}
			}
		}, "larger than", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			_, err := newGitea(t, server.URL, "a/b", token).OpenPullRequests(t.Context(), "main", "")
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), token) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if answer, ok := errors.AsType[*forge.StatusError](err); test.wait > 0 && (!ok || answer.RetryAfter != test.wait) {
				t.Errorf("%+v, want to wait %s", answer, test.wait)
			}
		})
	}
}
