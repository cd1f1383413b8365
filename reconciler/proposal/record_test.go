package proposal

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// What is written when a pull request or an issue is opened stays true: the title, the labels, and the message of the
// branch's commit, also after a restart. A title and labels that people have edited stay as they are.
func TestTitlesAndLabelsStayTrue(t *testing.T) {
	for name, make := range map[string]func(n int, clusters ...string) *change{"pull request": heldChange, "issue": manualChange} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(10)
			shown := func() *forge.Thread {
				if len(p.forge.Issues) > 0 {
					return p.forge.Issues[0]
				}
				return &p.forge.Pulls[0].Thread
			}
			set := func(title string, labels ...string) {
				if len(p.forge.Issues) > 0 {
					p.forge.Issues[0].Title, p.forge.Issues[0].Labels = title, labels
				} else {
					p.forge.Pulls[0].Title, p.forge.Pulls[0].Labels = title, labels
				}
				p.forge.Now = p.forge.Now.Add(time.Hour) // the lists are read again
			}
			on := func(holders int, clusters ...string) *change {
				c := make(7, clusters...)
				c.holders = holders
				return c
			}
			is := func(title string, labels ...string) {
				t.Helper()
				pr := shown()
				slices.Sort(labels)
				if !strings.HasSuffix(pr.Title, title) || !slices.Equal(slices.Sorted(slices.Values(pr.Labels)), labels) {
					t.Errorf("it is %q with %q, want %q with %q", pr.Title, pr.Labels, title, labels)
				}
			}
			wide := on(3, "east", "north", "west")
			wide.drifts[2].Placement = "crp/other"
			p.after(t, 3*time.Minute, on(3, "east"))
			own := slices.Clone(shown().Labels)
			is(" on 1 of 3 clusters", own...)
			p.after(t, time.Minute, on(3, "east", "north"))
			is(" on 2 of 3 clusters", own...)
			p.after(t, time.Minute, wide)
			is(" on 3 clusters", append(slices.Clone(own), "placement/other")...)
			p.restart(10)
			p.after(t, 3*time.Minute, on(3, "east"))
			is(" on 1 of 3 clusters", own...)

			edited := []string{"team/web", holdLabel} // some are added and some removed
			for _, l := range own {
				if l == driftLabel || l == issueLabel {
					edited = append(edited, l)
				}
			}
			set("Leave the shop alone", slices.Clone(edited)...)
			p.after(t, time.Minute, on(3, "east", "north"))
			is("Leave the shop alone", slices.Clone(edited)...)
			p.restart(10)
			p.after(t, 3*time.Minute, wide)
			is("Leave the shop alone", append(slices.Clone(edited), "placement/other")...)
			before := p.forge.requests
			p.after(t, time.Minute, wide)
			if n := p.forge.requests - before; n > 4 {
				t.Errorf("%d requests in an idle minute", n)
			}
		})
	}
}

// The commit of the branch has the files and the trailers that the change needs now.
func TestMessagesOfCommitsStayTrue(t *testing.T) {
	p := newProposing(10)
	p.after(t, 3*time.Minute, heldChange(7, "east"))
	moved := heldChange(7, "east", "west")
	moved.deleted, moved.drifts[1].Placement = true, "crp/other"
	p.after(t, time.Minute, moved)
	if got := p.forge.branches[branchPrefix+moved.hash].Message; !strings.Contains(got, "Gitfleet-Allow-Delete: crp/other\n") {
		t.Errorf("the commit says\n%s", got)
	}
}

// A pull request of an earlier version has no record. Its title is known by its form.
func TestTitlesWithoutARecord(t *testing.T) {
	const now = "Drift: Deployment shop/web: image changed on 3 clusters"
	for title, want := range map[string]string{
		"Drift: Deployment shop/web: image changed on 1 of 3 clusters": now,
		"Drift: Deployment shop/web: image changed on 1 cluster":       now,
		"Drift: Deployment shop/web: image changed on purpose":         "",
		"Drift: Deployment shop/api: image changed on 1 of 3 clusters": "",
		now: "",
	} {
		e, _, _ := editTo(thread{Thread: forge.Thread{Title: title, Body: "x"}}, now, nil, "x\n")
		if e.Title != want {
			t.Errorf("%s becomes %q, want %q", title, e.Title, want)
		}
	}
}
