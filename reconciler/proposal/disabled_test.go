package proposal

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// A pull request of a change that no edit makes any more counts after a restart also if issues are
// disabled in the repository.
func TestAPullRequestCountsWithoutIssues(t *testing.T) {
	for name, test := range map[string]struct {
		decide func(*fakeForge)
		want   string
	}{
		"open":     {func(*fakeForge) {}, "held: left as it is; offered as https://git.example.com/pulls/1"},
		"rejected": {func(f *fakeForge) { f.End(1, forge.Closed) }, "put back: https://git.example.com/pulls/1 was closed without merging"},
		"on hold": {func(f *fakeForge) {
			f.Pulls[0].Labels = append(f.Pulls[0].Labels, holdLabel)
			f.End(1, forge.Closed)
		}, "held: left as it is; https://git.example.com/pulls/1 has the label gitfleet/hold"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(1)
			p.after(t, 3*time.Minute, heldChange(7, "east"))
			test.decide(p.forge)
			p.forge.refuseIssues = forge.ErrIssuesDisabled
			p.restart(1)
			for range 12 {
				p.after(t, 10*time.Second, manualChange(7, "east"), heldChange(8, "west"))
				p.says(t, "east", test.want)
			}
			p.after(t, 3*time.Minute, manualChange(7, "east"), manualChange(9, "north"))
			p.says(t, "north", "put back: put back, since it cannot be offered")
			before := p.forge.requests
			p.after(t, time.Minute, manualChange(7, "east"), manualChange(9, "north"))
			if n := p.forge.requests - before; n > 4 {
				t.Errorf("%d requests in an idle minute", n)
			}
		})
	}
}

// If the forge does not say whether a change was offered, the object is left as it is.
func TestNothingIsPutBackBeforeTheForgeAnswers(t *testing.T) {
	p := newProposing(10)
	p.forge.refuseIssues = forge.ErrIssuesDisabled
	p.after(t, time.Minute, heldChange(7, "east"))
	p.forge.fail = &forge.StatusError{Status: 502}
	p.after(t, time.Minute, manualChange(8, "west"))
	p.says(t, "west", "held: left as it is; not offered as an issue since")
	p.forge.fail = nil
	p.after(t, time.Minute, manualChange(8, "west"))
	p.says(t, "west", "put back: put back, since it cannot be offered")
}

// An open issue with the hold label keeps the object as it is also after issues were disabled.
func TestAnOpenIssueOnHoldCountsWithoutIssues(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.forge.Issues[0].Labels = append(p.forge.Issues[0].Labels, holdLabel)
	p.after(t, time.Minute, manualChange(7, "east"))
	p.forge.refuseIssues = forge.ErrIssuesDisabled
	for range 12 {
		p.after(t, 10*time.Second, manualChange(7, "east"))
		p.says(t, "east", "held: left as it is; offered as https://git.example.com/issues/1")
	}
	p.forge.refuseIssues = nil
	p.forge.EndIssue(1)
	p.after(t, time.Minute, manualChange(7, "east"))
	p.says(t, "east", "held: left as it is; https://git.example.com/issues/1 has the label gitfleet/hold")
	p.forge.Issues[0].Labels = []string{issueLabel}
	p.after(t, time.Minute, manualChange(7, "east"))
	p.says(t, "east", "put back: https://git.example.com/issues/1 was closed")
}
