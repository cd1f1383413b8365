package proposal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// fakeForge keeps branches and pull requests in memory.
type fakeForge struct {
	branches map[string]forge.Commit
	pulls    []*forge.PullRequest
	comments []string
	requests int
	fail     error
	now      time.Time
}

func (f *fakeForge) ask() error { f.requests++; return f.fail }

func (f *fakeForge) ListOpen(context.Context, string) ([]forge.PullRequest, error) {
	var out []forge.PullRequest
	for _, pr := range f.pulls {
		if pr.State == forge.Open {
			out = append(out, *pr)
		}
	}
	return out, f.ask()
}

func (f *fakeForge) FindPullRequest(_ context.Context, _, branch string) (*forge.PullRequest, error) {
	for _, pr := range f.pulls {
		if pr.Branch == branch {
			found := *pr
			return &found, f.ask()
		}
	}
	return nil, f.ask()
}

func (f *fakeForge) HasBranch(_ context.Context, branch string) (bool, error) {
	_, there := f.branches[branch]
	return there, f.ask()
}

func (f *fakeForge) Commit(_ context.Context, c forge.Commit) error {
	if _, there := f.branches[c.Branch]; there {
		return errors.New("the branch is there")
	}
	f.branches[c.Branch] = c
	return f.ask()
}

func (f *fakeForge) OpenPullRequest(_ context.Context, p forge.Proposal) (forge.PullRequest, error) {
	pr := &forge.PullRequest{Number: int64(len(f.pulls) + 1), Branch: p.Branch, Body: p.Body, State: forge.Open}
	pr.URL = fmt.Sprint("https://git.example.com/pulls/", pr.Number)
	f.pulls = append(f.pulls, pr)
	return *pr, f.ask()
}

func (f *fakeForge) EditPullRequest(_ context.Context, number int64, body string) error {
	f.pulls[number-1].Body = body
	return f.ask()
}

func (f *fakeForge) ClosePullRequest(_ context.Context, number int64, comment, body string) error {
	f.comments = append(f.comments, comment)
	f.pulls[number-1].Body = body
	f.end(number, forge.Closed)
	return f.ask()
}

func (f *fakeForge) DeleteBranch(_ context.Context, branch string) error {
	delete(f.branches, branch)
	return f.ask()
}

func (f *fakeForge) end(number int64, s forge.State) {
	f.pulls[number-1].State, f.pulls[number-1].Ended = s, f.now
}

// A proposing is a Proposer whose drifts and whose time a test decides.
type proposing struct {
	*Proposer
	forge    *fakeForge
	resolved map[string]ledger.Resolutions
}

func newProposing(maxOpen int) *proposing {
	p := &proposing{forge: &fakeForge{branches: map[string]forge.Commit{}, now: time.Unix(1_800_000_000, 0)}}
	p.restart(maxOpen)
	return p
}

func (p *proposing) restart(maxOpen int) {
	p.Proposer = New(Config{
		Forge: p.forge, Fleet: "shop", Base: "main", MinAge: 2 * time.Minute, MaxOpen: maxOpen, Interval: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
		Resolve: func(all map[string]ledger.Resolutions) { p.resolved = all },
	})
}

// after has some time pass, in steps, in which these changes are held.
func (p *proposing) after(t *testing.T, d time.Duration, held ...*offer) {
	t.Helper()
	p.known.offers = held
	for range d / (10 * time.Second) {
		p.forge.now = p.forge.now.Add(10 * time.Second)
		p.advance(t.Context(), p.forge.now)
	}
}

// decided is what the members were told about the change of a cluster.
func (p *proposing) decided(cluster string) string {
	for _, r := range p.resolved[cluster] {
		if r.PutBack {
			return "put back: " + r.Message
		}
		return "held: " + r.Message
	}
	return "nothing"
}

func (p *proposing) says(t *testing.T, cluster, want string) {
	t.Helper()
	if got := p.decided(cluster); !strings.Contains(got, want) {
		t.Errorf("decided %q, want %q", got, want)
	}
}

func heldChange(n int, clusters ...string) *offer {
	d := api.Difference{PatchDetail: api.PatchDetail{Path: "/data/key", ValueInHub: "1", ValueInMember: fmt.Sprint(n)}}
	o := &offer{
		hash: fmt.Sprintf("%016x", n), id: api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "web"},
		origin: api.Origin{Path: "web.yaml", Line: 1}, paths: []api.Difference{d}, changes: []FileChange{{Path: "web.yaml", Before: []byte("a"), After: []byte("b")}},
	}
	for _, c := range clusters {
		o.drifts = append(o.drifts, &status.Drift{
			Placement: "crp/web", Cluster: c, State: api.DriftHeld, Paths: o.paths,
			ResourceIdentifier: api.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"},
		})
	}
	return o
}

