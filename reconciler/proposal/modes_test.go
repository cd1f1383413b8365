package proposal

import (
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Without a forge, and with a mode that only reports, the object is not changed. Once the time
// of a mode is over, the object is compared again.
func TestModesOfHeldDrift(t *testing.T) {
	p := newProposing(10)
	p.follower.tracker.cfg.Forge, p.follower.tracker.cfg.Branches = nil, nil
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; not offered as a pull request, since no forge is configured")

	c := heldChange(7, "east")
	end := p.forge.Now.Add(time.Minute)
	c.drifts[0].Rule = "propose until " + end.UTC().Format(time.RFC3339)
	again := func() bool {
		for _, r := range p.resolved["east"] {
			return r.CompareAgain && !r.PutBack
		}
		return false
	}
	p.after(t, 50*time.Second, c)
	if again() {
		t.Error("compared again before the time is over")
	}
	p.after(t, 20*time.Second, c)
	if !again() {
		t.Errorf("decided %+v", p.resolved)
	}

	col := &collector{}
	r := &status.Report{InForce: &hub.Snapshot{}}
	d := *c.drifts[0]
	d.Rule = "report until 2030-01-31T00:00:00Z"
	r.Drifts = []status.Drift{d}
	offers, others := col.collect(r, nil)
	if len(offers) != 0 || len(others) != 1 || others[0].state != Reported || !strings.Contains(others[0].message, d.Rule) {
		t.Errorf("offers %v, others %+v", offers, others)
	}
}
