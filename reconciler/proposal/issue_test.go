package proposal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// deleted is the state of an issue that was deleted.
const deleted forge.State = "deleted"

func (f *fakeForge) ListIssues(ctx context.Context, label string, state forge.State) ([]forge.Thread, error) {
	f.issueLists++
	if err := f.ask(); err != nil || f.refuseIssues != nil {
		return nil, errors.Join(err, f.refuseIssues)
	}
	list, err := f.Forge.ListIssues(ctx, label, state)
	return slices.DeleteFunc(list, func(i forge.Thread) bool { return i.State == deleted }), err
}

func (f *fakeForge) Issue(ctx context.Context, number int64) (*forge.Thread, error) {
	if f.refuseIssues != nil {
		return nil, f.refuseIssues
	}
	i, err := f.Forge.Issue(ctx, number)
	if i != nil && i.State == deleted {
		i = nil
	}
	return i, cmp.Or(err, f.ask())
}

func (f *fakeForge) OpenIssue(ctx context.Context, n forge.NewIssue) (forge.Thread, error) {
	f.act()
	if f.refuseIssues != nil {
		return forge.Thread{}, f.refuseIssues
	}
	f.titles = append(f.titles, n.Title)
	i, err := f.Forge.OpenIssue(ctx, n)
	return i, errors.Join(err, f.ask(), f.lost())
}

// lost returns loseAnswer once.
func (f *fakeForge) lost() error {
	err := f.loseAnswer
	f.loseAnswer = nil
	return err
}

// manualChange returns a change that no edit of the files can express.
func manualChange(n int, clusters ...string) *change {
	c := heldChange(n, clusters...)
	c.files, c.reason = nil, errors.New("its value comes from the YAML anchor *port")
	return c
}

