package forge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// giteaReviews serves a pull request with reviews by user 1, each with one comment on a line.
func giteaReviews(t *testing.T, n int) *httptest.Server {
	t.Helper()
	const list = "/api/v1/repos/a/b/pulls/1/reviews"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		rest, isReview := strings.CutPrefix(r.URL.Path, list)
		switch {
		case r.URL.Path == "/api/v1/user":
			fmt.Fprint(w, `{"id":1}`)
		case isReview && rest == "":
			page, _ := strconv.Atoi(r.URL.Query().Get("page"))
			size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
			reviews := []any{}
			for i := (page - 1) * size; i < min(page*size, n); i++ {
				reviews = append(reviews, map[string]any{"id": i, "comments_count": 1, "user": map[string]any{"id": 1}})
			}
			w.Header().Set("X-Total-Count", strconv.Itoa(n))
			_ = json.NewEncoder(w).Encode(reviews)
		case isReview:
			fmt.Fprintf(w, `[{"body":"marker %s"}]`, strings.Trim(strings.TrimSuffix(rest, "/comments"), "/"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Comments on lines are found in as many reviews as a pull request may have comments. With more
// reviews it is not known what is written already, which is an error.
func TestGiteaFindsTheCommentsOfAllReviews(t *testing.T) {
	find := func(n int) ([]string, error) {
		return newClient(t, forge.Gitea, giteaReviews(t, n).URL, "a/b", "1").FindLineComments(t.Context(), 1, "marker")
	}
	if found, err := find(100); err != nil || len(found) != 100 || found[0] != "marker 0" {
		t.Errorf("%q, %v", found, err)
	}
	if found, err := find(101); err == nil || forge.IsGeneral(err) || !strings.Contains(err.Error(), "101 reviews") {
		t.Errorf("%d found, %v", len(found), err)
	}
}

// gitlabThreads serves a merge request whose changes are those of a commit. New threads on it are
// answered with the statuses, in order.
func gitlabThreads(t *testing.T, head string, statuses ...int) forge.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(map[string]any{"iid": 1, "diff_refs": map[string]any{"base_sha": "1", "start_sha": "1", "head_sha": head}})
			return
		}
		if len(statuses) == 0 {
			t.Errorf("%s %s is not expected", r.Method, r.URL)
			statuses = []int{http.StatusCreated}
		}
		if statuses[0] == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "90")
		}
		w.WriteHeader(statuses[0])
		fmt.Fprint(w, "{}")
		statuses = statuses[1:]
	}))
	t.Cleanup(server.Close)
	return newClient(t, forge.GitLab, server.URL, "a/b", "1")
}

// GitLab compares a merge request with its target some time after a push.
func TestGitLabIsNotReadyForComments(t *testing.T) {
	for _, known := range []string{"", "before"} {
		err := gitlabThreads(t, known).CommentOnLines(t.Context(), 1, "head", "", []forge.LineComment{{Path: "a", Line: 1, Body: "wrong"}})
		if !errors.Is(err, forge.ErrNotReady) || forge.IsGeneral(err) {
			t.Errorf("with the changes of %q: %v", known, err)
		}
	}
}

// A refused comment does not hide that the forge refuses all requests, and for how long.
func TestGitLabRefusesCommentsOnLines(t *testing.T) {
	comments := []forge.LineComment{{Path: "a", Line: 1, Body: "wrong"}, {Path: "b", Line: 1, Body: "wrong"}, {Path: "c", Line: 1, Body: "wrong"}}
	err := gitlabThreads(t, "head", 400, 429).CommentOnLines(t.Context(), 1, "head", "", comments)
	if answer, ok := errors.AsType[*forge.StatusError](err); !ok || !forge.IsGeneral(err) || answer.RetryAfter != 90*time.Second {
		t.Errorf("a rate limit: %v", err)
	}
	err = gitlabThreads(t, "head", 400, 201, 400).CommentOnLines(t.Context(), 1, "head", "", comments)
	if err == nil || forge.IsGeneral(err) || !strings.Contains(err.Error(), "a:1") || !strings.Contains(err.Error(), "c:1") {
		t.Errorf("two refused: %v", err)
	}
}
