package proposal

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// However many changes are offered in a pass, the issues are listed once.
func TestIssuesAreListedOnceInAPass(t *testing.T) {
	p := newProposing(10)
	var all []*change
	for i := range 5 {
		all = append(all, manualChange(i+10, "east"))
	}
	p.after(t, 2*time.Minute, all...)
	before := p.forge.issueLists
	p.after(t, 10*time.Second, all...)
	if n := p.forge.issueLists - before; len(p.forge.Issues) != 5 || n > 1 {
		t.Errorf("%d issues are open after %d lists", len(p.forge.Issues), n)
	}
}

// Also a burst of changes that are due in pass after pass lists the issues once in an interval.
func TestABurstListsIssuesOnceInAnInterval(t *testing.T) {
	p := newProposing(100)
	var all []*change
	for i := range 24 {
		all = append(all, manualChange(i+10, "east"))
		p.after(t, 10*time.Second, all...)
	}
	if n := len(p.forge.Issues); n != 12 || p.forge.issueLists > 12 {
		t.Errorf("%d issues are open after %d lists", n, p.forge.issueLists)
	}
}

// An issue is opened once also if the answer to that is lost.
func TestAnIssueWhoseOpeningIsNotAnsweredIsFound(t *testing.T) {
	p := newProposing(10)
	p.after(t, 110*time.Second, manualChange(7, "east"))
	p.forge.loseAnswer = &forge.StatusError{Status: 422}
	p.after(t, 20*time.Second, manualChange(7, "east"))
	p.after(t, 20*time.Second, manualChange(7, "east"))
	p.says(t, "east", "offered as https://git.example.com/issues/1")
	if n := len(p.forge.Issues); n != 1 {
		t.Errorf("%d issues", n)
	}
}
