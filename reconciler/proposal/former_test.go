package proposal

import (
	"fmt"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// The former hash of a change is the one without the digest of what is cut off.
func TestTheFormerHash(t *testing.T) {
	d := &status.Drift{Paths: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/key", ValueInMember: "long…"}}}}
	before := newOffer("shop", d)
	d.Digest = "0123"
	if now := newOffer("shop", d); before.former != "" || now.former != before.hash || now.hash == before.hash {
		t.Errorf("the hash was %q (formerly %q), and is %q (formerly %q)", before.hash, before.former, now.hash, now.former)
	}
}

// upgraded returns a change as it is known since the digest of what is cut off is part of its hash.
func upgraded(o *offer, rest int) *offer {
	o.former, o.rest = o.hash, fmt.Sprint(rest)
	o.hash = fmt.Sprintf("%016x", 1000+rest)
	return o
}

// What was offered, rejected or held before an upgrade that gives the change another hash still counts.
func TestAnUpgradeKeepsWhatWasOffered(t *testing.T) {
	for form, of := range map[string]func(int, ...string) *offer{"issues": manualChange, "pulls": heldChange} {
		for decision, want := range map[string]string{
			"open": "held: left as it is; offered as https://git.example.com/" + form + "/1", "rejected": "put back: https://git.example.com/" + form + "/1",
			"on hold": "held: left as it is; https://git.example.com/" + form + "/1 has the label gitfleet/hold",
		} {
			t.Run(form+" "+decision, func(t *testing.T) {
				p := newProposing(10)
				p.after(t, 3*time.Minute, of(7, "east"))
				for _, pr := range p.forge.pulls {
					if pr.Labels = holdIf(decision == "on hold", pr.Labels); decision != "open" {
						p.forge.end(1, forge.Closed)
					}
				}
				for _, i := range p.forge.issues {
					if i.Labels = holdIf(decision == "on hold", i.Labels); decision != "open" {
						p.forge.endIssue(1)
					}
				}
				for range 2 {
					p.restart(10)
					p.after(t, 5*time.Minute, upgraded(of(7, "east"), 1))
					p.says(t, "east", want)
				}
				if n := len(p.forge.issues) + len(p.forge.pulls); n != 1 || len(p.forge.comments) > 0 {
					t.Errorf("it was offered %d times; comments %q", n, p.forge.comments)
				}
				if decision != "open" {
					return
				}
				p.after(t, 3*time.Minute, upgraded(of(7, "east"), 1), upgraded(of(7, "west"), 2))
				p.says(t, "west", "held: left as it is; offered as https://git.example.com/"+form+"/2")
				for range 5 { // both are open, and either could be taken for the other one
					p.restart(10)
					p.after(t, 3*time.Minute, upgraded(of(7, "east"), 1), upgraded(of(7, "west"), 2))
					p.says(t, "east", "held: left as it is; offered as https://git.example.com/"+form+"/1")
					p.says(t, "west", "held: left as it is; offered as https://git.example.com/"+form+"/2")
				}
				p.after(t, 3*time.Minute, upgraded(of(7, "west"), 2))
				if n := len(p.forge.issues) + len(p.forge.pulls); n != 2 || len(p.forge.comments) != 1 {
					t.Errorf("one drift is over: offered %d times, comments %q", n, p.forge.comments)
				}
				p.after(t, 3*time.Minute)
				if len(p.forge.comments) != 2 || len(p.forge.branches) != 0 {
					t.Errorf("the drift is over: comments %q, branches %v", p.forge.comments, p.forge.branches)
				}
			})
		}
	}
}

// A pull request that was updated after an upgrade counts for its change only, also for what is decided
// about it later and for a change that is not computed yet.
func TestAnUpdatedRequestIsOfOneChange(t *testing.T) {
	for form, of := range map[string]func(int, ...string) *offer{"issues": manualChange, "pulls": heldChange} {
		t.Run(form, func(t *testing.T) {
			p := newProposing(10)
			p.after(t, 3*time.Minute, of(7, "east"))
			p.restart(10)
			p.after(t, 3*time.Minute, upgraded(of(7, "east"), 1))
			p.restart(10)
			p.known.verdicts = []verdict{{of: upgraded(of(7, "east"), 1), state: Unsettled, message: errNotTried.Error(), undecided: true}}
			p.after(t, time.Minute)
			p.says(t, "east", "held: left as it is; offered as https://git.example.com/"+form+"/1")
			p.known.verdicts = nil
			for _, pr := range p.forge.pulls {
				p.forge.end(pr.Number, forge.Closed)
			}
			for _, i := range p.forge.issues {
				p.forge.endIssue(i.Number)
			}
			p.restart(10)
			p.after(t, 3*time.Minute, upgraded(of(7, "east"), 1), upgraded(of(7, "west"), 2))
			p.says(t, "east", "put back: https://git.example.com/"+form+"/1")
			p.says(t, "west", "held: left as it is; offered as https://git.example.com/"+form+"/2")
		})
	}
}
