package forge_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/test/giteaserver"
)

func TestGitea(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a Gitea")
	}
	server := giteaserver.Start(t)
	repository := server.Repository("hub", map[string]string{"apps/web.yaml": "replicas: 1\n"})
	guest := server.AddUser("guest")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	commit := func(c *gitea.Client, owner, branch string) string {
		t.Helper()
		made, _, err := c.CreateFile(owner, "hub", branch+".yaml", gitea.CreateFileOptions{
			FileOptions: gitea.FileOptions{Message: "add a file", BranchName: "main", NewBranchName: branch}, Content: "YTogMQo=",
		})
		must(err)
		return made.Commit.SHA
	}
	label := func(number int64, names ...string) {
		t.Helper()
		known, _, err := server.Client.ListRepoLabels(giteaserver.User, "hub", gitea.ListLabelsOptions{})
		must(err)
		var ids []int64
		for _, name := range names {
			i := slices.IndexFunc(known, func(l *gitea.Label) bool { return l.Name == name })
			if i < 0 {
				made, _, err := server.Client.CreateLabel(giteaserver.User, "hub", gitea.CreateLabelOption{Name: name, Color: "#0969da"})
				must(err)
				i, known = len(known), append(known, made)
			}
			ids = append(ids, known[i].ID)
		}
		_, _, err = server.Client.ReplaceIssueLabels(giteaserver.User, "hub", number, gitea.IssueLabelsOption{Labels: ids})
		must(err)
	}
	fleet, _, err := server.Client.GetMyUserInfo()
	must(err)
	owner := forge.Remark{Author: fleet.UserName, AuthorID: fleet.ID}
	h := host{
		client: newClient(t, forge.Gitea, server.URL, repository, server.Token),
		url:    server.URL,
		step:   func(name string) { t.Log(name) },
		commit: func(branch string) string { return commit(server.Client, giteaserver.User, branch) },
		fork: func(branch string) (int64, string) {
			_, _, err := guest.CreateFork(giteaserver.User, "hub", gitea.CreateForkOption{})
			must(err)
			head := commit(guest, "guest", branch)
			pr, _, err := guest.CreatePullRequest(giteaserver.User, "hub", gitea.CreatePullRequestOption{Head: "guest:" + branch, Base: "main", Title: "WIP: from a fork", Body: "please"})
			must(err)
			return pr.Index, head
		},
		comment: func(number int64, body string) {
			_, _, err := guest.CreateIssueComment(giteaserver.User, "hub", number, gitea.CreateIssueCommentOption{Body: body})
			must(err)
		},
		merge: func(number int64) { server.Merge("hub", number) },
		label: label,
		issue: func(i forge.NewIssue) {
			opened, _, err := guest.CreateIssue(giteaserver.User, "hub", gitea.CreateIssueOption{Title: i.Title, Body: i.Body})
			must(err)
			label(opened.Index, i.Labels...)
		},
		noIssues: func() {
			off := false
			_, _, err := server.Client.EditRepo(giteaserver.User, "hub", gitea.EditRepoOption{HasIssues: &off})
			must(err)
		},
		status: func(commit, context string) (string, int) {
			all, _, err := server.Client.GetCombinedStatus(giteaserver.User, "hub", commit)
			must(err)
			if len(all.Statuses) != 1 || all.Statuses[0].Context != context {
				t.Fatalf("commit %s has the statuses %+v", commit, all.Statuses)
			}
			return string(all.Statuses[0].State), utf8.RuneCountInString(all.Statuses[0].Description)
		},
		since:   time.Now().Add(-time.Hour),
		owner:   owner,
		headRef: func(number int64) string { return fmt.Sprintf("refs/pull/%d/head", number) },
		lineURL: "/" + repository + "/src/commit/%s/apps/a%%20b%%23%%281%%29.yaml#L3",
	}
	keepsContract(t, h)
	keepsIssueContract(t, h)

	client := newClient(t, forge.Gitea, server.URL, repository, server.Token)
	main, _, err := server.Client.GetRepoBranch(giteaserver.User, "hub", "main")
	must(err)
	for path, want := range map[string]int{"apps/web.yaml": http.StatusOK, "apps/absent.yaml": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, client.LineURL(main.Commit.ID, path, 1), nil)
		must(err)
		req.Header.Set("Authorization", "token "+server.Token)
		resp, err := http.DefaultClient.Do(req)
		must(err)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s is answered with %d, want %d", req.URL, resp.StatusCode, want)
		}
	}

	commit(server.Client, giteaserver.User, "reviewed")
	opened, _, err := server.Client.CreatePullRequest(giteaserver.User, "hub", gitea.CreatePullRequestOption{Head: "reviewed", Base: "main", Title: "reviewed"})
	must(err)
	for _, want := range []int{0, 1} { // at first the reviewer may only read
		_, _, err = guest.CreatePullReview(giteaserver.User, "hub", opened.Index, gitea.CreatePullReviewOptions{State: gitea.ReviewStateApproved, Body: "fine"})
		must(err)
		pr, err := client.PullRequest(t.Context(), opened.Index)
		must(err)
		if list, err := client.Approvals(t.Context(), pr); err != nil || len(list) != want || want > 0 && list[0].Author != "guest" {
			t.Errorf("approved by %+v, %v, want %d", list, err, want)
		}
		_, err = server.Client.AddCollaborator(giteaserver.User, "hub", "guest", gitea.AddCollaboratorOption{Permission: new(gitea.AccessModeWrite)})
		must(err)
	}
	server.Merge("hub", opened.Index)
	pr, err := client.PullRequest(t.Context(), opened.Index)
	must(err)
	merged, err := client.MergedPullRequest(t.Context(), "main", pr.MergeCommit)
	must(err)
	if merged == nil || merged.Number != opened.Index {
		t.Errorf("commit %s was made by %+v", pr.MergeCommit, merged)
	}
	if list, err := client.Approvals(t.Context(), *merged); err != nil || len(list) != 1 {
		t.Errorf("once it is merged, it is approved by %+v, %v", list, err)
	}

	archived := true
	_, _, err = server.Client.EditRepo(giteaserver.User, "hub", gitea.EditRepoOption{Archived: &archived})
	must(err)
	if a, err := client.Access(t.Context()); err != nil || a != (forge.Access{User: giteaserver.User, Archived: true, NoIssues: true}) {
		t.Errorf("the access to an archived repository is %+v, %v", a, err)
	}

	const wrong = "not-a-token-of-this-forge"
	_, err = newClient(t, forge.Gitea, server.URL, repository, wrong).ListOpen(t.Context(), "main")
	if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), wrong) {
		t.Errorf("a wrong token: %v", err)
	}
	_, err = newClient(t, forge.Gitea, server.URL, "fleet/absent", server.Token).ListOpen(t.Context(), "main")
	if err == nil || !strings.Contains(err.Error(), "no such repository") {
		t.Errorf("no repository: %v", err)
	}
}
