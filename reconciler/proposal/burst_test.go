package proposal

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/poll"
)

// 300 changes at once on 100 clusters, which people merge and close one after the other: every
// change is offered once, never more requests are open than allowed, and few requests are sent
// to the forge.
func TestManyDriftsAtOnce(t *testing.T) {
	const changes, maxOpen = 300, 10
	p := newProposing(maxOpen)
	var held []*change
	for i := range changes {
		held = append(held, heldChange(i+1000, fmt.Sprintf("member-%02d", i%100)))
	}
	decided := map[string]forge.State{} // by branch
	for round := 0; len(decided) < changes; round++ {
		if round > changes {
			t.Fatalf("after %d rounds %d of %d changes are decided", round, len(decided), changes)
		}
		p.after(t, time.Minute, held...)
		var open []*forge.PullRequest
		for _, pr := range p.forge.Pulls {
			if pr.State == forge.Open {
				open = append(open, pr)
			}
		}
		if len(open) > maxOpen {
			t.Fatalf("%d pull requests are open", len(open))
		}
		for i, pr := range open {
			if i%2 == 0 {
				continue // people decide only now and then
			}
			state := forge.Merged
			if pr.Number%3 == 0 {
				state = forge.Closed
			}
			p.forge.End(pr.Number, state)
			decided[pr.Branch] = state
			// once its commit is in force, a merged change is no drift any more
			if state == forge.Merged {
				held = slices.DeleteFunc(held, func(c *change) bool { return branchPrefix+c.hash == pr.Branch })
			}
		}
		if len(open) == 1 {
			p.forge.End(open[0].Number, forge.Merged)
			decided[open[0].Branch] = forge.Merged
		}
	}
	p.after(t, 10*time.Minute, held...)
	if len(p.forge.Pulls) != changes || len(decided) != changes {
		t.Errorf("%d pull requests were opened, and %d decided, of %d changes", len(p.forge.Pulls), len(decided), changes)
	}
	for _, c := range held {
		if s := p.follower.states[c.hash]; s == nil || s.State != decided[branchPrefix+c.hash] {
			t.Errorf("of change %s is known %+v, and it was %s", c.hash, s, decided[branchPrefix+c.hash])
		}
	}
	if p.forge.requests > 5*changes || p.forge.pushes > 2*changes {
		t.Errorf("%d requests and %d pushes for %d changes", p.forge.requests, p.forge.pushes, changes)
	}
	before := p.forge.requests
	p.after(t, 10*time.Minute, held...)
	if n := p.forge.requests - before; n > 20 {
		t.Errorf("%d requests in ten minutes in which nothing happens", n)
	}
}

// A webhook causes a check of the pull requests before the interval is over, but many webhooks
// cause only one.
func TestAWebhookWakesTheProposer(t *testing.T) {
	p := newProposing(10)
	p.follower.tracker.cfg.Interval = time.Hour
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.forge.End(1, forge.Closed)
	p.after(t, time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as")
	p.follower.woken = true
	p.after(t, 10*time.Second, heldChange(7, "east"))
	p.says(t, "east", "put back: ")
	if p.forge.forgotten != 1 {
		t.Errorf("%d lists as new as the request, want that of the webhook", p.forge.forgotten)
	}

	before := p.forge.requests
	for range 100 {
		p.follower.woken = true
		p.forge.Now = p.forge.Now.Add(poll.Spacing / 10)
		p.advance(t.Context(), p.forge.Now)
	}
	if n := p.forge.requests - before; n > 20 {
		t.Errorf("%d requests in %s", n, 10*poll.Spacing)
	}
	for range 3 {
		p.Wake() // never blocks
	}
}

// BenchmarkIdle measures the requests to the forge while pull requests are open and nothing
// happens.
func BenchmarkIdle(b *testing.B) {
	p := newProposing(10)
	var held []*change
	for i := range 10 {
		held = append(held, heldChange(i+1000, "east"))
	}
	p.after(b, 10*time.Minute, held...)
	before, began := p.forge.requests, p.forge.Now
	for b.Loop() {
		p.after(b, time.Minute, held...)
	}
	b.ReportMetric(float64(p.forge.requests-before)/p.forge.Now.Sub(began).Minutes(), "requests/min")
}

// If changes become due one after the other, the newest pull request is not edited each time.
func TestTheListOfWaitingChangesIsEditedSeldom(t *testing.T) {
	p := newProposing(1)
	held := []*change{heldChange(0, "east")}
	p.after(t, 3*time.Minute, held...)
	second := func() {
		p.forge.Now = p.forge.Now.Add(time.Second)
		p.advance(t.Context(), p.forge.Now)
	}
	for n := range 20 {
		held = append(held, heldChange(n+1, "west"))
		p.follower.known.offers = held
		second()
	}
	p.after(t, 90*time.Second, held...)
	before := p.forge.requests
	for range 40 {
		second()
	}
	if n := p.forge.requests - before; n > 6 {
		t.Errorf("%d requests in 40 seconds", n)
	}
	p.after(t, time.Minute, held...)
	if body := p.forge.Pulls[0].Body; strings.Count(body, "web") < 20 {
		t.Errorf("the body is\n%s", body)
	}
}
