package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// How much of long lists is shown; --all shows everything.
const (
	fewPlacements = 20
	fewTroubles   = 5
)

// An overviewWriter writes an overview for a person.
type overviewWriter struct {
	page
	now   time.Time
	all   bool
	lines []string
}

// text returns an overview as lines that fit the page.
func (o *overview) text(p page, now time.Time, all bool) []string {
	t := &overviewWriter{page: p, now: now, all: all}
	t.source(o)
	t.commits(o)
	t.placements(o.Placements)
	t.members(o.Members)
	t.brakes(o.HeldDeletions)
	t.unfinishedDeletions(t.paint(red, "Deletions refused")+" by the cluster; they are tried again", o.FailedDeletions)
	t.unfinishedDeletions(t.paint(yellow, "Deleted, and not gone yet"), o.Lingering)
	t.suspensions(o.Suspended)
	t.drifts(o.Drifts)
	return t.lines
}

func (t *overviewWriter) say(line string) { t.lines = append(t.lines, line) }

// note writes a text below a heading.
func (t *overviewWriter) note(s style, head, text string) {
	for i, line := range wrap(text, t.width-2-wide(head)) {
		if i > 0 {
			head = strings.Repeat(" ", wide(head))
		}
		t.say("  " + t.paint(s, head) + line)
	}
}

func (t *overviewWriter) ago(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return t.span(at) + " ago"
}

func (t *overviewWriter) span(since time.Time) string {
	return duration.HumanDuration(max(0, t.now.Sub(since)))
}

func (t *overviewWriter) source(o *overview) {
	s := o.Source
	head := cmp.Or(s.URL, "no repository yet")
	if s.Ref != "" {
		head += "  " + refName(s.Ref)
	}
	polled := ", polled " + t.ago(s.LastPoll)
	t.say(t.paint(bold, shorten(head, t.width-wide(polled))) + polled)
	if s.Failures > 0 {
		t.note(red, "cannot be read: ", fmt.Sprintf("%s (%s)", s.Error, triesText(s.Failures, s.LastSuccess)))
	}
	for _, trouble := range o.Forge {
		t.note(yellow, "forge: ", trouble)
	}
	if s := o.Standby; s != nil {
		t.note(yellow, "standby: ", "this replica does not lead; it tells what the leader saved, read "+t.ago(s.AsOf)+"; leader: "+cmp.Or(s.Leader, "none"))
	}
}

// refName returns the short name of a reference.
func refName(ref string) string {
	for prefix, what := range map[string]string{"refs/heads/": "branch ", "refs/tags/": "tag "} {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			return what + name
		}
	}
	return ref
}

func (t *overviewWriter) commits(o *overview) {
	if c := o.Commit; c != nil {
		t.commit(green, "in force ", c, "in force for "+t.span(c.Since))
	} else {
		t.say(t.paint(yellow, "in force ") + "none yet")
	}
	t.few(len(o.Warnings), "warnings; see gitfleet status --all", func(i int) { t.note(yellow, "warning: ", o.Warnings[i]) })
	r := o.Refused
	if r == nil || r.Hash == "" {
		return
	}
	if len(r.Problems) == 0 {
		t.commit(cyan, "newest   ", &r.overviewCommit, "being read")
		return
	}
	t.commit(red, "refused  ", &r.overviewCommit, "")
	t.few(len(r.Problems), "problems; see gitfleet status --all", func(i int) { t.note(red, "", r.Problems[i]) })
}

func (t *overviewWriter) commit(s style, head string, c *overviewCommit, more string) {
	who, _, _ := strings.Cut(c.Author, " <")
	text := fmt.Sprintf("%s  %s, %s", short(c.Hash), cmp.Or(who, "somebody"), t.ago(c.Time))
	if more != "" {
		text += ", " + more
	}
	t.say(t.paint(s, head) + shorten(text, t.width-wide(head)))
	t.say(strings.Repeat(" ", wide(head)) + shorten(c.Subject, t.width-wide(head)))
}

// few calls show for the first few of n items, and prints how many are left.
func (t *overviewWriter) few(n int, what string, show func(i int)) {
	most := n
	if !t.all {
		most = min(n, fewTroubles)
	}
	for i := range most {
		show(i)
	}
	if n > most {
		t.say(t.paint(dim, fmt.Sprintf("  and %d more %s", n-most, what)))
	}
}

// The widths of columns; the name has the rest.
const (
	barWidth  = 20
	wordWidth = 14
	others    = 1 + 2 + 1 + 7 + 1 + 9 + 1 + wordWidth
	leastName = 16
)

func (t *overviewWriter) placements(all []overviewPlacement) {
	if len(all) == 0 {
		t.say("")
		t.say("No placements.")
		return
	}
	shown := all
	if !t.all && len(all) > fewPlacements {
		shown = slices.Clone(all)
		slices.SortStableFunc(shown, func(a, b overviewPlacement) int { return cmp.Compare(rank(&a), rank(&b)) })
		shown = shown[:fewPlacements]
	}
	name := wide("PLACEMENT")
	for i := range shown {
		name = max(name, wide(shown[i].Name))
	}
	name = min(name, max(leastName, t.width-others-barWidth))
	t.say("")
	t.say(t.paint(dim, strings.TrimRight(fit("PLACEMENT", name)+" "+fit("CLUSTERS", t.bar()+2)+" "+fit("DONE", 7)+" "+fit("COMMIT", 9)+" STATE", " ")))
	for i := range shown {
		t.placement(&shown[i], name)
	}
	if n := len(all) - len(shown); n > 0 {
		t.say(t.paint(dim, fmt.Sprintf("and %d more placements; see gitfleet status --all", n)))
	}
	t.legend(shown)
}