// A change that no edit can express is offered as one issue once it has lasted long enough,
// also after a restart, with few requests.
func TestChangesWithoutAnEditAreOfferedAsIssues(t *testing.T) {
	p := newProposing(10)
	p.after(t, 110*time.Second, manualChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as an issue once it has lasted for 2m0s; no edit of the files makes the change: its value comes from the YAML anchor *port")
	if len(p.forge.Issues) != 0 || p.forge.requests > 2 {
		t.Errorf("%d issues after %d requests", len(p.forge.Issues), p.forge.requests)
	}
	p.after(t, time.Minute, manualChange(7, "east", "west"))
	p.says(t, "west", "held: left as it is; offered as https://git.example.com/issues/1; no edit of the files makes the change: its value")
	p.restart(10)
	p.after(t, 3*time.Minute, manualChange(7, "east", "west"))
	p.says(t, "east", "offered as https://git.example.com/issues/1")
	if len(p.forge.Issues) != 1 || len(p.forge.Pulls) != 0 || p.forge.pushes != 0 {
		t.Fatalf("issues %+v, pull requests %+v, %d pushes", p.forge.Issues, p.forge.Pulls, p.forge.pushes)
	}
	i := p.forge.Issues[0]
	for _, want := range []string{
		"`ConfigMap shop/web` was changed on 2 clusters, and is left so until this issue is closed.",
		"- \"1\"\n+ \"7\"\n", "`east`, `west`", "**In Git:** [`web.yaml:1`](https://git.example.com/", "no edit of the files in Git makes the change: `its value comes from the YAML anchor *port`",
		"**Closing** reverts the change", "`gitfleet/hold`", marker("shop", manualChange(7).hash),
	} {
		if !strings.Contains(i.Body, want) {
			t.Errorf("the body has no %q:\n%s", want, i.Body)
		}
	}
	if got := strings.Join(i.Labels, ", "); got != "gitfleet/drift, gitfleet/manual-edit, gitfleet/severity: other, placement/web" || p.forge.titles[0] != "Drift: ConfigMap shop/web: key changed on 2 clusters" {
		t.Errorf("titles %q, labels %s", p.forge.titles, got)
	}
	if held := p.Held().Items; len(held) != 1 || held[0].State != Open || held[0].URL != i.URL || held[0].Reason != "its value comes from the YAML anchor *port" || len(held[0].Edits) != 0 {
		t.Errorf("held: %+v", held)
	}
	before := p.forge.requests
	p.after(t, time.Minute, manualChange(7, "east", "west"))
	if n := p.forge.requests - before; n > 2 {
		t.Errorf("%d requests in an idle minute", n)
	}
	p.after(t, 3*time.Minute, manualChange(7, "east", "west"), heldChange(8, "east"))
	before = p.forge.requests
	p.after(t, time.Minute, manualChange(7, "east", "west"), heldChange(8, "east"))
	if n := p.forge.requests - before; n > 2 {
		t.Errorf("%d requests in an idle minute with a pull request and an issue", n)
	}
}

// What people decided about a change counts after a restart too if it could be offered in the other
// form by then.
func TestADecisionOutlivesTheForm(t *testing.T) {
	forms := map[string]func(int, ...string) *change{"issue": manualChange, "pull request": heldChange}
	for first, of := range forms {
		for second, again := range forms {
			for _, hold := range []bool{false, true} {
				p := newProposing(10)
				p.after(t, 3*time.Minute, of(7, "east"))
				for _, pr := range p.forge.Pulls {
					pr.Labels = holdIf(hold, pr.Labels)
					p.forge.End(pr.Number, forge.Closed)
				}
				for _, i := range p.forge.Issues {
					i.Labels = holdIf(hold, i.Labels)
					p.forge.EndIssue(i.Number)
				}
				p.restart(10)
				p.after(t, 5*time.Minute, again(7, "east"))
				if n := len(p.forge.Pulls) + len(p.forge.Issues); n != 1 {
					t.Errorf("%s, then %s: it was offered %d times", first, second, n)
				}
				want := "put back: "
				if hold {
					want = "has the label gitfleet/hold"
				}
				p.says(t, "east", want)
			}
		}
	}
}

func holdIf(hold bool, labels []string) []string {
	if hold {
		return append(labels, holdLabel)
	}
	return labels
}

// An issue with the label that was deleted keeps nothing any more: the change is offered anew. It
// keeps the object while issues are disabled.
func TestADeletedIssueHoldsNothing(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.forge.Issues[0].Labels = append(p.forge.Issues[0].Labels, holdLabel)
	p.forge.EndIssue(1)
	p.after(t, time.Minute, manualChange(7, "east"))
	p.forge.refuseIssues = forge.ErrIssuesDisabled
	p.after(t, time.Minute, manualChange(7, "east"))
	p.says(t, "east", "held: left as it is; https://git.example.com/issues/1 has the label gitfleet/hold")
	p.forge.refuseIssues = nil
	p.after(t, time.Minute, manualChange(7, "east"))
	p.forge.Issues[0].State = deleted
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/issues/2")
}

// Issues that cannot be listed any more are said with each change that is one, as pull requests are.
func TestIssuesThatAreNotFollowed(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, manualChange(7, "east"), manualChange(8, "north"), heldChange(9, "west"))
	p.forge.Issues[1].Labels = append(p.forge.Issues[1].Labels, holdLabel)
	p.forge.EndIssue(2)
	p.after(t, time.Minute, manualChange(7, "east"), manualChange(8, "north"), heldChange(9, "west"))
	p.forge.refuseIssues = &forge.StatusError{Status: 403, Message: "no scope"}
	p.after(t, time.Minute, manualChange(7, "east"), manualChange(8, "north"), heldChange(9, "west"))
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/issues/1; not followed since 2027-01-15T08:0")
	p.says(t, "north", "has the label gitfleet/hold; not followed since 2027-01-15T08:0")
	if got := p.decided("west"); !strings.HasSuffix(got, "offered as https://git.example.com/pulls/1") {
		t.Errorf("decided %q", got)
	}
	if got := p.Problems(); len(got) != 1 || !strings.HasPrefix(got[0], "issues of drift are not followed since 2027-01-15T08:0") {
		t.Errorf("status says %q", got)
	}
}

