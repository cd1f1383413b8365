package forge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// Of the reviews of a pull request the last of each user counts, if it approves its head, is not dismissed, and is by somebody else
// than the author who may write to the repository.
func TestApprovals(t *testing.T) {
	pr := forge.PullRequest{Thread: forge.Thread{Number: 7, State: forge.Merged, Ended: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}, Author: "anna", AuthorID: 1, Head: "head"}
	for name, test := range map[string]struct {
		kind    forge.Type
		answers map[string]string
		want    string
	}{
		"gitea": {forge.Gitea, map[string]string{"GET /pulls/7/reviews": `[
			{"id":1,"user":{"id":1,"login":"anna"},"state":"APPROVED","commit_id":"head","official":true,"submitted_at":"2026-03-01T10:00:00Z"},
			{"id":2,"user":{"id":2,"login":"ben"},"state":"APPROVED","commit_id":"head","official":true,"submitted_at":"2026-03-01T10:00:00Z"},
			{"id":3,"user":{"id":3,"login":"reader"},"state":"APPROVED","commit_id":"head","official":false,"submitted_at":"2026-03-01T10:00:00Z"},
			{"id":4,"user":{"id":4,"login":"dismissed"},"state":"APPROVED","commit_id":"head","official":true,"dismissed":true,"submitted_at":"2026-03-01T10:00:00Z"},
			{"id":5,"user":{"id":5,"login":"earlier"},"state":"APPROVED","commit_id":"head~1","official":true,"stale":true,"submitted_at":"2026-03-01T10:00:00Z"},
			{"id":6,"user":{"id":6,"login":"later"},"state":"APPROVED","commit_id":"head","official":true,"submitted_at":"2026-03-01T13:00:00Z"},
			{"id":7,"user":{"id":7,"login":"changed"},"state":"APPROVED","commit_id":"head","official":true,"submitted_at":"2026-03-01T10:00:00Z"},
			{"id":8,"user":{"id":7,"login":"changed"},"state":"REQUEST_CHANGES","commit_id":"head","official":true,"submitted_at":"2026-03-01T11:00:00Z"},
			{"id":9,"user":{"id":2,"login":"ben"},"state":"COMMENT","commit_id":"head","submitted_at":"2026-03-01T11:00:00Z"},
			{"id":10,"team":{"id":2},"state":"REQUEST_REVIEW","commit_id":"head","submitted_at":"2026-03-01T11:00:00Z"}]`}, "ben"},
		"github": {forge.GitHub, map[string]string{
			"GET /pulls/7/reviews": `[
			{"id":2,"user":{"id":2,"login":"ben"},"state":"APPROVED","commit_id":"head","submitted_at":"2026-03-01T10:00:00Z"},
			{"id":3,"user":{"id":3,"login":"reader"},"state":"APPROVED","commit_id":"head","submitted_at":"2026-03-01T10:00:00Z"},
			{"id":4,"user":{"id":4,"login":"dismissed"},"state":"DISMISSED","commit_id":"head","submitted_at":"2026-03-01T10:00:00Z"},
			{"id":5,"user":{"id":5,"login":"earlier"},"state":"APPROVED","commit_id":"head~1","submitted_at":"2026-03-01T10:00:00Z"},
			{"id":6,"user":{"id":6,"login":"later"},"state":"APPROVED","commit_id":"head","submitted_at":"2026-03-01T13:00:00Z"},
			{"id":7,"user":{"id":7,"login":"changed"},"state":"APPROVED","commit_id":"head","submitted_at":"2026-03-01T10:00:00Z"},
			{"id":8,"user":{"id":7,"login":"changed"},"state":"CHANGES_REQUESTED","commit_id":"head","submitted_at":"2026-03-01T11:00:00Z"},
			{"id":9,"user":{"id":2,"login":"ben"},"state":"COMMENTED","commit_id":"head","submitted_at":"2026-03-01T11:00:00Z"}]`,
			"GET /collaborators/ben/permission":    `{"permission":"write"}`,
			"GET /collaborators/later/permission":  `{"permission":"admin"}`,
			"GET /collaborators/reader/permission": `{"permission":"read"}`,
		}, "ben later"},
		"gitlab": {forge.GitLab, map[string]string{
			"GET /merge_requests/7/versions":  `[{"head_commit_sha":"head","created_at":"2026-03-01T09:00:00Z"},{"head_commit_sha":"head~1","created_at":"2026-03-01T08:00:00Z"}]`,
			"GET /merge_requests/7/approvals": `{"approved_by":[{"user":{"id":1}},{"user":{"id":2}},{"user":{"id":3}},{"user":{"id":5}}]}`,
			"GET /merge_requests/7/notes": `[
			{"id":1,"system":true,"body":"approved this merge request","author":{"id":1,"username":"anna"},"created_at":"2026-03-01T10:00:00Z"},
			{"id":2,"system":true,"body":"approved this merge request","author":{"id":2,"username":"ben"},"created_at":"2026-03-01T10:00:00Z"},
			{"id":3,"system":true,"body":"approved this merge request","author":{"id":3,"username":"reader"},"created_at":"2026-03-01T10:00:00Z"},
			{"id":4,"system":true,"body":"approved this merge request","author":{"id":4,"username":"removed"},"created_at":"2026-03-01T10:00:00Z"},
			{"id":5,"system":true,"body":"approved this merge request","author":{"id":5,"username":"earlier"},"created_at":"2026-03-01T08:30:00Z"},
			{"id":6,"system":false,"body":"approved this merge request","author":{"id":6,"username":"pretends"},"created_at":"2026-03-01T10:00:00Z"},
			{"id":7,"system":true,"body":"approved this merge request","author":{"id":7,"username":"changed"},"created_at":"2026-03-01T10:00:00Z"},
			{"id":8,"system":true,"body":"unapproved this merge request","author":{"id":7,"username":"changed"},"created_at":"2026-03-01T11:00:00Z"}]`,
			"GET /members/all/2": `{"id":2,"access_level":30,"state":"active"}`,
			"GET /members/all/3": `{"id":3,"access_level":20,"state":"active"}`,
		}, "ben"},
		"gitlab, of a head that is not known": {forge.GitLab, map[string]string{"GET /merge_requests/7/versions": `[]`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := newClient(t, test.kind, answering(t, test.answers), "a/b", "1").Approvals(t.Context(), pr)
			var got []string
			for _, a := range list {
				got = append(got, a.Author)
			}
			if err != nil || strings.Join(got, " ") != test.want {
				t.Errorf("got %v, %v, want %q", got, err, test.want)
			}
		})
	}
}