// bar returns the width of bars, which is smaller on a narrow page.
func (t *overviewWriter) bar() int { return min(barWidth, max(6, t.width-others-leastName)) }

// rank sorts unhealthy placements and those with warnings first.
func rank(p *overviewPlacement) int {
	if p.well() && len(p.Warnings) == 0 {
		return 1
	}
	return 0
}

func (t *overviewWriter) placement(p *overviewPlacement, name int) {
	word, s := p.word()
	commit := "-"
	switch n := len(p.Commits); {
	case n == 1:
		commit = short(p.Commits[0])
	case n > 1:
		commit = fmt.Sprintf("%d commits", n)
	}
	label := p.Name
	if wide(label) > name { // names are not truncated, so that they can be copied
		t.say(harmless(label))
		label = ""
	}
	t.say(fit(label, name) + " " + bar(t.page, p.Clusters, p.Missing, t.bar()) + " " + fit(p.count(), 7) + " " + fit(commit, 9) + " " + t.paint(s, shorten(word, wordWidth)))
	if p.Trouble != "" {
		t.note(red, "not scheduled: ", p.Trouble)
	}
	if p.Stopped != "" {
		text := "by the failed update of " + p.Stopped + "; gitfleet resume " + p.Name + " --stopped lets it go on all the same"
		if p.Proven != "" {
			text += "; last available on every cluster was " + short(p.Proven) + ", to which gitfleet rollback " + p.Name + " makes a way back"
		}
		t.note(red, "stopped: ", text)
	}
	t.reasons(red, "failed: ", p.Failed)
	t.reasons(cyan, "progressing: ", p.Progressing)
	t.reasons(cyan, "waiting: ", p.Waiting)
	t.few(len(p.Warnings), "warnings; see gitfleet describe", func(i int) { t.note(yellow, "warning: ", p.Warnings[i]) })
}

func (t *overviewWriter) reasons(s style, head string, all []overviewReason) {
	t.few(len(all), "reasons; see gitfleet describe", func(i int) {
		text := forecast.FewOf(all[i].Clusters)
		if all[i].Reason != "" {
			text += ": " + all[i].Reason
		}
		t.note(s, head, text)
	})
}

// legend explains the marks in use.
func (t *overviewWriter) legend(shown []overviewPlacement) {
	var parts []string
	for _, s := range states {
		for i := range shown {
			if shown[i].Clusters[s.state] > 0 {
				parts = append(parts, t.paint(s.style, string(s.mark))+" "+string(s.state))
				break
			}
		}
	}
	if len(parts) > 0 {
		t.say(strings.Join(parts, "  "))
	}
}

func (t *overviewWriter) members(m overviewMembers) {
	s := green
	if m.Ready < m.Total {
		s = yellow
	}
	t.say("")
	t.say("Members: " + t.paint(s, fmt.Sprintf("%d of %d ready", m.Ready, m.Total)))
	t.few(len(m.NotReady), "members; see gitfleet get clusters", func(i int) {
		c := m.NotReady[i]
		text := c.Reason
		if !c.Since.IsZero() {
			text = "for " + t.span(c.Since) + ": " + c.Reason
		}
		word := string(c.State)
		if c.State == foreign {
			word = "not ready"
		}
		t.note(yellow, c.Name+" "+word+" ", text)
	})
}

func (t *overviewWriter) brakes(all []overviewBrake) {
	if len(all) == 0 {
		return
	}
	t.say("")
	t.say(t.paint(yellow, "Deletions held") + " until a commit allows them, with the trailer")
	t.few(len(all), "clusters; see gitfleet status --all", func(i int) {
		b := all[i]
		t.note(plainStyle, "", fmt.Sprintf("%s  for %d on %s: %s", status.AllowTrailer(b.Placement), len(b.Objects), b.Cluster, b.Objects[0]))
	})
}

func (t *overviewWriter) unfinishedDeletions(heading string, all []overviewBrake) {
	if len(all) == 0 {
		return
	}
	t.say("")
	t.say(heading)
	t.few(len(all), "clusters; see gitfleet status --all", func(i int) {
		b := all[i]
		text := fmt.Sprintf("%s on %s: %s", b.Placement, b.Cluster, b.Objects[0])
		if n := len(b.Objects) - 1; n > 0 {
			text += fmt.Sprintf(" (and %d more; see gitfleet describe %s)", n, b.Placement)
		}
		t.note(plainStyle, "", text)
	})
}

func (t *overviewWriter) suspensions(all []status.Suspension) {
	if len(all) == 0 {
		return
	}
	t.say("")
	t.say(t.paint(yellow, "Suspended") + " until somebody resumes it, or its time is over")
	t.few(len(all), "subjects; see gitfleet status --all", func(i int) {
		s := all[i]
		text := s.Subject + ", for " + t.span(s.Since)
		if !s.Until.IsZero() {
			text += " until " + s.Until.UTC().Format("2006-01-02 15:04 MST")
		}
		t.note(plainStyle, "", text+" by "+s.By+": "+s.Reason)
	})
}

func (t *overviewWriter) drifts(all []overviewDrift) {
	if len(all) == 0 {
		return
	}
	t.say("")
	t.say(t.paint(yellow, "Drift:") + " " + number(len(all), "object") + " not as in Git")
	t.few(len(all), "objects; see gitfleet drift", func(i int) {
		d := all[i]
		text := fmt.Sprintf("%s on %s, %s for %s", d.Object, d.Cluster, d.State, t.span(d.Since))
		if len(d.By) > 0 {
			text += " by " + strings.Join(d.By, ", ")
		}
		t.note(plainStyle, "", text)
	})
}
