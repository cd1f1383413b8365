package proposal

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// While it is not known whether an edit can still make a change, as after a restart, its open
// pull request is shown as open, and a command can close it.
func TestAnOpenPullRequestOfAnUntriedChangeIsOpen(t *testing.T) {
	p := newProposing(10)
	c := heldChange(7, "east")
	p.after(t, 3*time.Minute, c)
	for _, restart := range []bool{false, true} {
		if restart {
			p.restart(10)
		}
		p.follower.known.notOffered = []notOffered{{c, Unsettled, errNotTried.Error(), true}}
		p.after(t, time.Minute)
		p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
		if held := p.Held().Items; len(held) != 1 || held[0].State != Open || held[0].URL != "https://git.example.com/pulls/1" {
			t.Errorf("held: %+v", held)
		}
	}
	if said, err := p.close(t, c.hash); err != nil || p.forge.Pulls[0].State != forge.Closed {
		t.Errorf("said %q: %v", said, err)
	}
}