// The pull request of a commit is the one whose merge has made it, and not another one that has it, too.
func TestMergedPullRequest(t *testing.T) {
	const gitlab, github = `{"iid":7,"state":"merged","target_branch":"main","merge_commit_sha":"c1"}`, `{"number":7,"merged_at":"2026-03-01T10:00:00Z","base":{"ref":"main"},"merge_commit_sha":"c1"}`
	for name, test := range map[string]struct {
		kind   forge.Type
		path   string
		answer string
		found  bool
	}{
		"gitea":                    {forge.Gitea, "/commits/c1/pull", `{"number":7,"merged":true,"base":{"ref":"main"},"merge_commit_sha":"c1"}`, true},
		"gitea, another base":      {forge.Gitea, "/commits/c1/pull", `{"number":7,"merged":true,"base":{"ref":"other"},"merge_commit_sha":"c1"}`, false},
		"gitea, none":              {forge.Gitea, "/commits/c1/pull", `404 {"message":"not found"}`, false},
		"github":                   {forge.GitHub, "/commits/c1/pulls", `[{"number":6,"base":{"ref":"main"},"merge_commit_sha":"c1"},` + github + `]`, true},
		"github, an open one":      {forge.GitHub, "/commits/c1/pulls", `[{"number":6,"base":{"ref":"main"},"merge_commit_sha":"c1"}]`, false},
		"github, the commit is in": {forge.GitHub, "/commits/c1/pulls", strings.ReplaceAll("["+github+"]", `"c1"`, `"c2"`), false},
		"gitlab":                   {forge.GitLab, "/commits/c1/merge_requests", "[" + gitlab + "]", true},
		"gitlab, none":             {forge.GitLab, "/commits/c1/merge_requests", "[]", false},
	} {
		t.Run(name, func(t *testing.T) {
			pr, err := newClient(t, test.kind, answering(t, map[string]string{"GET " + test.path: test.answer}), "a/b", "1").MergedPullRequest(t.Context(), "main", "c1")
			if err != nil || (pr != nil) != test.found || pr != nil && pr.Number != 7 {
				t.Errorf("got %+v, %v", pr, err)
			}
		})
	}
}