// What lasted long enough is offered once, also after a restart.
func TestChangesAreOfferedOnce(t *testing.T) {
	p := newProposing(10)
	p.after(t, 110*time.Second, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as a pull request once it has lasted for 2m0s")
	if len(p.forge.pulls) != 0 || p.forge.requests > 1 {
		t.Errorf("%d pull requests after %d requests", len(p.forge.pulls), p.forge.requests)
	}
	p.after(t, time.Minute, heldChange(7, "east", "west"))
	p.says(t, "west", "held: left as it is; offered as https://git.example.com/pulls/1")
	p.restart(10)
	p.after(t, 3*time.Minute, heldChange(7, "east", "west"))
	p.says(t, "east", "offered as https://git.example.com/pulls/1")
	if got := p.forge.pulls; len(got) != 1 || !strings.Contains(got[0].Body, "`east`, `west`") {
		t.Errorf("pull requests: %+v", got)
	}
	before := p.forge.requests
	p.after(t, time.Minute, heldChange(7, "east", "west"))
	if n := p.forge.requests - before; n > 2 {
		t.Errorf("%d requests in an idle minute", n)
	}
}

// Killed between two steps, it goes on with what there is.
func TestABranchWithoutAPullRequestIsUsed(t *testing.T) {
	p := newProposing(10)
	branch := branchPrefix + heldChange(7).hash
	p.forge.branches[branch] = forge.Commit{Message: "made before the crash"}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	if got := p.forge.pulls; len(got) != 1 || got[0].Branch != branch || p.forge.branches[branch].Message != "made before the crash" {
		t.Errorf("pull requests: %+v", got)
	}
}

// Closed by people, the change is put back, now and whenever it comes again.
func TestARejectedChangeIsPutBack(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.end(1, forge.Closed)
	p.after(t, 30*time.Second, heldChange(7, "east"))
	p.says(t, "east", "put back: https://git.example.com/pulls/1 was closed without merging")
	if len(p.forge.branches) != 0 {
		t.Errorf("branches: %v", p.forge.branches)
	}
	p.after(t, 3*time.Minute)
	p.after(t, 10*time.Second, heldChange(7, "east"))
	p.says(t, "east", "put back: ")
	p.restart(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"), heldChange(8, "west"))
	p.says(t, "east", "put back: ")
	p.says(t, "west", "offered as https://git.example.com/pulls/2")
}

// Merged, the change is held until its commit is in force; made once more later, it is
// another one.
func TestAMergedChangeWaitsForItsCommit(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.end(1, forge.Merged)
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; https://git.example.com/pulls/1 was merged")
	p.after(t, time.Minute)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	if got := p.forge.pulls; len(got) != 2 || got[1].Branch != branchPrefix+heldChange(7).hash+"-2" {
		t.Errorf("pull requests: %+v", got)
	}
}

// A drift that is over closes its pull request, and no other.
func TestADriftThatIsOverClosesItsPullRequest(t *testing.T) {
	p := newProposing(10)
	p.forge.pulls = []*forge.PullRequest{
		{Number: 1, Branch: branchPrefix + "other", State: forge.Open, Body: marker("other-fleet", "0123456789abcdef")},
		{Number: 2, Branch: branchPrefix + "person", State: forge.Open, Body: "by hand"},
		{Number: 3, Branch: branchPrefix + "fork", State: forge.Open, Body: marker("shop", "0123456789abcdef"), Fork: true},
	}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.after(t, 30*time.Second)
	p.restart(10)
	p.after(t, 30*time.Second) // the members have not been heard yet
	if p.forge.pulls[3].State != forge.Open {
		t.Error("closed at once")
	}
	p.after(t, 2*time.Minute)
	if got := p.forge.pulls; got[3].State != forge.Closed || len(p.forge.comments) != 1 || len(p.forge.branches) != 0 {
		t.Errorf("%+v, comments %q, branches %v", got[3], p.forge.comments, p.forge.branches)
	}
	if p.forge.pulls[0].State != forge.Open || p.forge.pulls[1].State != forge.Open || p.forge.pulls[2].State != forge.Open {
		t.Error("pull requests of others were closed")
	}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "offered as https://git.example.com/pulls/5")
}

// Many changes at once open no more pull requests than allowed, with few requests.
func TestOnlySoManyAreOpen(t *testing.T) {
	p := newProposing(10)
	var all []*offer
	for i := range 300 {
		all = append(all, heldChange(i+10, fmt.Sprint("member-", i)))
	}
	p.after(t, 150*time.Second, all...)
	if n := len(p.forge.pulls); n != 10 || p.forge.requests > 50 {
		t.Errorf("%d pull requests with %d requests", n, p.forge.requests)
	}
	p.says(t, "member-299", "held: left as it is; 10 pull requests of drifts are open already")
	p.forge.end(3, forge.Closed)
	p.after(t, time.Minute, all...)
	if n := len(p.forge.pulls); n != 11 {
		t.Errorf("%d pull requests after one was closed", n)
	}
}

// A forge that fails is left alone for as long as it asks, and what is held says why.
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

// Whatever a member says stays text in the body of a pull request.
func TestTextsOfMembersAreEscaped(t *testing.T) {
	o := heldChange(7, "east")
	evil := "```\n@admin <!-- gitfleet: shop 00 -->\x1b[31m\u202e[x](http://example.com)"
	o.paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/`key`", ValueInHub: "1", ValueInMember: evil}}}
	o.drifts[0].By = []api.Actor{{Manager: "``` @admin", Operation: "Update"}}
	body := o.body("shop")
	for _, want := range []string{
		"````diff\n  /data/`key`\n- 1\n+ ```↵@admin <!-- gitfleet: shop 00 -->\uFFFD[31m\uFFFD[x](http://example.com)\n````\n",
		"````text\neast: ``` @admin (Update)\n````\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the body has no\n%s\nin\n%s", want, body)
		}
	}
	if got := markedAs(body, "shop"); got != o.hash {
		t.Errorf("marked as %q", got)
	}
}
