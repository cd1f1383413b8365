package proposal

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// A pull request that is merged without its change decides nothing: once the merge is in force,
// the change is offered again.
func TestAnEmptyMergeIsOfferedAnew(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.End(1, forge.Merged)
	p.forge.Pulls[0].MergeCommit = "merge"
	p.after(t, 5*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; https://git.example.com/pulls/1 was merged")
	p.follower.known.commit = "merge and more"
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as a pull request once")
	p.after(t, 2*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/2")
}

// A pull request is recognized whatever people do with its body. If its base is changed, the
// change is offered again.
func TestABodyOrBaseThatPeopleEdit(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.Pulls[0].Body = "edited by hand"
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "offered as https://git.example.com/pulls/1")
	if markedAs(p.forge.Pulls[0].Body, "shop") == "" {
		t.Error("the body was not written anew")
	}
	p.forge.Pulls[0].Base = "other"
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "offered as https://git.example.com/pulls/2")
	p.forge.Pulls[1].Body = "edited by hand"
	p.forge.End(2, forge.Closed)
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "put back: https://git.example.com/pulls/2 was closed without merging")
}

// After the ledger was lost, drift on a cluster that has not answered since does not count as
// ended.
func TestADriftOfAnUnheardClusterIsNotOver(t *testing.T) {
	files := world.Files(t, smallFleet)
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "west"), heldChange(8, "east"))
	p.restart(10)
	p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) { return files, nil }
	observe := func(in plan.Input) {
		t.Helper()
		p.report = status.Build(status.Input{Plan: plan.Resolve(in), InForce: in.InForce, Ledger: in.Ledger, Now: in.Now})
		p.group(t.Context())
		p.after(t, 3*time.Minute)
	}
	in := plan.Input{InForce: loaded(t, "c0ffee", files), Ledger: ledger.New(), Now: now, Memo: plan.NewMemo()}
	in.Ledger.Fold(protocol.ClusterSeen{Cluster: "east", At: now, Healthy: true})
	in.Ledger.Fold(protocol.ClusterSeen{Cluster: "west", At: now, Error: "connection refused"})
	observe(in)
	if got := p.forge.Pulls; got[0].State != forge.Open || got[1].State != forge.Closed {
		t.Errorf("before west answers: %+v, %+v", got[0], got[1])
	}
	in.Ledger.Fold(protocol.ClusterSeen{Cluster: "west", At: now, Healthy: true})
	observe(in)
	if got := p.forge.Pulls; got[0].State != forge.Closed {
		t.Errorf("after west has answered: %+v", got[0])
	}
}

// The branch of a pull request that ended while gitfleet was not running is deleted at the next
// start. Those of other people, of other fleets and without a pull request stay.
func TestBranchesThatAreLeftOverAreDeleted(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"), heldChange(8, "east"), heldChange(9, "east"), heldChange(10, "east"))
	left := []string{branchPrefix + "000000000000000b", branchPrefix + heldChange(9).hash, branchPrefix + heldChange(10).hash, branchPrefix + "foreign"}
	p.forge.End(1, forge.Merged)
	p.forge.End(2, forge.Closed)
	p.forge.End(3, forge.Closed)
	p.forge.others[branchPrefix+heldChange(9).hash] = true
	p.forge.branches[left[0]] = gitsource.BranchCommit{Branch: left[0], Message: trailer("000000000000000b")}
	p.forge.branches[left[3]] = gitsource.BranchCommit{Branch: left[3], Message: trailer("foreign")}
	p.forge.Pulls = append(p.forge.Pulls, &forge.PullRequest{Base: "main", Thread: forge.Thread{Number: 5, State: forge.Closed, Body: marker("other-fleet", "0123456789abcdef")}, Branch: left[3]})
	p.restart(10)
	p.after(t, time.Minute, heldChange(10, "east"))
	if got := slices.Sorted(maps.Keys(p.forge.branches)); !slices.Equal(got, slices.Sorted(slices.Values(left))) {
		t.Errorf("the branches are %q, want %q", got, left)
	}
	before := p.forge.requests
	p.after(t, time.Minute, heldChange(10, "east"))
	if n := p.forge.requests - before; n > 2 {
		t.Errorf("%d requests in an idle minute", n)
	}
}
