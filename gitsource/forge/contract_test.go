package forge_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// A host is a forge that is tested against the contract of Client. It has the repository hub of
// the user fleet, whose branch main has one file. The functions do what others than the client
// do on the forge.
type host struct {
	client forge.Client
	url    string
	// step announces the next part of the contract.
	step func(name string)
	// commit creates a branch with another commit than main, and returns its hash.
	commit func(branch string) string
	// fork makes the user guest open a pull request to main from a fork, and returns its number
	// and the hash of its head.
	fork func(branch string) (int64, string)
	// comment adds a comment of the user guest.
	comment func(number int64, body string)
	merge   func(number int64)
	// label replaces the labels of a pull request or an issue.
	label func(number int64, names ...string)
	// issue opens an issue as the user guest, and labels it as the user fleet.
	issue func(i forge.NewIssue)
	// noIssues disables issues.
	noIssues func()
	// status returns the state of a commit's status and the length of its description; nil if
	// only the recorded requests show them.
	status func(commit, context string) (string, int)
	// headRef returns the reference under which the forge keeps the head of a pull request.
	headRef func(number int64) string
	// since is before the first comment, and owner is a comment of the user fleet.
	since time.Time
	owner forge.Remark
	// lineURL is the address of the third line of a file in a commit; %s stands for the commit.
	lineURL string
}

const (
	driftLabel = "gitfleet/drift"
	marker     = "<!-- gitfleet/plan -->"
	lineMarker = "<!-- gitfleet/problem -->"
)

