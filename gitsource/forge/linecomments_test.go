package forge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

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
