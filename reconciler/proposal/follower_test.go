package proposal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// reported makes a proposer handle the report of a fleet in which drift of an object is held.
func (p *proposing) reported(t *testing.T, r *status.Report, d time.Duration) {
	t.Helper()
	p.report = r
	p.group(t.Context())
	p.after(t, d, p.follower.known.offers...)
}

// If the value of a field changes again, as by a second kubectl scale, the new value is a change of
// its own: it is held and offered, and the pull request of the first value is closed.
func TestASecondValueReplacesTheFirst(t *testing.T) {
	files := world.Files(t, smallFleet)
	p := newProposing(10)
	p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) { return files, nil }
	p.collector.load = func(files fs.FS) (*hub.Snapshot, error) {
		return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
	}
	p.reported(t, reporting(t, files, valued("5"), "east", "west"), 3*time.Minute)
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
	first := p.forge.Pulls[0]

	p.reported(t, reporting(t, files, valued("7"), "east", "west"), 10*time.Second)
	p.says(t, "east", "held: left as it is; offered as a pull request once it has lasted for 2m0s")
	if first.State != forge.Open {
		t.Error("the first pull request is closed at once")
	}
	p.reported(t, p.report, 2*time.Minute)
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/2")
	second := p.forge.Pulls[1]
	if first.State != forge.Closed || !endedByGitfleet(first.Body) || len(p.forge.comments) != 1 || !strings.Contains(p.forge.comments[0], "If a cluster has another value now, that is a change of its own.") {
		t.Errorf("the first pull request is %+v, comments %q", first, p.forge.comments)
	}
	if first.Branch == second.Branch || !strings.Contains(second.Body, "+ \"7\"\n") {
		t.Errorf("the second pull request is %+v", second)
	}
	for _, file := range p.forge.branches[second.Branch].Files {
		if !strings.Contains(string(file), `"7"`) {
			t.Errorf("its branch has\n%s", file)
		}
	}

	// the first value once more is offered again, since nobody has rejected it
	p.reported(t, reporting(t, files, valued("5"), "east", "west"), 3*time.Minute)
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/3")
}

// Nothing counts as ended as long as the ledger is lost, and a body that people have edited may be
// about a cluster that has not answered yet.
func TestWhatIsNotOverYet(t *testing.T) {
	for name, test := range map[string]struct {
		known  collected
		body   string
		closed bool
	}{
		"it has ended":                {collected{}, "", true},
		"the ledger is lost":          {collected{lost: true}, "", false},
		"its cluster is silent":       {collected{unanswered: []string{"east"}}, "", false},
		"another cluster is silent":   {collected{unanswered: []string{"west"}}, "", true},
		"edited, a cluster is silent": {collected{unanswered: []string{"west"}}, "edited", false},
		"not computed yet":            {collected{notOffered: []notOffered{{change: heldChange(7, "east"), undecided: true}}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			p.after(t, 3*time.Minute, heldChange(7, "east"))
			if test.body != "" {
				p.forge.Pulls[0].Body = test.body
			}
			p.follower.known = test.known
			p.after(t, 2*time.Minute)
			if got := p.forge.Pulls[0].State == forge.Closed; got != test.closed {
				t.Errorf("closed: %v, want %v", got, test.closed)
			}
		})
	}
}

// A drift that is over for less than a minute keeps its pull request: the member may report it again.
func TestADriftThatComesBackKeepsItsPullRequest(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	for range 5 {
		p.after(t, recoveryGrace)
		p.after(t, 10*time.Second, heldChange(7, "east"))
	}
	if p.forge.Pulls[0].State != forge.Open || len(p.forge.Pulls) != 1 {
		t.Errorf("pull requests: %+v", p.forge.Pulls)
	}
}

// A merge whose commit is not in force yet is asked about once for each commit in force.
func TestAMergeIsLookedForInEachCommit(t *testing.T) {
	p := newProposing(10)
	asked := map[string]int{}
	p.follower.tracker.cfg.Contains = func(_ context.Context, head, _ string) (bool, error) {
		asked[head]++
		return head == "third", nil
	}
	p.follower.known.commit = "first"
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.End(1, forge.Merged)
	p.forge.Pulls[0].MergeCommit = "merge"
	for _, commit := range []string{"first", "second"} {
		p.follower.known.commit = commit
		p.after(t, 2*time.Minute, heldChange(7, "east"))
		p.says(t, "east", "was merged, and its commit is not in force here yet")
	}
	p.follower.known.commit = "third"
	p.after(t, 30*time.Second, heldChange(7, "east"))
	p.says(t, "east", "offered as a pull request once it has lasted")
	if got := fmt.Sprint(asked); got != "map[first:1 second:1 third:1]" {
		t.Errorf("asked %s", got)
	}
}

// A branch that other people have written to and that has no pull request is left alone.
func TestABranchOfOtherPeopleIsNotUsed(t *testing.T) {
	p := newProposing(10)
	branch := branchPrefix + heldChange(7).hash
	p.forge.others[branch] = true
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; not offered as a pull request since 2027-01-15T08:02:10Z: branch "+branch+" has commits of other people and no pull request: open one, or delete the branch")
	if len(p.forge.Pulls) != 0 {
		t.Errorf("pull requests: %+v", p.forge.Pulls)
	}
}

