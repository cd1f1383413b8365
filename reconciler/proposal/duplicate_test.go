package proposal

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// An issue counts also if a pull request was opened for its change while issues could not be listed.
func TestAnIssueCountsOnceItCanBeListed(t *testing.T) {
	hold := func(f *fakeForge) { f.Issues[0].Labels = append(f.Issues[0].Labels, holdLabel) }
	for name, test := range map[string]struct {
		decide func(*fakeForge)
		again  bool // whether gitfleet restarts before issues can be listed
		want   string
		// issue is the state of the issue in the end
		issue forge.State
	}{
		"open":               {func(*fakeForge) {}, false, "held: left as it is; offered as https://git.example.com/pulls/1", forge.Closed},
		"open, restarted":    {func(*fakeForge) {}, true, "held: left as it is; offered as https://git.example.com/pulls/1", forge.Closed},
		"on hold":            {hold, false, "held: left as it is; offered as https://git.example.com/issues/1", forge.Open},
		"on hold, restarted": {hold, true, "held: left as it is; offered as https://git.example.com/issues/1", forge.Open},
		"closed":             {func(f *fakeForge) { f.EndIssue(1) }, false, "put back: https://git.example.com/issues/1 was closed", forge.Closed},
		"closed on hold":     {func(f *fakeForge) { hold(f); f.EndIssue(1) }, false, "held: left as it is; https://git.example.com/issues/1 has the label gitfleet/hold", forge.Closed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			p.after(t, 3*time.Minute, manualChange(7, "east"))
			test.decide(p.forge)
			p.forge.refuseIssues = &forge.StatusError{Status: 403, Message: "no scope"}
			p.restart(10)
			p.after(t, 4*time.Minute, heldChange(7, "east"))
			p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
			if test.again {
				p.restart(10)
				p.after(t, 4*time.Minute, heldChange(7, "east"))
			}
			p.forge.refuseIssues = nil
			p.after(t, 12*time.Minute, heldChange(7, "east"))
			p.says(t, "east", test.want)
			if i := p.forge.Issues[0]; i.State != test.issue || len(p.forge.Issues)+len(p.forge.Pulls) != 2 {
				t.Errorf("issues %+v, pull requests %+v", p.forge.Issues, p.forge.Pulls)
			}
		})
	}
}

// A change that somebody asked to offer stays offered, also if an issue of it was closed before.
func TestWhatIsOpenedByCommandCountsMoreThanAnEarlierIssue(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, manualChange(7, "east"))
	p.forge.EndIssue(1)
	p.forge.refuseIssues = &forge.StatusError{Status: 403, Message: "no scope"}
	p.restart(10)
	p.after(t, 10*time.Second, heldChange(7, "east"))
	if said, err := p.open(t, heldChange(7).hash); err != nil || said != "offered as https://git.example.com/pulls/1" {
		t.Errorf("said %q: %v", said, err)
	}
	p.forge.refuseIssues = nil
	p.after(t, 12*time.Minute, heldChange(7, "east"))
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
}
