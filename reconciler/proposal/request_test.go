package proposal

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// close and open handle a request as Run does.
func (p *proposing) close(t *testing.T, name string) (string, error) {
	t.Helper()
	return p.handled(t, p.Proposer.close, name)
}

func (p *proposing) open(t *testing.T, name string) (string, error) {
	t.Helper()
	return p.handled(t, p.openNow, name)
}

func (p *proposing) handled(t *testing.T, do func(context.Context, heldItem, string, time.Time) (func() string, error), name string) (string, error) {
	t.Helper()
	r := p.handle(t.Context(), request{do: do, name: name, by: "alice"}, p.forge.Now)
	return r.text, r.err
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	var own *RefusedError
	if !errors.As(err, &own) || !strings.Contains(err.Error(), want) {
		t.Errorf("refused with %v, want %s", err, want)
	}
}

// The command closes the pull request without merging it, and the change is reverted now and
// after a restart.
func TestCloseClosesThePullRequest(t *testing.T) {
	p := newProposing(10)
	c := heldChange(7, "east", "west")
	p.after(t, 3*time.Minute, c)
	said, err := p.close(t, c.hash)
	if err != nil || said != "https://git.example.com/pulls/1 is closed; ConfigMap/shop/web will be put back on 2 clusters" {
		t.Errorf("said %q: %v", said, err)
	}
	p.says(t, "east", "put back: https://git.example.com/pulls/1 was closed without merging")
	if pr := p.forge.Pulls[0]; pr.State != forge.Closed || endedByGitfleet(pr.Body) || len(p.forge.branches) != 0 {
		t.Errorf("pull request %+v, branches %v", pr, p.forge.branches)
	}
	if got := p.forge.comments; len(got) != 1 || !strings.HasPrefix(got[0], "Closed by `alice`") {
		t.Errorf("comments: %q", got)
	}
	want := history.Entry{Kind: history.Action, Event: history.ProposalClosed, Placement: "crp/web", Object: "ConfigMap/shop/web", By: "alice", Message: "https://git.example.com/pulls/1; on 2 clusters: east, west"}
	if len(p.entries) != 1 || p.entries[0] != want {
		t.Errorf("history: %+v", p.entries)
	}
	p.restart(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "put back: ")
	_, err = p.close(t, c.hash)
	refused(t, err, "there is nothing to close")
}

// A change without a pull request is reverted on request, and never offered.
func TestCloseWithoutAPullRequestPutsBack(t *testing.T) {
	p := newProposing(10)
	c := heldChange(7, "east")
	p.after(t, time.Minute, c)
	if said, err := p.close(t, c.hash); err != nil || said != "ConfigMap/shop/web will be put back on 1 cluster" {
		t.Errorf("said %q: %v", said, err)
	}
	p.says(t, "east", "put back: put back, as alice has asked")
	p.after(t, 3*time.Minute, c)
	if n := len(p.forge.Pulls); n != 0 {
		t.Errorf("%d pull requests", n)
	}
	p.after(t, 10*time.Second)
	p.after(t, 3*time.Minute, c) // if the change is made again, it is a new one
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
}

// On request, a change is offered before it is old enough and although enough are open.
func TestOpenOffersNow(t *testing.T) {
	p := newProposing(1)
	first, second := heldChange(7, "east"), heldChange(8, "east")
	p.after(t, 3*time.Minute, first)
	p.after(t, 10*time.Second, first, second)
	if said, err := p.open(t, second.hash); err != nil || said != "offered as https://git.example.com/pulls/2" {
		t.Errorf("said %q: %v", said, err)
	}
	if got := p.entries; len(got) != 1 || got[0].Event != history.ProposalOpened || got[0].Cluster != "east" || got[0].By != "alice" || got[0].Message != "https://git.example.com/pulls/2" {
		t.Errorf("history: %+v", got)
	}
	_, err := p.open(t, second.hash)
	refused(t, err, "https://git.example.com/pulls/2 is open already")
	_, err = p.open(t, "0000")
	refused(t, err, "0000 is the beginning of more than one name")
	if _, err = p.open(t, "ffff"); !strings.HasPrefix(err.Error(), "there is no proposal ffff") {
		t.Errorf("an unknown name: %v", err)
	}
}

