package forge_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// giteaList serves the open pull requests of a Gitea server page by page.
func giteaList(t *testing.T, pullRequests []map[string]any) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, to := min((page-1)*size, len(pullRequests)), min(page*size, len(pullRequests))
		w.Header().Set("Content-Type", "application/json")
		if to < len(pullRequests) {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=%d&limit=%d>; rel="next"`, r.Host, r.URL.Path, page+1, size))
		}
		_ = json.NewEncoder(w).Encode(pullRequests[from:to]) // the client stops reading a response that is too large
	}))
	t.Cleanup(server.Close)
	return server
}

// giteaPullRequest returns a pull request from a branch of a repository.
func giteaPullRequest(number, repository int, branch, body string) map[string]any {
	return map[string]any{
		"number": number, "state": "open", "body": body, "labels": []any{map[string]any{"name": "plan-this"}},
		"base": map[string]any{"ref": "main", "label": "main", "repo_id": 1},
		"head": map[string]any{"ref": cmp.Or(branch, fmt.Sprintf("refs/pull/%d/head", number)), "label": branch, "repo_id": repository, "sha": "1"},
	}
}

// Users who can only read a Gitea repository can open pull requests with labels without a fork,
// by pushing to refs/for/. Both kinds are shown as pull requests from forks, without labels.
func TestGiteaShowsWhatStrangersOpenAsForks(t *testing.T) {
	server := giteaList(t, []map[string]any{
		giteaPullRequest(1, 1, "topic", ""), giteaPullRequest(2, 2, "topic", ""), giteaPullRequest(3, 1, "", ""),
	})
	list, err := newClient(t, forge.Gitea, server.URL, "a/b", "1").ListOpen(t.Context(), "main")
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, fork := range []bool{false, true, true} {
		if list[i].Fork != fork || (len(list[i].Labels) == 0) != fork {
			t.Errorf("%+v, want a fork: %v", list[i], fork)
		}
	}
}

// Other pull requests are listed even if there are very many, or very large ones.
func TestLargeListsAreRead(t *testing.T) {
	large, huge := strings.Repeat("x", 1<<20), strings.Repeat("x", 9<<20)
	var all []map[string]any
	for i := range 2200 {
		body := "small"
		switch {
		case i == 77:
			body = huge
		case i >= 100 && i < 110:
			body = large
		}
		all = append(all, giteaPullRequest(i+1, 2, "topic", body))
	}
	list, err := newClient(t, forge.Gitea, giteaList(t, all).URL, "a/b", "1").ListOpen(t.Context(), "main")
	if err != nil || len(list) != len(all)-1 {
		t.Fatalf("%d of %d are listed: %v", len(list), len(all), err)
	}
	for _, pr := range list {
		if pr.Number == 78 || len(pr.Body) > 2000 {
			t.Errorf("number %d has a body of %d bytes", pr.Number, len(pr.Body))
		}
	}
}

// If a response is too large, every client requests smaller pages. It does not count as an
// overloaded forge.
func TestTooLargeAnswersAreAskedForInParts(t *testing.T) {
	huge := strings.Repeat(" ", 9<<20)
	for _, kind := range forge.Types {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			size, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("limit"), r.URL.Query().Get("per_page")))
			w.Header().Set("Content-Type", "application/json")
			if err != nil || size > 5 {
				fmt.Fprint(w, huge)
			}
			fmt.Fprint(w, "[]")
		}))
		defer server.Close()
		c := newClient(t, kind, server.URL, "a/b", "1")
		if list, err := c.ListOpen(t.Context(), "main"); err != nil || len(list) != 0 {
			t.Errorf("%s: %+v, %v", kind, list, err)
		}
		if _, err := c.PullRequest(t.Context(), 1); err == nil || forge.IsGeneral(err) {
			t.Errorf("%s: %v is an error of every request", kind, err)
		}
	}
}

// What is kept of a list is limited, also if the forge sends longer pages than it was asked for.
func TestListsOfAForgeAreBounded(t *testing.T) {
	var long, many []map[string]any
	for i := range 200 {
		long = append(long, giteaPullRequest(i+1, 1, "topic", strings.Repeat("x", 200<<10)))
	}
	for i := range 6000 {
		many = append(many, giteaPullRequest(i+1, 1, "topic", ""))
	}
	all := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(many) //nolint:errcheck // the test would see it
	}))
	defer all.Close()
	for url, want := range map[string]string{giteaList(t, long).URL: "more than 32 MiB of text", all.URL: "more than 5000 are open"} {
		if list, err := newClient(t, forge.Gitea, url, "a/b", "1").ListOpen(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d pull requests, %v, want %q", len(list), err, want)
		}
	}
}
