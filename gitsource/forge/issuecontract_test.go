package forge_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// keepsIssueContract tests a forge against the contract of Client for issues.
func keepsIssueContract(t *testing.T, h host) {
	c, ctx := h.client, t.Context()
	const issueLabel = "gitfleet/manual-edit"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, got, want forge.Thread) {
		t.Helper()
		if got.Ended.IsZero() != (want.State == forge.Open) {
			t.Errorf("%s: ended at %s", what, got.Ended)
		}
		if got.Opened.IsZero() {
			t.Errorf("%s: it is not known when it was opened", what)
		}
		got.Opened, got.Ended = time.Time{}, time.Time{}
		if !strings.HasPrefix(got.URL, h.url) || got.Number == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", what, got, want)
		}
	}
	listed := func(state forge.State, n int) []forge.Thread {
		t.Helper()
		list, err := c.ListIssues(ctx, issueLabel, state)
		must(err)
		if len(list) != n {
			t.Fatalf("%d issues are %q: %+v", len(list), state, list)
		}
		return list
	}

	h.step("no issue yet")
	listed("", 0)

	h.step("open an issue")
	draft := forge.NewIssue{Title: "Drift", Body: "one", Labels: []string{driftLabel, issueLabel}}
	opened, err := c.OpenIssue(ctx, draft)
	must(err)
	want := forge.Thread{Kind: forge.KindIssue, Number: opened.Number, URL: opened.URL, Title: "Drift", Body: "one", Labels: draft.Labels, State: forge.Open}
	check("opened", opened, want)

	h.step("edit an issue")
	must(c.Edit(ctx, opened, forge.Edit{Title: "Another drift", Body: "edited", AddLabels: []string{"placement/shop"}, RemoveLabels: []string{driftLabel}}))
	want.Title, want.Body, want.Labels = "Another drift", "edited", []string{issueLabel, "placement/shop"}

	h.step("list open issues")
	h.issue(draft)
	check("listed", listed(forge.Open, 1)[0], want)

	h.step("read an issue")
	got, err := c.Issue(ctx, opened.Number)
	must(err)
	if got == nil {
		t.Fatal("the issue is not found")
	}
	check("read", *got, want)

	h.step("read no issue")
	if got, err := c.Issue(ctx, 4711); err != nil || got != nil {
		t.Errorf("found %+v, %v", got, err)
	}

	h.step("close an issue")
	must(c.Close(ctx, opened, "it is over", "closed"))
	want.Body, want.State = "closed", forge.Closed

	h.step("list all issues")
	listed(forge.Open, 0)
	check("listed once it is closed", listed("", 1)[0], want)

	h.step("issues are disabled")
	h.noIssues()
	if list, err := c.ListIssues(ctx, issueLabel, forge.Open); !errors.Is(err, forge.ErrIssuesDisabled) {
		t.Errorf("listed %+v, %v", list, err)
	}
	if i, err := c.OpenIssue(ctx, draft); !errors.Is(err, forge.ErrIssuesDisabled) {
		t.Errorf("opened %+v, %v", i, err)
	}

	h.step("end")
}
