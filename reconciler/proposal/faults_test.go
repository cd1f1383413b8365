package proposal

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
)

// While a forge fails, no request is sent for as long as it asks, and each held drift has the
// reason.
func TestAForgeThatFails(t *testing.T) {
	p := newProposing(10)
	p.forge.fail = &forge.StatusError{Status: 429, RetryAfter: 5 * time.Minute}
	p.after(t, 4*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; not offered as a pull request since 2027-01-15T08:00:10Z: the forge answered 429")
	if p.forge.requests != 1 {
		t.Errorf("%d requests", p.forge.requests)
	}
	p.forge.fail = nil
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "offered as https://git.example.com/pulls/1")
}

// A branch that the forge refuses is retried with backoff. Others are still updated, and no
// more are tried than may be open.
func TestABranchThatIsRefused(t *testing.T) {
	p := newProposing(2)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.refuse = errors.New("push branch: branches gitfleet/* are protected")
	pushed := p.forge.pushes
	p.after(t, 20*time.Minute, heldChange(7, "east"), heldChange(8, "west"), heldChange(9, "north"))
	p.says(t, "west", "held: left as it is; not offered as a pull request since 2027-01-15T08:05:10Z: push branch: branches gitfleet/* are protected")
	p.says(t, "north", "held: left as it is; pull requests of drift: 1 open, 1 not opened because of errors and retried; drift.maxOpen allows 2")
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
	if n := p.forge.pushes - pushed; n < 3 || n > 10 {
		t.Errorf("tried %d times in 20 minutes", n)
	}
	p.forge.End(1, forge.Closed)
	p.after(t, time.Minute, heldChange(7, "east"), heldChange(8, "west"))
	p.says(t, "east", "put back: ")
	p.forge.refuse = nil
	p.after(t, 20*time.Minute, heldChange(7, "east"), heldChange(8, "west"))
	p.says(t, "west", "offered as https://git.example.com/pulls/2")
}

// Each drift says why the forge does not answer and since when. The forge gets no more requests
// than the backoff allows, and afterwards the work continues where it was.
func TestFaultsOfTheForge(t *testing.T) {
	for name, err := range map[string]error{
		"revoked token":     &forge.StatusError{Status: 401, Message: "invalid token"},
		"repository moved":  &forge.StatusError{Status: 301},
		"web page":          &forge.StatusError{Status: 200, Message: "a page"},
		"down":              &url.Error{Op: "Get", URL: "https://git.example.com", Err: errors.New("connection refused")},
		"slow":              &url.Error{Op: "Get", URL: "https://git.example.com", Err: context.DeadlineExceeded},
		"overloaded":        &forge.StatusError{Status: 503},
		"rate limit of 403": &forge.StatusError{Status: 403, RetryAfter: time.Minute},
		"Git refuses":       &remote.HTTPError{Status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			p.after(t, 3*time.Minute, heldChange(7, "east"))
			p.forge.fail = err
			before := p.forge.requests
			p.after(t, 10*time.Minute, heldChange(7, "east"), heldChange(8, "west"))
			p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1; not followed since 2027-01-15T08:03:")
			p.says(t, "west", "held: left as it is; not offered as a pull request since 2027-01-15T08:03:")
			p.says(t, "west", ": "+forge.Reason(err))
			if got := p.Problems(); len(got) != 1 || !strings.HasPrefix(got[0], "drift is not offered as pull requests since 2027-01-15T08:03:") || !strings.Contains(got[0], forge.Reason(err)) {
				t.Errorf("status says %q", got)
			}
			if n := p.forge.requests - before; n > 8 {
				t.Errorf("%d requests in 10 minutes", n)
			}
			p.forge.fail = nil
			p.after(t, 12*time.Minute, heldChange(7, "east"), heldChange(8, "west"))
			p.says(t, "west", "offered as https://git.example.com/pulls/2")
			if got := p.Problems(); len(got) > 0 {
				t.Errorf("status says %q", got)
			}
		})
	}
}