// keepsContract tests a forge against the contract of Client.
func keepsContract(t *testing.T, h host) {
	c, ctx := h.client, t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const branch = "gitfleet/drift/1"

	head := h.commit(branch)

	h.step("no pull request yet")
	if pr, err := c.FindPullRequest(ctx, "main", branch); err != nil || pr != nil {
		t.Errorf("found %v, %v", pr, err)
	}

	h.step("open")
	opened, err := c.OpenPullRequest(ctx, forge.NewPullRequest{Base: "main", Branch: branch, Title: "Drift", Body: "one", Labels: []string{driftLabel, "placement/web"}})
	must(err)
	want := forge.PullRequest{
		Thread: forge.Thread{Number: opened.Number, URL: opened.URL, Title: "Drift", Body: "one", Labels: []string{driftLabel, "placement/web"}, State: forge.Open},
		Base:   "main", Branch: branch, Head: head, HeadRef: h.headRef(opened.Number),
	}
	check := func(what string, got, want forge.PullRequest) {
		t.Helper()
		if !slices.Equal(got.Labels, want.Labels) {
			t.Errorf("%s: labels %q, want %q", what, got.Labels, want.Labels)
		}
		if got.Ended.IsZero() != (want.State == forge.Open) {
			t.Errorf("%s: ended at %s", what, got.Ended)
		}
		if got.Opened.IsZero() {
			t.Errorf("%s: it is not known when it was opened", what)
		}
		if got.Author == "" || got.AuthorID == 0 {
			t.Errorf("%s: it is not known who opened it", what)
		}
		got.Author, got.AuthorID = "", 0
		got.Labels, got.Opened, got.Ended, want.Labels = nil, time.Time{}, time.Time{}, nil
		if !strings.HasPrefix(got.URL, h.url) || got.Number == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", what, got, want)
		}
	}
	check("opened", opened, want)

	h.step("open again")
	if _, err := c.OpenPullRequest(ctx, forge.NewPullRequest{Base: "main", Branch: branch, Title: "Drift", Body: "two"}); err == nil {
		t.Error("two pull requests are open of one branch")
	}

	h.step("edit")
	must(c.Edit(ctx, opened.Thread, forge.Edit{Title: "Another drift", Body: "edited", AddLabels: []string{"placement/shop"}, RemoveLabels: []string{"placement/web", "not there"}}))

	h.step("read the edited")
	edited, err := c.PullRequest(ctx, opened.Number)
	must(err)
	want.Title, want.Body, want.Labels = "Another drift", "edited", []string{driftLabel, "placement/shop"}
	check("edited", edited, want)

	h.step("read")
	h.label(opened.Number, driftLabel, "gitfleet/hold")
	got, err := c.PullRequest(ctx, opened.Number)
	must(err)
	want.Labels = []string{driftLabel, "gitfleet/hold"}
	check("read", got, want)

	h.step("fork")
	number, forkHead := h.fork("proposal")

	h.step("list")
	list, err := c.ListOpen(ctx, "main")
	must(err)
	if len(list) != 2 {
		t.Fatalf("%d are open: %+v", len(list), list)
	}
	check("listed", list[0], want)
	check("listed of a fork", list[1], forge.PullRequest{
		Thread: forge.Thread{Number: number, URL: list[1].URL, Title: list[1].Title, Body: "please", State: forge.Open},
		Base:   "main", Branch: "proposal", Fork: true, Head: forkHead, HeadRef: h.headRef(number),
	})

	h.step("list again")
	if again, err := c.ListOpen(ctx, "main"); err != nil || !reflect.DeepEqual(again, list) {
		t.Errorf("the same list is %+v, %v", again, err)
	}

	h.step("list another base")
	if list, err := c.ListOpen(ctx, "other"); err != nil || len(list) != 0 {
		t.Errorf("to another base are open %+v, %v", list, err)
	}

	h.step("comment")
	h.comment(opened.Number, "of somebody else "+marker)
	if found, err := c.FindComment(ctx, opened.Number, marker); err != nil || found != nil {
		t.Errorf("found %v, %v", found, err)
	}
	added, err := c.AddComment(ctx, opened.Number, "first\n"+marker)
	must(err)
	must(c.EditComment(ctx, opened.Number, added.ID, "second\n"+marker))

	h.step("find a comment")
	if found, err := c.FindComment(ctx, opened.Number, marker); err != nil || found == nil || *found != (forge.Comment{ID: added.ID, Body: "second\n" + marker}) {
		t.Errorf("found %+v, %v", found, err)
	}

	h.step("comments of others")
	remarks, err := c.ListRemarks(ctx, h.since)
	must(err)
	if len(remarks) != 1 || remarks[0].Number != opened.Number || remarks[0].Author != "guest" || remarks[0].Body != "of somebody else "+marker || remarks[0].At.Before(h.since) {
		t.Fatalf("commented: %+v", remarks)
	}

	h.step("who may write")
	for i, author := range []forge.Remark{remarks[0], h.owner} {
		if may, err := c.MayWrite(ctx, author); err != nil || may != (i == 1) {
			t.Errorf("%s may write: %t, %v", author.Author, may, err)
		}
	}

	labels := []forge.Label{{Name: driftLabel, Color: "#0969da", Description: "drift"}, {Name: "gitfleet/new", Color: "#8250df", Description: "Keeps the object as it is"}}
	h.step("create labels")
	must(c.EnsureLabels(ctx, labels))

	h.step("create no labels")
	must(c.EnsureLabels(ctx, labels))

	h.step("request reviewers")
	if refused, err := c.RequestReviewers(ctx, opened.Number, []string{"guest", "nobody"}); err != nil || !slices.Equal(refused, []string{"nobody"}) {
		t.Errorf("refused: %q, %v", refused, err)
	}

	h.step("find no comment on a line")
	if found, err := c.FindLineComments(ctx, opened.Number, lineMarker); err != nil || len(found) > 0 {
		t.Errorf("found %q, %v", found, err)
	}

	h.step("comment on a line")
	must(c.CommentOnLines(ctx, opened.Number, head, "1 problem", []forge.LineComment{{Path: branch + ".yaml", Line: 1, Body: lineMarker + "\nwrong"}}))

	h.step("find a comment on a line")
	if found, err := c.FindLineComments(ctx, opened.Number, lineMarker); err != nil || !slices.Equal(found, []string{lineMarker + "\nwrong"}) {
		t.Errorf("found %q, %v", found, err)
	}

	for _, s := range []forge.StatusState{forge.StatusPending, forge.StatusSuccess, forge.StatusFailure, forge.StatusErrored} {
		h.step("status " + string(s))
		must(c.SetStatus(ctx, forge.Status{Commit: head, Context: "gitfleet/plan", State: s, Description: strings.Repeat("é", 300), URL: "https://gitfleet.example.com/plan"}))
		if h.status == nil {
			continue
		}
		if state, length := h.status(head, "gitfleet/plan"); state != string(s) || length > 255 {
			t.Errorf("the status is %s with %d characters, want %s", state, length, s)
		}
	}

	h.step("find a status")
	shown, err := c.FindStatus(ctx, head, "gitfleet/plan")
	must(err)
	if shown == nil || shown.State != forge.StatusErrored && shown.State != forge.StatusFailure || !strings.HasPrefix(shown.Description, "éé") || shown.Commit != head || shown.Context != "gitfleet/plan" {
		t.Errorf("the status is %+v", shown)
	}

	h.step("find no status")
	if shown, err := c.FindStatus(ctx, head, "gitfleet/rollout"); err != nil || shown != nil {
		t.Errorf("the status is %+v, %v", shown, err)
	}

	h.step("link to a line")
	if got, want := c.LineURL(head, "apps/a b#(1).yaml", 3), fmt.Sprintf(h.url+h.lineURL, head); got != want {
		t.Errorf("the line is at %s, want %s", got, want)
	}

	h.step("access")
	if a, err := c.Access(ctx); err != nil || a != (forge.Access{User: "fleet"}) {
		t.Errorf("the access is %+v, %v", a, err)
	}

	h.step("close")
	must(c.Close(ctx, opened.Thread, "it is over", "closed"))

	h.step("find what is closed")
	found, err := c.FindPullRequest(ctx, "main", branch)
	must(err)
	if found == nil {
		t.Fatal("the closed pull request is not found")
	}
	want.Body, want.State = "closed", forge.Closed
	check("closed", *found, want)

	h.step("merge")
	head = h.commit("gitfleet/drift/2")
	opened, err = c.OpenPullRequest(ctx, forge.NewPullRequest{Base: "main", Branch: "gitfleet/drift/2", Title: "Drift", Body: "one"})
	must(err)
	h.merge(opened.Number)

	h.step("find what is merged")
	found, err = c.FindPullRequest(ctx, "main", "gitfleet/drift/2")
	must(err)
	if found == nil {
		t.Fatal("the merged pull request is not found")
	}
	if found.MergeCommit == "" || found.MergeCommit == head {
		t.Errorf("the merge commit is %q", found.MergeCommit)
	}
	check("merged", *found, forge.PullRequest{
		Thread: forge.Thread{Number: opened.Number, Title: "Drift", URL: opened.URL, Body: "one", State: forge.Merged},
		Base:   "main", Branch: "gitfleet/drift/2", Head: head, HeadRef: h.headRef(opened.Number), MergeCommit: found.MergeCommit,
	})

	h.step("end")
}
