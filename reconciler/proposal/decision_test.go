package proposal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Only a closed pull request or issue without the hold label has its change reverted. Each decision
// says what the change waits for, and what prevents that.
func TestDecisionsAboutOffers(t *testing.T) {
	const pull, issue = branchPrefix + "7", issuePrefix + "7"
	down := errors.New("the forge answered 502")
	anchor := errors.New("its value comes from an anchor")
	const noEdit = "; no edit of the files makes the change: its value comes from an anchor"
	const outdated = "; the pull request is not kept up to date, since no edit of the files makes the change any more"
	const since = "since 2027-01-15T08:00:00Z: the forge answered 502"
	for name, test := range map[string]struct {
		reason error
		state  offerState
		// fails says what fails: the forge, the list of issues or the requests of this change.
		fails string
		want  string
	}{
		"not due":                  {nil, offerState{}, "", "held: left as it is; offered as a pull request once it has lasted for 2m0s"},
		"not due, no edit":         {anchor, offerState{}, "", "held: left as it is; offered as an issue once it has lasted for 2m0s" + noEdit},
		"waiting":                  {nil, offerState{waits: "10 are open"}, "", "held: left as it is; 10 are open"},
		"the forge is down":        {nil, offerState{waits: "10 are open"}, "forge", "held: left as it is; not offered as a pull request " + since},
		"refused":                  {nil, offerState{}, "change", "held: left as it is; not offered as a pull request " + since},
		"issues not listed":        {anchor, offerState{}, "issues", "held: left as it is; not offered as an issue " + since + noEdit},
		"issues do not matter":     {nil, offerState{}, "issues", "held: left as it is; offered as a pull request once it has lasted for 2m0s"},
		"open":                     {nil, offerState{thread: thread{Thread: forge.Thread{State: forge.Open, URL: "URL"}, name: pull}}, "", "held: left as it is; offered as URL"},
		"open, not followed":       {nil, offerState{thread: thread{Thread: forge.Thread{State: forge.Open, URL: "URL"}, name: pull}}, "forge", "held: left as it is; offered as URL; not followed " + since},
		"open, issues not listed":  {nil, offerState{thread: thread{Thread: forge.Thread{State: forge.Open, URL: "URL"}, name: pull}}, "issues", "held: left as it is; offered as URL"},
		"open, not updated":        {anchor, offerState{thread: thread{Thread: forge.Thread{State: forge.Open, URL: "URL"}, name: pull}}, "", "held: left as it is; offered as URL" + outdated},
		"open issue":               {anchor, offerState{thread: thread{Thread: forge.Thread{Kind: forge.KindIssue, State: forge.Open, URL: "URL"}, name: issue}}, "", "held: left as it is; offered as URL" + noEdit},
		"open issue, not followed": {anchor, offerState{thread: thread{Thread: forge.Thread{Kind: forge.KindIssue, State: forge.Open, URL: "URL"}, name: issue}}, "issues", "held: left as it is; offered as URL; not followed " + since + noEdit},
		"merged":                   {nil, offerState{thread: thread{Thread: forge.Thread{State: forge.Merged, URL: "URL"}, name: pull}}, "", "held: left as it is; URL was merged, and its commit is not in force here yet"},
		"rejected":                 {nil, offerState{thread: thread{Thread: forge.Thread{State: forge.Closed, URL: "URL"}, name: pull}}, "", "put back: URL was closed without merging"},
		"rejected, forge is down":  {nil, offerState{thread: thread{Thread: forge.Thread{State: forge.Closed, URL: "URL"}, name: pull}}, "forge", "put back: URL was closed without merging"},
		"closed issue":             {anchor, offerState{thread: thread{Thread: forge.Thread{Kind: forge.KindIssue, State: forge.Closed, URL: "URL"}, name: issue}}, "", "put back: URL was closed"},
		"on hold":                  {nil, offerState{thread: thread{Thread: forge.Thread{State: forge.Closed, Labels: []string{holdLabel}, URL: "URL"}, name: pull}}, "", "held: left as it is; URL has the label gitfleet/hold"},
		"on hold, not followed":    {nil, offerState{thread: thread{Thread: forge.Thread{State: forge.Closed, Labels: []string{holdLabel}, URL: "URL"}, name: pull}}, "forge", "held: left as it is; URL has the label gitfleet/hold; not followed " + since},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			c := heldChange(7, "east")
			c.reason = test.reason
			switch test.fails {
			case "forge":
				p.follower.tracker.retry.Fail(down, p.forge.Now)
			case "issues":
				p.follower.tracker.issues.Fail(down, p.forge.Now)
			case "change":
				test.state.retry.Fail(down, p.forge.Now)
			}
			putBack, message := p.decideOffered(c, &test.state)
			got := "held: " + message
			if putBack {
				got = "put back: " + message
			}
			if got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// Each state of the forge has one state in the list of proposals.
func TestTheStateOfAnOffer(t *testing.T) {
	in := func(s forge.State, labels ...string) offerState {
		return offerState{thread: thread{Thread: forge.Thread{State: s, Labels: labels}}}
	}
	for want, s := range map[State]offerState{
		Waiting: {}, Open: in(forge.Open, holdLabel), Merged: in(forge.Merged), Closed: in(forge.Closed), OnHold: in(forge.Closed, holdLabel),
	} {
		if got := s.heldState(); got != want {
			t.Errorf("%+v is %s, want %s", s, got, want)
		}
		if keeps := s.keepsObject(); keeps != (want == Open || want == OnHold) {
			t.Errorf("%s keeps the object: %v", want, keeps)
		}
	}
}

// A change is due the minimum age after it was seen, or after its last edit has become impossible.
func TestWhenAChangeIsDue(t *testing.T) {
	seen := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		manual time.Time
		want   time.Duration
	}{
		"an edit makes it":   {time.Time{}, 2 * time.Minute},
		"none ever did":      {seen, 2 * time.Minute},
		"none does any more": {seen.Add(time.Hour), time.Hour + 2*time.Minute},
	} {
		s := offerState{since: seen, manualSince: test.manual}
		if got := s.due(2 * time.Minute).Sub(seen); got != test.want {
			t.Errorf("%s: due after %s, want %s", name, got, test.want)
		}
	}
}

// A drift whose mode has ended is compared again, whatever is decided about its change.
func TestAnEndedModeCountsMoreThanTheDecision(t *testing.T) {
	noon := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
	for mode, want := range map[string]protocol.DriftDecision{
		"propose":                            {PutBack: true, Message: "closed"},
		"propose until 2027-01-15T12:00:01Z": {PutBack: true, Message: "closed"},
		"propose until 2027-01-15T12:00:00Z": {CompareAgain: true, Message: "its drift mode has ended: propose until 2027-01-15T12:00:00Z"},
		"report until 2027-01-01T00:00:00Z":  {CompareAgain: true, Message: "its drift mode has ended: report until 2027-01-01T00:00:00Z"},
	} {
		c, all := heldChange(7, "east", "west"), decisions{}
		for _, d := range c.drifts {
			d.Rule = mode
		}
		all.add(c, true, "closed", noon)
		if len(all["east"]) != 1 || len(all["west"]) != 1 {
			t.Errorf("decisions are %+v", all)
		}
		for _, r := range all["west"] {
			if r.Fingerprint = ""; r != want {
				t.Errorf("%s: %+v, want %+v", mode, r, want)
			}
		}
	}
}

// refusals are the commands that are refused in a state, with the reason.
func TestCommandsThatAreRefused(t *testing.T) {
	const url = "https://git.example.com/pulls/1"
	hold := func(p *proposing) { p.forge.Pulls[0].Labels = []string{holdLabel} }
	for name, test := range map[string]struct {
		prepare     func(t *testing.T, p *proposing)
		close, open string
	}{
		"open": {
			func(*testing.T, *proposing) {},
			"", url + " is open already",
		},
		"open, on hold": {
			func(t *testing.T, p *proposing) { hold(p); p.after(t, time.Minute, heldChange(7, "east")) },
			url + " has the label gitfleet/hold, which keeps the object as it is: remove the label first", url + " is open already",
		},
		"labeled since it was listed": {
			func(_ *testing.T, p *proposing) { hold(p) },
			url + " is not open any more, or has the label gitfleet/hold; see gitfleet proposals show", url + " is open already",
		},
		"closed since it was listed": {
			func(_ *testing.T, p *proposing) { p.forge.End(1, forge.Closed) },
			url + " is not open any more, or has the label gitfleet/hold; see gitfleet proposals show", url + " is open already",
		},
		"merged": {
			func(t *testing.T, p *proposing) {
				p.forge.End(1, forge.Merged)
				p.after(t, time.Minute, heldChange(7, "east"))
			},
			"there is nothing to close: left as it is; " + url + " was merged", "it cannot be offered as a pull request: left as it is; " + url + " was merged",
		},
		"closed": {
			func(t *testing.T, p *proposing) {
				p.forge.End(1, forge.Closed)
				p.after(t, time.Minute, heldChange(7, "east"))
			},
			"there is nothing to close: " + url + " was closed without merging", "",
		},
		"closed, on hold": {
			func(t *testing.T, p *proposing) {
				hold(p)
				p.forge.End(1, forge.Closed)
				p.after(t, time.Minute, heldChange(7, "east"))
			},
			url + " has the label gitfleet/hold, which keeps the object as it is: remove the label", "",
		},
		"in Git already": {
			func(t *testing.T, p *proposing) {
				p.forge.End(1, forge.Closed)
				p.after(t, time.Minute)
				p.follower.known.notOffered = []notOffered{{change: heldChange(8, "east"), state: Unsettled, message: "commit c0ffee has it"}}
				p.after(t, time.Minute)
			},
			"there is nothing to close: commit c0ffee has it", "it cannot be offered as a pull request: commit c0ffee has it",
		},
		"no edit and no issues": {
			func(t *testing.T, p *proposing) {
				p.forge.refuseIssues = forge.ErrIssuesDisabled
				p.after(t, 3*time.Minute, manualChange(8, "east"))
			},
			"", "it cannot be offered as a pull request: put back, since it cannot be offered",
		},
		"no forge": {
			func(t *testing.T, p *proposing) { p.follower.tracker.cfg.Forge = nil; p.restartWithoutForge(t) },
			"", "no forge is configured, so nothing can be offered as a pull request",
		},
	} {
		for command, want := range map[string]string{"close": test.close, "open": test.open} {
			t.Run(name+"/"+command, func(t *testing.T) {
				p := newProposing(10)
				p.after(t, 3*time.Minute, heldChange(7, "east"))
				test.prepare(t, p)
				do := p.close
				if command == "open" {
					do = p.open
				}
				said, err := do(t, "00000000000000")
				if want == "" && err != nil {
					t.Errorf("refused: %v", err)
				}
				if want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
					t.Errorf("said %q, %v, want %s", said, err, want)
				}
				if _, own := errors.AsType[*RefusedError](err); want != "" && !own {
					t.Errorf("%v is no refusal", err)
				}
			})
		}
	}
}

// restartWithoutForge starts the proposer anew without a forge.
func (p *proposing) restartWithoutForge(t *testing.T) {
	p.restart(10)
	p.follower.tracker.cfg.Forge, p.follower.tracker.cfg.Branches = nil, nil
	p.after(t, time.Minute, heldChange(7, "east"))
}

// A name stands for a change if it is the beginning of no other name.
func TestFindingAChangeByItsName(t *testing.T) {
	l := &HeldList{Items: []HeldChange{{Name: "abc1"}, {Name: "abd2"}, {Name: "b"}}}
	for name, want := range map[string]string{
		"abc": "abc1", "abc1": "abc1", "b": "b",
		"ab": "ab is the beginning of more than one name; write more of it", "c": "there is no proposal c", "": "there is no proposal ", "abc12": "there is no proposal abc12",
	} {
		c, err := l.Find(name)
		got := fmt.Sprint(err)
		if err == nil {
			got = c.Name
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q finds %q, want %q", name, got, want)
		}
	}
}