// That a change was opened on request is recorded once it is open.
func TestOpenIsRecordedOnceItIsOpen(t *testing.T) {
	p := newProposing(10)
	c := heldChange(7, "east")
	p.after(t, 10*time.Second, c)
	p.forge.refuse = errors.New("push branch: branches gitfleet/* are protected")
	if said, err := p.open(t, c.hash); err != nil || !strings.Contains(said, "are protected") || len(p.entries) > 0 {
		t.Errorf("said %q: %v, history: %+v", said, err, p.entries)
	}
	p.forge.refuse = nil
	p.after(t, time.Minute, c)
	if got := p.entries; len(got) != 1 || got[0].Event != history.ProposalOpened || got[0].By != "alice" || got[0].Message != "https://git.example.com/pulls/1" {
		t.Errorf("history: %+v", got)
	}
	p.after(t, time.Minute, c)
	if len(p.entries) != 1 {
		t.Errorf("history: %+v", p.entries)
	}
}

// A rejected change that is kept on hold is offered once more, and its rejection does not count
// any more, after a restart either.
func TestOpenOffersARejectedChange(t *testing.T) {
	p := newProposing(10)
	c := heldChange(7, "east")
	p.after(t, 3*time.Minute, c)
	p.forge.Pulls[0].Labels = append(p.forge.Pulls[0].Labels, holdLabel)
	p.forge.End(1, forge.Closed)
	p.after(t, time.Minute, c)
	p.says(t, "east", "held: left as it is; https://git.example.com/pulls/1 has the label gitfleet/hold")
	_, err := p.close(t, c.hash)
	refused(t, err, "has the label gitfleet/hold")
	if said, err := p.open(t, c.hash); err != nil || said != "offered as https://git.example.com/pulls/2" {
		t.Errorf("said %q: %v", said, err)
	}
	p.restart(10)
	p.after(t, 3*time.Minute, c)
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/2")
}

// If the forge fails, the response does not say that something was done.
func TestAForgeThatFailsIsSaid(t *testing.T) {
	p := newProposing(10)
	c := heldChange(7, "east")
	p.after(t, 3*time.Minute, c)
	p.forge.fail = &url.Error{Op: "Get", URL: "https://git.example.com/api/v1", Err: &forge.StatusError{Status: 503}}
	if said, err := p.close(t, c.hash); err == nil || err.Error() != "the forge answered 503" {
		t.Errorf("said %q: %v", said, err)
	}
}

// While the forge asks to send no requests, commands send none either.
func TestCommandsLeaveTheForgeAlone(t *testing.T) {
	p := newProposing(10)
	c := heldChange(7, "east")
	p.after(t, 3*time.Minute, c)
	p.forge.fail = &forge.StatusError{Status: 429, RetryAfter: time.Hour}
	if _, err := p.close(t, c.hash); err == nil {
		t.Error("closed")
	}
	p.forge.fail = nil
	before := p.forge.requests
	_, err := p.close(t, c.hash)
	refused(t, err, "the forge accepts no requests for another 1h0m0s, until 2027-01-15T09:03:")
	p.after(t, 50*time.Minute, c)
	if n := p.forge.requests - before; n > 0 {
		t.Errorf("%d requests", n)
	}
	p.after(t, 11*time.Minute, c)
	if _, err := p.close(t, c.hash); err != nil {
		t.Error(err)
	}
}

// A change that is only reported is reverted on request, and is not offered.
func TestReportedChangesCanBePutBack(t *testing.T) {
	p := newProposing(10)
	d := *heldChange(7, "east").drifts[0]
	d.Rule = "report"
	p.report = &status.Report{InForce: &hub.Snapshot{}, Drifts: []status.Drift{d}}
	_, p.follower.known.notOffered = p.collector.collect(p.report, nil)
	p.after(t, 10*time.Second)
	held := p.Held().Items
	if len(held) != 1 || held[0].State != Reported || held[0].Clusters[0] != "east" || held[0].Rules[0] != "report" {
		t.Fatalf("held: %+v", held)
	}
	_, err := p.open(t, held[0].Name)
	refused(t, err, `its drift mode is "report"`)
	if _, err := p.close(t, held[0].Name); err != nil {
		t.Error(err)
	}
	p.says(t, "east", "put back: put back, as alice has asked")
}