// A change that has ended a hundred times is not offered again, and says so.
func TestAChangeIsNotOfferedEndlessly(t *testing.T) {
	p := newProposing(10)
	hash := heldChange(7).hash
	for n := range maxAttempts {
		branch := branchPrefix + hash
		if n > 0 {
			branch += fmt.Sprintf("-%d", n+1)
		}
		p.forge.Pulls = append(p.forge.Pulls, &forge.PullRequest{Base: "main", Thread: forge.Thread{Number: int64(n + 1), State: forge.Closed, Body: markEnded(marker("shop", hash))}, Branch: branch})
	}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; the same change was offered 100 times, and is not offered again")
	if len(p.forge.Pulls) != maxAttempts {
		t.Errorf("%d pull requests", len(p.forge.Pulls))
	}
}

// An unlabeledForge opens pull requests, but cannot label them.
type unlabeledForge struct{ *fakeForge }

func (f unlabeledForge) OpenPullRequest(ctx context.Context, p forge.NewPullRequest) (forge.PullRequest, error) {
	p.Labels = nil
	pr, err := f.fakeForge.OpenPullRequest(ctx, p)
	return pr, errors.Join(err, &forge.StatusError{Status: 403, Message: "labels are restricted"})
}

// A pull request that could not be labeled is followed like any other.
func TestAPullRequestWithoutLabelsIsFollowed(t *testing.T) {
	p := newProposing(10)
	p.follower.tracker.cfg.Forge = unlabeledForge{p.forge}
	p.after(t, 4*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
	if len(p.forge.Pulls) != 1 {
		t.Errorf("pull requests: %+v", p.forge.Pulls)
	}
}

// A stuckBranches cannot delete branches.
type stuckBranches struct{ *fakeForge }

func (stuckBranches) Remove(context.Context, string, string) error {
	return errors.New("push branch: protected")
}

// A branch that cannot be deleted does not prevent the decision about its change.
func TestABranchThatCannotBeDeleted(t *testing.T) {
	p := newProposing(10)
	p.follower.tracker.cfg.Branches = stuckBranches{p.forge}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.End(1, forge.Closed)
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "put back: https://git.example.com/pulls/1 was closed without merging")
	if got := p.Problems(); len(got) > 0 {
		t.Errorf("status says %q", got)
	}
}

// If the files of the commit cannot be read, the known changes stay as they are, and the files are
// read again in the next pass.
func TestFilesThatCannotBeRead(t *testing.T) {
	files := world.Files(t, smallFleet)
	p := newProposing(10)
	reads, broken := 0, errors.New("disk error")
	p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) { reads++; return files, broken }
	p.collector.load = func(files fs.FS) (*hub.Snapshot, error) {
		return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
	}
	p.reported(t, reporting(t, files, valued("x"), "east"), 10*time.Second)
	if p.decided("east") != "nothing" || p.follower.known.key != "" {
		t.Errorf("decided %q", p.decided("east"))
	}
	broken = nil
	p.reported(t, p.report, 10*time.Second)
	p.says(t, "east", "held: left as it is; offered as a pull request once")
	p.reported(t, p.report, 10*time.Second)
	if reads != 2 {
		t.Errorf("the files of a commit are read %d times", reads)
	}
}

// Of two pull requests with the same hash, the number after it tells them apart; the hash is the same.
func TestTheHashOfABranch(t *testing.T) {
	for branch, want := range map[string]string{
		branchPrefix + "0123": "0123", branchPrefix + "0123-2": "0123", branchPrefix + "0123-100": "0123", issuePrefix + "0123": "0123",
	} {
		if got := branchHash(branch); got != want {
			t.Errorf("%s has %q, want %q", branch, got, want)
		}
	}
	p := newProposing(10)
	p.forge.Pulls = []*forge.PullRequest{{Base: "main", Thread: forge.Thread{Number: 1, State: forge.Closed, Body: markEnded(marker("shop", heldChange(7).hash))}, Branch: branchPrefix + heldChange(7).hash}}
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.restart(10)
	p.forge.Pulls[1].Body = "edited by hand" + "\n" + marker("shop", heldChange(7).hash)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	if got := p.forge.branches; len(p.forge.Pulls) != 2 || len(got) != 1 || got[branchPrefix+heldChange(7).hash+"-2"].Marker != trailer(heldChange(7).hash) {
		t.Errorf("pull requests %+v, branches %+v", p.forge.Pulls, got)
	}
}

// Observe keeps only the newest report, and Run handles it and what a webhook announces.
func TestRunHandlesTheNewestReport(t *testing.T) {
	p := newProposing(10)
	resolved := make(chan string, 10)
	p.follower.tracker.cfg.Files = func(_ context.Context, commit string) (fs.FS, error) {
		resolved <- commit
		return nil, errors.New("not needed")
	}
	report := func(commit string) *status.Report {
		return &status.Report{InForce: &hub.Snapshot{Commit: hub.Commit{Hash: commit}}}
	}
	p.Observe(report("first"))
	p.Observe(report("second"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	for _, want := range []string{"second", "second"} {
		if got := <-resolved; got != want {
			t.Errorf("handled %s, want %s", got, want)
		}
		p.Wake()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
