package proposal

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/fakeforge"
)

// A fakeForge is a forge in memory with branches, whose requests are counted and may fail.
type fakeForge struct {
	*fakeforge.Forge
	branches map[string]gitsource.BranchCommit
	// others are branches to which people have pushed.
	others map[string]bool
	// refuseClose is the error by which pull requests are not closed.
	refuseClose error
	titles      []string // of issues
	comments    []string
	requests    int
	// forgotten counts the calls of ForgetList.
	forgotten int
	// issueLists counts the lists of issues.
	issueLists int
	pushes     int
	fail       error
	// refuse is why no branch can be pushed, and refuseIssues why no issue can be read or opened.
	refuse, refuseIssues error
	// loseAnswer is the answer to the next request to open or close an issue, which is done
	// nevertheless.
	loseAnswer error
	// refuseLabels is why no label can be created, and refuseReviewers is the error of a request for reviews.
	refuseLabels, refuseReviewers error
	// meanwhile is called just before a pull request is opened.
	meanwhile func()
}

func (f *fakeForge) ask() error { f.requests++; return f.fail }

func (f *fakeForge) ForgetList() { f.forgotten++ }

func (f *fakeForge) ListOpen(ctx context.Context, base string) ([]forge.PullRequest, error) {
	open, err := f.Forge.ListOpen(ctx, base)
	return open, cmp.Or(err, f.ask())
}

func (f *fakeForge) FindPullRequest(ctx context.Context, base, branch string) (*forge.PullRequest, error) {
	pr, err := f.Forge.FindPullRequest(ctx, base, branch)
	return pr, cmp.Or(err, f.ask())
}

func (f *fakeForge) Publish(_ context.Context, c gitsource.BranchCommit) (gitsource.BranchState, error) {
	if f.pushes++; f.refuse != nil {
		return gitsource.BranchState{}, f.refuse
	}
	was, there := f.branches[c.Branch]
	if f.others[c.Branch] {
		return gitsource.BranchState{Others: true, Outdated: was.Base != c.Base}, nil
	}
	if !there || was.Message != c.Message || !maps.EqualFunc(was.Files, c.Files, bytes.Equal) {
		f.branches[c.Branch] = c
	}
	return gitsource.BranchState{}, nil
}

func (f *fakeForge) Remove(_ context.Context, branch, marker string) error {
	if strings.Contains(f.branches[branch].Message, marker) && !f.others[branch] {
		delete(f.branches, branch)
	}
	return nil
}

func (f *fakeForge) List(_ context.Context, prefix string) ([]string, error) {
	var out []string
	for _, branch := range slices.Sorted(maps.Keys(f.branches)) {
		if strings.HasPrefix(branch, prefix) {
			out = append(out, branch)
		}
	}
	return out, f.refuse
}

func (f *fakeForge) OpenPullRequest(ctx context.Context, p forge.NewPullRequest) (forge.PullRequest, error) {
	f.act()
	pr, err := f.Forge.OpenPullRequest(ctx, p)
	if err != nil {
		return pr, err
	}
	return pr, f.ask()
}

// act calls meanwhile once.
func (f *fakeForge) act() {
	if act := f.meanwhile; act != nil {
		f.meanwhile = nil
		act()
	}
}

func (f *fakeForge) Edit(ctx context.Context, of forge.Thread, e forge.Edit) error {
	return cmp.Or(f.Forge.Edit(ctx, of, e), f.ask())
}

func (f *fakeForge) FindComment(ctx context.Context, number int64, marker string) (*forge.Comment, error) {
	c, err := f.Forge.FindComment(ctx, number, marker)
	return c, cmp.Or(err, f.ask())
}

func (f *fakeForge) AddComment(ctx context.Context, number int64, body string) (forge.Comment, error) {
	f.comments = append(f.comments, body)
	c, err := f.Forge.AddComment(ctx, number, body)
	return c, cmp.Or(err, f.ask())
}

// A proposing is a Proposer whose drifts and time the test controls.
type proposing struct {
	*Proposer
	forge    *fakeForge
	resolved map[string]protocol.DriftDecisions
	// entries are the entries of the history.
	entries []history.Entry
}

func newProposing(maxOpen int) *proposing {
	p := &proposing{forge: &fakeForge{Forge: fakeforge.New(), branches: map[string]gitsource.BranchCommit{}, others: map[string]bool{}}}
	p.restart(maxOpen)
	return p
}