// Run handles the requests of other goroutines; before the first report it refuses them.
func TestRunHandlesRequests(t *testing.T) {
	p := newProposing(10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	if _, err := p.Close(ctx, "0", "alice"); err == nil || !strings.Contains(err.Error(), "held drift is not known yet") {
		t.Errorf("before a report: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := p.Open(ctx, "0", "alice"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// A held change is described with its edit, unless the file may contain values of Secrets.
func TestHeldDescribesTheEdit(t *testing.T) {
	p := newProposing(10)
	if p.Held() != nil {
		t.Error("known before the first report")
	}
	c, secret := heldChange(7, "east", "west"), heldChange(8, "east")
	c.holders, c.files[0] = 3, edit.FileChange{Path: "web.yaml", Before: []byte("a: 1\nkey: 1\n"), After: []byte("a: 1\nkey: 7\n")}
	secret.files[0] = edit.FileChange{Path: "secret.yaml", Before: []byte("kind: Secret\nkey: 1\n"), After: []byte("kind: Secret\nkey: 7\n")}
	c.drifts[0].By = []api.Actor{{Manager: "kubectl-edit"}}
	p.after(t, 3*time.Minute, c, secret)
	held := p.Held().Items
	if len(held) != 2 || held[0].State != Open || held[0].URL != "https://git.example.com/pulls/1" || held[0].Holders != 3 || held[0].By[0].Cluster != "east" || held[0].Source != "web.yaml:1" {
		t.Fatalf("held: %+v", held)
	}
	const want = "--- a/web.yaml\n+++ b/web.yaml\n@@ -1,2 +1,2 @@\n a: 1\n-key: 1\n+key: 7\n"
	if again := p.Held(); &again.Items[0] != &held[0] {
		t.Error("the edits are computed more than once in a pass")
	}
	if got := held[0].Edits[0].Diff; got != want {
		t.Errorf("the edit is\n%swant\n%s", got, want)
	}
	if got := held[1].Edits[0]; got != (FileEdit{Path: "secret.yaml"}) {
		t.Errorf("the edit of a file with a Secret is %+v", got)
	}
}

// A request on a pull request is only executed if that one offers the change, and is refused for now while that is not known.
func TestRequestsOnAPullRequest(t *testing.T) {
	const other, unknown = "this change is offered by https://git.example.com/pulls/1 now", "it is not known yet"
	tests := map[string]struct {
		do        func(t *testing.T, p *proposing, c *change)
		number    int64
		want      string
		temporary bool
	}{
		"of the change": {func(t *testing.T, p *proposing, c *change) { p.after(t, 3*time.Minute, c) }, 1, "", false},
		"another":       {func(t *testing.T, p *proposing, c *change) { p.after(t, 3*time.Minute, c) }, 7, other, false},
		"made again":    {func(t *testing.T, p *proposing, c *change) { p.after(t, 10*time.Second, c) }, 1, unknown, true},
		"not asked yet": {func(t *testing.T, p *proposing, c *change) {
			p.forge.fail = &forge.StatusError{Status: 503}
			p.after(t, 10*time.Second, c)
			p.forge.fail = nil
		}, 1, unknown, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			c := heldChange(7, "east")
			test.do(t, p, c)
			err := p.handle(t.Context(), request{do: p.Proposer.close, name: c.hash, by: "anna", number: test.number}, p.forge.Now).err
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, test.want)
			if own, _ := errors.AsType[*RefusedError](err); own != nil && own.Temporary != test.temporary || len(p.follower.putBack) > 0 {
				t.Errorf("temporary: %t, %v is put back", own.Temporary, p.follower.putBack)
			}
		})
	}
	p := newProposing(10)
	c := heldChange(7, "east")
	p.after(t, 3*time.Minute, c)
	p.forge.fail = fmt.Errorf("close: %w", &forge.StatusError{Status: 503})
	err := p.handle(t.Context(), request{do: p.Proposer.close, name: c.hash, by: "anna", number: 1}, p.forge.Now).err
	if !forge.IsGeneral(err) {
		t.Errorf("an error of the forge is %v", err)
	}
}