// An error about one change only, such as a renamed base branch, is shown with that change. The
// forge gets no more requests than the backoff allows.
func TestFaultsOfOneChange(t *testing.T) {
	for name, err := range map[string]error{
		"renamed base branch": &forge.StatusError{Status: 404, Message: "base branch main not found"},
		"protected branches":  &forge.StatusError{Status: 422, Message: "gitfleet/* is protected"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			p.forge.refuse = err
			p.after(t, 30*time.Minute, heldChange(7, "east"))
			p.says(t, "east", "held: left as it is; not offered as a pull request since 2027-01-15T08:02:10Z: "+err.Error())
			if p.forge.pushes > 10 || p.forge.requests > 2*30+10 || len(p.Problems()) > 0 {
				t.Errorf("%d pushes, %d requests, status says %q", p.forge.pushes, p.forge.requests, p.Problems())
			}
			p.forge.refuse = nil
			p.after(t, 12*time.Minute, heldChange(7, "east"))
			p.says(t, "east", "offered as https://git.example.com/pulls/1")
		})
	}
}

func (f *fakeForge) Close(ctx context.Context, t forge.Thread, comment, body string) error {
	err := f.ask()
	switch {
	case t.Kind == forge.KindIssue && err != nil:
		return err
	case t.Kind != forge.KindIssue && f.refuseClose != nil:
		return f.refuseClose
	}
	f.comments = append(f.comments, comment)
	err = errors.Join(f.Forge.Close(ctx, t, comment, body), err)
	if t.Kind == forge.KindIssue {
		err = errors.Join(err, f.lost())
	}
	return err
}

// A pull request of a drift that is over and that cannot be closed, as with a token that may not comment, is tried again with
// backoff, and keeps no other change from being offered.
func TestAPullRequestThatCannotBeClosed(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.refuseClose = &forge.StatusError{Status: 403, Message: "token does not have at least one of required scope(s), required=[write:issue]"}
	p.after(t, 2*time.Minute)
	before := p.forge.requests
	p.after(t, 30*time.Minute, heldChange(8, "west"))
	p.says(t, "west", "held: left as it is; offered as https://git.example.com/pulls/2")
	if n := p.forge.requests - before; n > 90 || len(p.Problems()) > 0 { // of which 60 are lists
		t.Errorf("%d requests in 30 minutes, status says %q", n, p.Problems())
	}
	p.forge.refuseClose = nil
	p.after(t, 12*time.Minute, heldChange(8, "west"))
	if got := p.forge.Pulls[0]; got.State != forge.Closed || !endedByGitfleet(got.Body) {
		t.Errorf("the first pull request is %s:\n%s", got.State, got.Body)
	}
}

// An error is no longer shown once nothing is left to be tried again.
func TestAnErrorEndsWithItsReason(t *testing.T) {
	for name, test := range map[string]struct {
		first, then, last *change
		fail, end         func(*fakeForge)
		want              string
	}{
		"no edit makes the change any more": {
			heldChange(7, "east"), secondEdit(heldChange(7, "east")), manualChange(7, "east"),
			func(f *fakeForge) { f.refuse = &forge.StatusError{Status: 403} }, func(*fakeForge) {},
			"offered as https://git.example.com/pulls/1; the pull request is not kept up to date",
		},
		"a user has set the label": {
			manualChange(7, "east"), heldChange(7, "east"), heldChange(7, "east"),
			func(f *fakeForge) { f.refuseIssues = &forge.StatusError{Status: 403} },
			func(f *fakeForge) { f.refuseIssues, f.Issues[0].Labels = nil, append(f.Issues[0].Labels, holdLabel) },
			"offered as https://git.example.com/issues/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			p.after(t, 3*time.Minute, test.first)
			test.fail(p.forge)
			p.after(t, time.Minute, test.then)
			p.says(t, "east", "; not followed since 2027-01-15T08:03:10Z: the forge answered 403")
			test.end(p.forge)
			p.after(t, 12*time.Minute, test.last)
			if got := p.decided("east"); strings.Contains(got, "403") || !strings.Contains(got, test.want) {
				t.Errorf("decided %q", got)
			}
		})
	}
}

// edited returns a change whose files have another content.
func secondEdit(c *change) *change {
	c.files = []edit.FileChange{{Path: "web.yaml", After: []byte("other")}}
	return c
}