func (p *proposing) restart(maxOpen int) {
	p.Proposer = New(Config{
		Forge: p.forge, Branches: p.forge, Fleet: "shop", Base: "main", MinAge: 2 * time.Minute, MaxOpen: maxOpen, Interval: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
		Contains: func(_ context.Context, head, commit string) (bool, error) {
			return strings.HasPrefix(head, commit), nil
		},
		SetDriftDecisions: func(all map[string]protocol.DriftDecisions) { p.resolved = all },
		Record:            func(all ...history.Entry) { p.entries = append(p.entries, all...) },
	})
}

// after advances the time in steps, in which these changes are held.
func (p *proposing) after(t testing.TB, d time.Duration, held ...*change) {
	t.Helper()
	p.follower.known.offers = held
	for range d / (10 * time.Second) {
		p.forge.Now = p.forge.Now.Add(10 * time.Second)
		p.advance(t.Context(), p.forge.Now)
	}
}

// decided returns the decision that the members received about the change of a cluster.
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

func heldChange(n int, clusters ...string) *change {
	d := api.Difference{PatchDetail: api.PatchDetail{Path: "/data/key", ValueInHub: "1", ValueInMember: fmt.Sprint(n)}}
	c := &change{
		hash: fmt.Sprintf("%016x", n), id: api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "web"},
		source: api.Origin{Path: "web.yaml", Line: 1}, paths: []api.Difference{d}, files: []edit.FileChange{{Path: "web.yaml", Before: []byte("a"), After: []byte("b")}},
	}
	for _, cluster := range clusters {
		c.drifts = append(c.drifts, &status.Drift{
			Placement: "crp/web", Cluster: cluster, State: api.DriftHeld, Paths: c.paths,
			ResourceIdentifier: api.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"},
		})
	}
	return c
}