// What waits is listed in the pull request that was opened last, whatever the numbers of issues are.
func TestWhatWaitsIsListedInAPullRequest(t *testing.T) {
	p := newProposing(3)
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	all := []*change{manualChange(7, "east"), manualChange(8, "west"), heldChange(9, "south")}
	p.after(t, 3*time.Minute, all...)
	all = append(all, heldChange(10, "north"))
	p.after(t, 4*time.Minute, all...)
	if len(p.forge.Pulls) != 1 || len(p.forge.Issues) != 2 || !strings.Contains(p.forge.Pulls[0].Body, "**Waiting** until fewer pull requests and issues of drift are open: 1 change: ") {
		t.Errorf("pull requests %+v, issues %+v", p.forge.Pulls, p.forge.Issues)
	}
}

// A webhook is about an issue of drift if that has the label, or the comment by which it is known.
func TestIsIssueOfDrift(t *testing.T) {
	body := manualChange(7, "east").body("shop", nil)
	for name, test := range map[string]struct {
		labels []string
		body   string
		want   bool
	}{
		"label": {[]string{"bug", issueLabel}, "", true}, "body": {nil, body, true}, "neither": {[]string{"bug"}, "gitfleet does not work", false},
	} {
		if got := IsIssueOfDrift(test.labels, test.body); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// If the issue is closed, the change is reverted now and whenever it occurs again. With the
// hold label it is not.
func TestAClosedIssueHasTheChangePutBack(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.forge.Issues[0].Labels = append(p.forge.Issues[0].Labels, holdLabel)
	p.forge.EndIssue(1)
	p.after(t, time.Minute, manualChange(7, "east"))
	p.says(t, "east", "held: left as it is; https://git.example.com/issues/1 has the label gitfleet/hold")
	p.forge.Issues[0].Labels = []string{issueLabel}
	p.after(t, time.Minute, manualChange(7, "east"))
	p.says(t, "east", "put back: https://git.example.com/issues/1 was closed")
	p.after(t, 3*time.Minute)
	p.after(t, 10*time.Second, manualChange(7, "east"))
	p.says(t, "east", "put back: ")
	p.restart(10)
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.says(t, "east", "put back: ")
	if n := len(p.forge.Issues); n != 1 {
		t.Errorf("%d issues", n)
	}
}

// When the drift ends, its issue is closed. If it occurs again, a new issue is opened. Issues
// of other fleets are not touched.
func TestADriftThatIsOverClosesItsIssue(t *testing.T) {
	p := newProposing(10)
	p.forge.Issues = []*forge.Thread{{Kind: forge.KindIssue, Number: 1, State: forge.Open, Labels: []string{issueLabel}, Body: marker("other-fleet", "0123456789abcdef")}}
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.after(t, 30*time.Second)
	p.restart(10)
	p.after(t, 3*time.Minute)
	if i := p.forge.Issues[1]; i.State != forge.Closed || !endedByGitfleet(i.Body) || len(p.forge.comments) != 1 {
		t.Errorf("%+v, comments %q", i, p.forge.comments)
	}
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.says(t, "east", "offered as https://git.example.com/issues/3")
	if p.forge.Issues[0].State != forge.Open {
		t.Error("the issue of another fleet was closed")
	}
}

// Issues count for the maximum number of open requests, and deleted ones are opened again.
func TestIssuesAreBounded(t *testing.T) {
	p := newProposing(2)
	all := []*change{heldChange(7, "east"), manualChange(8, "west"), manualChange(9, "north")}
	p.after(t, 3*time.Minute, all...)
	if len(p.forge.Pulls) != 1 || len(p.forge.Issues) != 1 {
		t.Fatalf("pull requests %+v, issues %+v", p.forge.Pulls, p.forge.Issues)
	}
	p.says(t, "north", "held: left as it is; pull requests and issues of drift: 2 open; drift.maxOpen allows 2")
	p.forge.Issues[0].State = deleted
	p.after(t, time.Minute, all...)
	p.says(t, "west", "offered as https://git.example.com/issues/2")
}

// If two daemons open an issue at the same time, the first one is kept.
func TestTwoDaemonsKeepOneIssue(t *testing.T) {
	one := newProposing(10)
	two := &proposing{forge: one.forge}
	two.restart(10)
	one.forge.meanwhile = func() { two.after(t, 3*time.Minute, manualChange(7, "east")) }
	one.after(t, 4*time.Minute, manualChange(7, "east"))
	two.after(t, time.Minute, manualChange(7, "east"))
	for _, p := range []*proposing{one, two} {
		p.says(t, "east", "held: left as it is; offered as https://git.example.com/issues/1")
	}
	open := 0
	for _, i := range one.forge.Issues {
		if i.State == forge.Open {
			open++
		}
	}
	if open != 1 {
		t.Errorf("%d issues are open", open)
	}
}

// If the repository has no issues, the change is reverted, and the status says so once. When
// issues are enabled again, the change is offered.
func TestARepositoryWithoutIssues(t *testing.T) {
	p := newProposing(10)
	p.forge.refuseIssues = forge.ErrIssuesDisabled
	p.after(t, 3*time.Minute, heldChange(7, "east"), manualChange(8, "west"))
	p.says(t, "west", "put back: put back, since it cannot be offered as a pull request: its value comes from the YAML anchor *port; nor as an issue, since issues are disabled in the repository")
	p.says(t, "east", "offered as https://git.example.com/pulls/1")
	if got := p.Problems(); len(got) != 1 || !strings.Contains(got[0], "are disabled in the repository") {
		t.Errorf("status says %q", got)
	}
	if held := p.Held().Items; !slices.ContainsFunc(held, func(c HeldChange) bool { return c.State == Inexpressible }) {
		t.Errorf("held: %+v", held)
	}
	p.forge.refuseIssues = nil
	p.after(t, 2*time.Hour)
	if got := p.Problems(); len(got) != 0 {
		t.Errorf("status says %q", got)
	}
	p.after(t, 3*time.Minute, manualChange(8, "west"))
	p.says(t, "west", "offered as https://git.example.com/issues/1")
}

// If the token may not read issues, pull requests are still handled.
func TestIssuesThatCannotBeRead(t *testing.T) {
	p := newProposing(10)
	p.forge.refuseIssues = &forge.StatusError{Status: 403, Message: "no scope"}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "offered as https://git.example.com/pulls/1")
	if got := p.Problems(); len(got) != 0 {
		t.Errorf("status says %q", got)
	}
	before := p.forge.requests
	p.after(t, 10*time.Minute, heldChange(7, "east"), manualChange(8, "west"))
	p.says(t, "west", "held: left as it is; not offered as an issue since 2027-01-15T08:05:10Z: the forge answered 403: no scope")
	if got := p.Problems(); len(got) != 1 || !strings.HasPrefix(got[0], "issues of drift are not followed since ") {
		t.Errorf("status says %q", got)
	}
	if n := p.forge.requests - before; n > 40 {
		t.Errorf("%d requests in ten minutes", n)
	}
	p.forge.refuseIssues = nil
	p.after(t, 12*time.Minute, heldChange(7, "east"), manualChange(8, "west"))
	p.says(t, "west", "offered as https://git.example.com/issues/1")
}

// Users can open and close issues with the commands for pull requests.
func TestIssuesAreOpenedAndClosedByCommand(t *testing.T) {
	p := newProposing(10)
	c := manualChange(7, "east")
	p.after(t, 10*time.Second, c)
	if said, err := p.open(t, c.hash); err != nil || said != "offered as https://git.example.com/issues/1" {
		t.Errorf("said %q: %v", said, err)
	}
	if said, err := p.close(t, c.hash); err != nil || said != "https://git.example.com/issues/1 is closed; ConfigMap/shop/web will be put back on 1 cluster" {
		t.Errorf("said %q: %v", said, err)
	}
	p.says(t, "east", "put back: https://git.example.com/issues/1 was closed")
	if said, err := p.open(t, c.hash); err != nil || said != "offered as https://git.example.com/issues/2" {
		t.Errorf("said %q: %v", said, err)
	}
	p.restart(10)
	p.after(t, 3*time.Minute, c)
	p.says(t, "east", "offered as https://git.example.com/issues/2")
}

// A pull request whose change no edit can make any more is still handled, also after a restart,
// and no issue is opened for it.
func TestAPullRequestStaysOnceNoEditMakesItsChange(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.restart(10)
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1; the pull request is not kept up to date, since no edit")
	if len(p.forge.Issues) != 0 || p.forge.Pulls[0].State != forge.Open {
		t.Errorf("issues %+v, pull request %+v", p.forge.Issues, p.forge.Pulls[0])
	}
}

// An issue is replaced by a pull request once an edit is possible, also after a restart.
func TestAnIssueIsReplacedAfterARestart(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.restart(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	if len(p.forge.Issues) != 1 || p.forge.Issues[0].State != forge.Closed || len(p.forge.Pulls) != 1 || p.forge.Pulls[0].State != forge.Open {
		t.Errorf("issues %+v, pull requests %+v", p.forge.Issues, p.forge.Pulls)
	}
}

// An issue that was closed or got the hold label since the last list is not replaced.
func TestADecisionAboutAnIssueCounts(t *testing.T) {
	for name, decide := range map[string]func(*forge.Thread){
		"closed": func(i *forge.Thread) { i.State = forge.Closed },
		"held":   func(i *forge.Thread) { i.Labels = append(i.Labels, holdLabel) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			p.after(t, 3*time.Minute, manualChange(7, "east"))
			decide(p.forge.Issues[0])
			p.after(t, 3*time.Minute, heldChange(7, "east"))
			if len(p.forge.Pulls) != 0 || strings.Contains(p.forge.Issues[0].Body, "gitfleet: ended") {
				t.Errorf("issues %+v, pull requests %+v", p.forge.Issues, p.forge.Pulls)
			}
			p.says(t, "east", map[string]string{"closed": "put back", "held": "held"}[name])
		})
	}
}

// An issue that gitfleet itself has closed is no rejection, also if the answer to that was lost or
// another daemon has closed it.
func TestAnIssueThatGitfleetClosedIsNoRejection(t *testing.T) {
	closed := func(f *fakeForge) {
		f.Issues[0].Body = markEnded(f.Issues[0].Body)
		f.EndIssue(1)
	}
	for name, test := range map[string]struct {
		end  func(*fakeForge)
		then func(int, ...string) *change
		want string
	}{
		"the answer was lost":     {func(f *fakeForge) { f.loseAnswer = &forge.StatusError{Status: 502} }, heldChange, "pulls/1"},
		"the issue is refused":    {func(f *fakeForge) { f.loseAnswer = &forge.StatusError{Status: 422} }, heldChange, "pulls/1"},
		"another daemon, an edit": {closed, heldChange, "pulls/1"},
		"another daemon, no edit": {closed, manualChange, "issues/2"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			p.after(t, 3*time.Minute, manualChange(7, "east"))
			test.end(p.forge)
			for range 24 {
				p.after(t, 10*time.Second, test.then(7, "east"))
				p.says(t, "east", "held: ")
			}
			p.says(t, "east", "offered as https://git.example.com/"+test.want)
		})
	}
}
