package proposal

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// newLeftovers returns a Proposer that has just started, and a forge with branches whose pull requests
// have ended before.
func newLeftovers(branches int) *proposing {
	p := newProposing(10)
	for n := range branches {
		hash := fmt.Sprintf("%016x", n)
		p.forge.branches[branchPrefix+hash] = gitsource.BranchCommit{Message: trailer(hash)}
		p.forge.Pulls = append(p.forge.Pulls, &forge.PullRequest{Base: "main", Thread: forge.Thread{Number: int64(n + 1), State: forge.Closed, Body: marker("shop", hash)}, Branch: branchPrefix + hash})
	}
	return p
}

// However often there is a pass, the forge is asked about few leftover branches in an interval.
func TestLeftoverBranchesAreDeletedAFewAtATime(t *testing.T) {
	p := newLeftovers(25)
	for _, want := range []int{15, 15, 15, 5, 5, 5, 0} {
		if p.after(t, 10*time.Second); len(p.forge.branches) != want {
			t.Fatalf("%d branches are left after %d requests, want %d", len(p.forge.branches), p.forge.requests, want)
		}
	}
}

// A limitedForge refuses to look for pull requests.
type limitedForge struct{ *fakeForge }

func (f limitedForge) FindPullRequest(context.Context, string, string) (*forge.PullRequest, error) {
	return nil, &forge.StatusError{Status: 429, RetryAfter: 5 * time.Minute}
}

// A forge that asks for fewer requests while leftover branches are looked at gets none at all.
func TestLeftoverBranchesRespectTheLimitOfTheForge(t *testing.T) {
	p := newLeftovers(25)
	p.follower.tracker.cfg.Forge = limitedForge{p.forge}
	c := heldChange(70, "east")
	p.forge.Pulls = append(p.forge.Pulls, &forge.PullRequest{Base: "main", Thread: forge.Thread{Number: 26, State: forge.Open, Body: c.body("shop", nil)}, Branch: branchPrefix + c.hash})
	p.after(t, 10*time.Second, c)
	before := p.forge.requests
	p.after(t, 4*time.Minute, c)
	if n := p.forge.requests - before; n != 0 {
		t.Errorf("%d requests", n)
	}
	if got := p.Problems(); len(got) != 1 || !strings.Contains(got[0], "429") {
		t.Errorf("status says %q", got)
	}
}