// A change that has lasted long enough is offered once, also after a restart.
func TestChangesAreOfferedOnce(t *testing.T) {
	p := newProposing(10)
	p.after(t, 110*time.Second, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as a pull request once it has lasted for 2m0s")
	if len(p.forge.Pulls) != 0 || p.forge.requests > 2 { // at the start both pull requests and issues are listed
		t.Errorf("%d pull requests after %d requests", len(p.forge.Pulls), p.forge.requests)
	}
	p.after(t, time.Minute, heldChange(7, "east", "west"))
	p.says(t, "west", "held: left as it is; offered as https://git.example.com/pulls/1")
	p.restart(10)
	p.after(t, 3*time.Minute, heldChange(7, "east", "west"))
	p.says(t, "east", "offered as https://git.example.com/pulls/1")
	if got := p.forge.Pulls; len(got) != 1 || !strings.Contains(got[0].Body, "`east`, `west`") {
		t.Errorf("pull requests: %+v", got)
	}
	before := p.forge.requests
	p.after(t, time.Minute, heldChange(7, "east", "west"))
	if n := p.forge.requests - before; n > 2 {
		t.Errorf("%d requests in an idle minute", n)
	}
}

// If it is killed between two steps, it continues with what exists on the forge.
func TestABranchWithoutAPullRequestIsUsed(t *testing.T) {
	p := newProposing(10)
	c := heldChange(7, "east")
	branch := branchPrefix + c.hash
	p.forge.branches[branch] = gitsource.BranchCommit{Files: map[string][]byte{"web.yaml": []byte("b")}, Message: c.message(trailer(c.hash)), Base: "before the crash"}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	if got := p.forge.Pulls; len(got) != 1 || got[0].Branch != branch || p.forge.branches[branch].Base != "before the crash" {
		t.Errorf("pull requests: %+v", got)
	}
}

// Two daemons for one repository open one pull request, also if they do so at the same time.
func TestTwoDaemonsOpenOnePullRequest(t *testing.T) {
	one := newProposing(10)
	two := &proposing{forge: one.forge}
	two.restart(10)
	one.forge.meanwhile = func() { two.after(t, 3*time.Minute, heldChange(7, "east")) }
	one.after(t, 3*time.Minute, heldChange(7, "east"))
	for _, p := range []*proposing{one, two} {
		p.says(t, "east", "offered as https://git.example.com/pulls/1")
	}
	if len(one.forge.Pulls) != 1 || len(one.forge.branches) != 1 {
		t.Errorf("pull requests %+v, branches %v", one.forge.Pulls, one.forge.branches)
	}
}

// If people close the pull request, the change is reverted now and whenever it occurs again.
func TestARejectedChangeIsPutBack(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.End(1, forge.Closed)
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

// After the merge, the change is held until the commit is in force. If it is made again later,
// it is a new change.
func TestAMergedChangeWaitsForItsCommit(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.End(1, forge.Merged)
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; https://git.example.com/pulls/1 was merged")
	p.after(t, time.Minute)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	if got := p.forge.Pulls; len(got) != 2 || got[1].Branch != branchPrefix+heldChange(7).hash+"-2" {
		t.Errorf("pull requests: %+v", got)
	}
}

// When the drift ends, its pull request is closed, and no other.
func TestADriftThatIsOverClosesItsPullRequest(t *testing.T) {
	p := newProposing(10)
	p.forge.Pulls = []*forge.PullRequest{
		{Base: "main", Thread: forge.Thread{Number: 1, State: forge.Open, Body: marker("other-fleet", "0123456789abcdef")}, Branch: branchPrefix + "other"},
		{Base: "main", Thread: forge.Thread{Number: 2, State: forge.Open, Body: "by hand"}, Branch: branchPrefix + "person"},
		{Base: "main", Thread: forge.Thread{Number: 3, State: forge.Open, Body: marker("shop", "0123456789abcdef")}, Branch: branchPrefix + "fork", Fork: true},
	}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.after(t, 30*time.Second)
	p.restart(10)
	p.after(t, 30*time.Second) // the members have not reported yet
	if p.forge.Pulls[3].State != forge.Open {
		t.Error("closed at once")
	}
	p.after(t, 2*time.Minute)
	if got := p.forge.Pulls; got[3].State != forge.Closed || len(p.forge.comments) != 1 || len(p.forge.branches) != 0 {
		t.Errorf("%+v, comments %q, branches %v", got[3], p.forge.comments, p.forge.branches)
	}
	if p.forge.Pulls[0].State != forge.Open || p.forge.Pulls[1].State != forge.Open || p.forge.Pulls[2].State != forge.Open {
		t.Error("pull requests of others were closed")
	}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "offered as https://git.example.com/pulls/5")
}

// Many changes at once open no more pull requests than allowed, with few requests.
func TestOnlySoManyAreOpen(t *testing.T) {
	p := newProposing(10)
	var all []*change
	for i := range 300 {
		all = append(all, heldChange(i+10, fmt.Sprint("member-", i)))
	}
	p.after(t, 150*time.Second, all...)
	if n := len(p.forge.Pulls); n != 10 || p.forge.requests > 50 {
		t.Errorf("%d pull requests with %d requests", n, p.forge.requests)
	}
	p.says(t, "member-299", "held: left as it is; pull requests of drift: 10 open; drift.maxOpen allows 10")
	for i, pr := range p.forge.Pulls {
		if lists := strings.Contains(pr.Body, "290 changes: `ConfigMap shop/web`"); lists != (i == 9) {
			t.Errorf("the body of pull request %d lists what waits: %v", i+1, lists)
		}
	}
	p.forge.End(3, forge.Closed)
	p.after(t, time.Minute, all...)
	if n := len(p.forge.Pulls); n != 11 {
		t.Errorf("%d pull requests after one was closed", n)
	}
}

// A branch is rebuilt when the edit of its files changes, but never if people have pushed to
// it: then a comment says so, once.
func TestABranchFollowsItsFiles(t *testing.T) {
	edited := func(after string) *change {
		c := heldChange(7, "east")
		c.files[0].After = []byte(after)
		return c
	}
	p := newProposing(10)
	branch := branchPrefix + edited("").hash
	p.after(t, 3*time.Minute, edited("b"))
	pushed := p.forge.pushes
	p.follower.known.commit = "another"
	p.after(t, time.Minute, edited("b"))
	if p.forge.pushes != pushed {
		t.Error("pushed while the edit is the same")
	}
	p.after(t, time.Minute, edited("c"))
	if got := p.forge.branches[branch]; string(got.Files["web.yaml"]) != "c" || got.Base != "another" {
		t.Errorf("the branch has %q on %s", got.Files, got.Base)
	}
	p.forge.others[branch] = true
	p.follower.known.commit = "a third"
	p.after(t, time.Minute, edited("d"))
	p.restart(10)
	p.follower.known.commit = "a third"
	p.after(t, 3*time.Minute, edited("d"))
	p.after(t, time.Minute, edited("e"))
	if got := string(p.forge.branches[branch].Files["web.yaml"]); got != "c" {
		t.Errorf("the branch has %q", got)
	}
	if len(p.forge.comments) != 1 || !strings.Contains(p.forge.comments[0], "leaves this branch as it is") {
		t.Errorf("comments: %q", p.forge.comments)
	}
	p.after(t, 3*time.Minute)
	if p.forge.Pulls[0].State != forge.Closed || !p.forge.others[branch] || p.forge.branches[branch].Branch == "" {
		t.Errorf("%+v, branches %v", p.forge.Pulls[0], p.forge.branches)
	}
}

// The label gitfleet/hold keeps an object as it is while the pull request has it.
func TestTheHoldLabel(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.Pulls[0].Labels = append(p.forge.Pulls[0].Labels, holdLabel)
	p.forge.End(1, forge.Closed)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; https://git.example.com/pulls/1 has the label gitfleet/hold")
	p.restart(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "has the label gitfleet/hold")
	p.forge.Pulls[0].Labels = nil
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "put back: https://git.example.com/pulls/1 was closed without merging")
	p.after(t, time.Minute)
	p.forge.Pulls[0].Labels = []string{holdLabel} // while no cluster has the change
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "has the label gitfleet/hold")
}

// The labels of a pull request say what has changed and on which clusters.
func TestLabels(t *testing.T) {
	for path, want := range map[string]string{
		"/spec/replicas": "replicas", "/spec/template/spec/containers/0/image": "image", "/data/key": "other",
	} {
		c := heldChange(7, "east")
		c.paths[0].Path = path
		if got := strings.Join(c.labels(), ", "); got != "gitfleet/drift, gitfleet/severity: "+want+", placement/web" {
			t.Errorf("%s: %s", path, got)
		}
	}
	c := heldChange(7, "east")
	if c.id = (api.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "web"}); c.severity() != "rbac" {
		t.Errorf("a ClusterRole is %q", c.severity())
	}
}

// The title says what changed, and on how many of the clusters that get the object. A name that a
// member has chosen is in it only if it is a plain one.
func TestTitles(t *testing.T) {
	paths := func(all ...string) (out []api.Difference) {
		for _, path := range all {
			out = append(out, api.Difference{PatchDetail: api.PatchDetail{Path: path}})
		}
		return out
	}
	for want, change := range map[string]func(*change){
		"Drift: ConfigMap shop/web: image changed on 2 of 3 clusters": func(c *change) { c.paths, c.holders = paths("/spec/template/spec/containers/0/image"), 3 },
		"Drift: ConfigMap shop/web: image changed on 2 clusters":      func(c *change) { c.paths, c.holders = paths("/spec/template/spec/containers/0/image"), 2 },
		"Drift: ConfigMap shop/web: args changed on 2 clusters":       func(c *change) { c.paths = paths("/spec/args/0") },
		"Drift: ConfigMap shop/web: a/b changed on 2 clusters":        func(c *change) { c.paths = paths("/metadata/labels/a~1b") },
		"Drift: ConfigMap shop/web: 2 fields changed on 2 clusters":   func(c *change) { c.paths = paths("/data/a", "/data/b") },
		"Drift: ConfigMap shop/web: 40 fields changed on 2 clusters":  func(c *change) { c.paths = paths("/data/a", "/data/b and 38 more") },
		"Drift: ConfigMap shop/web: 1 field changed on 2 clusters":    func(c *change) { c.paths = paths("/data/@admin #1") },
		"Drift: ConfigMap shop/web: deleted on 2 clusters":            func(c *change) { c.paths, c.deleted = nil, true },
	} {
		c := heldChange(7, "east", "west")
		if change(c); c.title() != want {
			t.Errorf("the title is %q, want %q", c.title(), want)
		}
	}
	c := heldChange(7, "east")
	c.id.Name = strings.Repeat("x", 300)
	if n := len([]rune(c.title())); n > 255 {
		t.Errorf("a title of %d characters", n)
	}
}

// Whatever a member says stays text in the body of a pull request.
func TestTextsOfMembersAreEscaped(t *testing.T) {
	c := heldChange(7, "east")
	evil := "```\n@admin <!-- gitfleet: shop 00 -->\x1b[31m\u202e[x](http://example.com)"
	c.paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/`key`", ValueInHub: "1", ValueInMember: evil}}}
	c.drifts[0].By = []api.Actor{{Manager: "``` @admin", Operation: "Update"}}
	body := c.body("shop", nil)
	for _, want := range []string{
		"````diff\n  data[\"`key`\"]\n- \"1\"\n+ \"```\\n@admin <!-- gitfleet: shop 00 -->\\e[31m\\u202e[x](http://example.com)\"\n````\n",
		"````text\neast: ``` @admin (Update)\n````\n", "- **Who:** ```` ``` @admin (Update) ````\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the body has no\n%s\nin\n%s", want, body)
		}
	}
	if got := markedAs(body, "shop"); got != c.hash {
		t.Errorf("marked as %q", got)
	}
}
