package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// The limits of lists; --all shows everything.
const (
	fewPlacements = 20
	fewProblems   = 5
)

// A textWriter writes an overview as text.
type textWriter struct {
	output.Page
	now   time.Time
	all   bool
	lines []string
}

// Text returns an overview as lines that fit the page.
func (o *Overview) Text(p output.Page, now time.Time, all bool) []string {
	t := &textWriter{Page: p, now: now, all: all}
	t.source(o)
	t.commits(o)
	t.placements(o.Placements)
	t.members(o.Members)
	const more = "object; see gitfleet status --all"
	section(t, t.Paint(output.Yellow, "Deletions blocked")+" until a commit allows them, with the trailer", deletionsTogether(o.BlockedDeletions), deletedObjects, more, blockedDeletion)
	section(t, t.Paint(output.Red, "Deletions refused")+" by the cluster; they are retried", deletionsTogether(o.FailedDeletions), deletedObjects, more, unfinishedDeletion)
	section(t, t.Paint(output.Yellow, "Deleted, and not gone yet"), deletionsTogether(o.Lingering), deletedObjects, more, unfinishedDeletion)
	section(t, t.Paint(output.Yellow, "Suspended")+" until they are resumed or expire", o.Suspended, one, "subject; see gitfleet status --all", t.suspension)
	section(t, t.Paint(output.Yellow, "Drift:")+" "+output.Count(len(o.Drifts), "object")+" not as in Git", driftsTogether(o.Drifts), driftedObjects, "object; see gitfleet drift", t.drift)
	t.proposals(o.Drifts)
	return t.lines
}

func (t *textWriter) line(line string) { t.lines = append(t.lines, line) }

// indented writes a text below a heading, which head begins.
func (t *textWriter) indented(s output.Style, head, text string) {
	for i, line := range output.Wrap(text, t.Width-2-output.Width(head)) {
		if i > 0 {
			head = strings.Repeat(" ", output.Width(head))
		}
		t.line("  " + t.Paint(s, head) + line)
	}
}

func (t *textWriter) since(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return t.span(at) + " ago"
}

// longStep is how long a step takes before it is shown.
const longStep = 2 * time.Second

func (t *textWriter) source(o *Overview) {
	s := o.Source
	head := cmp.Or(s.URL, "no repository yet")
	if s.Ref != "" {
		head += "  " + refName(s.Ref)
	}
	polled := ", polled " + t.since(s.LastPoll)
	t.line(t.Paint(output.Bold, output.Truncate(head, t.Width-output.Width(polled))) + polled)
	switch {
	case s.Refused:
		t.indented(output.Red, "not accepted: ", s.Error)
	case s.Failures > 0:
		text := fmt.Sprintf("%s (%s)", s.Error, FailuresText(s.Failures, s.LastSuccess))
		if s.NextPoll.After(t.now) {
			text += "; next attempt in " + duration.HumanDuration(s.NextPoll.Sub(t.now))
		}
		t.indented(output.Red, "cannot be read: ", text)
	}
	for _, step := range s.Steps {
		if t.now.Sub(step.Since) >= longStep {
			t.indented(output.Yellow, "now: ", step.What+", for "+t.span(step.Since))
		}
	}
	for _, problem := range o.Forge {
		t.indented(output.Yellow, "forge: ", problem)
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

func (t *textWriter) commits(o *Overview) {
	if c := o.Commit; c != nil {
		t.commit(output.Green, "in force ", c, "in force for "+t.span(c.Since))
	} else {
		t.line(t.Paint(output.Yellow, "in force ") + "none yet")
	}
	t.few(len(o.Warnings), "warning; see gitfleet status --all", func(i int) { t.indented(output.Yellow, "warning: ", o.Warnings[i]) })
	if w := o.Waiting; w != nil {
		t.commit(output.Cyan, "newest   ", &w.Commit, "being read")
		if len(w.Fetches) > 0 {
			t.indented(output.Cyan, "", "it "+fetchesText(w.Fetches))
		}
	}
	r := o.Refused
	if r == nil {
		return
	}
	t.commit(output.Red, "refused  ", &r.Commit, "")
	t.few(len(r.Problems), "problem; see gitfleet status --all", func(i int) { t.indented(output.Red, "", r.Problems[i]) })
}

func (t *textWriter) commit(s output.Style, head string, c *Commit, more string) {
	who, _, _ := strings.Cut(c.Author, " <")
	if c.Signer != "" {
		who, _, _ = strings.Cut(c.Signer, " (") // without the fingerprint
	}
	text := fmt.Sprintf("%s  %s, %s", output.ShortHash(c.Hash), cmp.Or(who, "unknown author"), t.since(c.Time))
	if more != "" {
		text += ", " + more
	}
	t.line(t.Paint(s, head) + output.Truncate(text, t.Width-output.Width(head)))
	t.line(strings.Repeat(" ", output.Width(head)) + output.Truncate(c.Subject, t.Width-output.Width(head)))
}

// few calls show for the first of n items, and prints how many were left out. what is the noun for one of them, and the command
// that shows all.
func (t *textWriter) few(n int, what string, show func(i int)) {
	t.fewOf(n, func(int) int { return 1 }, what, show)
}

// fewOf is few for items that hold several of what is counted.
func (t *textWriter) fewOf(n int, holds func(i int) int, what string, show func(i int)) {
	most := n
	if !t.all {
		most = min(n, fewProblems)
	}
	for i := range most {
		show(i)
	}
	hidden := 0
	for i := most; i < n; i++ {
		hidden += holds(i)
	}
	if hidden > 0 {
		noun, see, _ := strings.Cut(what, ";")
		t.line(t.Paint(output.Dim, "  and "+output.Count(hidden, "more "+noun)+";"+see))
	}
}

// The widths of columns; the name gets the rest.
const (
	barWidth   = 20
	stateWidth = 14
	others     = 1 + 2 + 1 + 7 + 1 + 9 + 1 + stateWidth
	minName    = 16
)

func (t *textWriter) placements(all []Placement) {
	if len(all) == 0 {
		t.line("")
		t.line("No placements.")
		return
	}
	shown := all
	if !t.all && len(all) > fewPlacements {
		shown = slices.Clone(all)
		slices.SortStableFunc(shown, func(a, b Placement) int { return cmp.Compare(rank(&a), rank(&b)) })
		shown = shown[:fewPlacements]
	}
	name := output.Width("PLACEMENT")
	for i := range shown {
		name = max(name, output.Width(shown[i].Name))
	}
	name = min(name, max(minName, t.Width-others-barWidth))
	t.line("")
	t.line(t.Paint(output.Dim, strings.TrimRight(output.Fit("PLACEMENT", name)+" "+output.Fit("CLUSTERS", t.bar()+2)+" "+output.Fit("DONE", 7)+" "+output.Fit("COMMIT", 9)+" STATE", " ")))
	for i := range shown {
		t.placement(&shown[i], name)
	}
	if n := len(all) - len(shown); n > 0 {
		t.line(t.Paint(output.Dim, "and "+output.Count(n, "more placement")+"; see gitfleet status --all"))
	}
	t.legend(shown)
}

// bar returns the width of bars, which is smaller on a narrow page.
func (t *textWriter) bar() int { return min(barWidth, max(6, t.Width-others-minName)) }

// rank sorts unhealthy placements and those with warnings first.
func rank(p *Placement) int {
	if p.well() && len(p.Warnings) == 0 {
		return 1
	}
	return 0
}

func (t *textWriter) placement(p *Placement, name int) {
	state, s := p.state()
	commit := "-"
	switch n := len(p.Commits); {
	case n == 1:
		commit = output.ShortHash(p.Commits[0])
	case n > 1:
		commit = fmt.Sprintf("%d commits", n)
	}
	label := p.Name
	if output.Width(label) > name { // names are not truncated, so that they can be copied
		t.line(output.Sanitize(label))
		label = ""
	}
	t.line(output.Fit(label, name) + " " + bar(t.Page, p.Clusters, p.Missing, t.bar()) + " " + output.Fit(p.count(), 7) + " " + output.Fit(commit, 9) + " " + t.Paint(s, output.Truncate(state, stateWidth)))
	if p.ScheduleProblem != "" {
		t.indented(output.Red, "not scheduled: ", p.ScheduleProblem)
	}
	t.reasons(output.Yellow, "not on: ", p.Absent)
	if p.Stopped != "" {
		text := "by the failed update of " + p.Stopped + "; gitfleet resume " + p.Name + " --stopped --reason TEXT continues it nevertheless"
		if p.Proven != "" {
			text += "; the last commit available on every cluster is " + output.ShortHash(p.Proven) + ": gitfleet rollback " + p.Name + " reverts to it"
		}
		t.indented(output.Red, "stopped: ", text)
	}
	if p.UpdateRun != "" {
		t.indented(output.Cyan, "update run: ", p.UpdateRun)
	}
	t.reasons(output.Red, "failed: ", p.Failed)
	t.reasons(output.Cyan, "progressing: ", p.Progressing)
	t.reasons(output.Cyan, "waiting: ", p.Waiting)
	t.few(len(p.Warnings), "warning; see gitfleet describe", func(i int) { t.indented(output.Yellow, "warning: ", p.Warnings[i]) })
}

func (t *textWriter) reasons(s output.Style, head string, all []Reason) {
	t.few(len(all), "reason; see gitfleet describe", func(i int) {
		text := forecast.FewOf(all[i].Clusters)
		if all[i].Reason != "" {
			text += ": " + all[i].Reason
		}
		t.indented(s, head, text)
	})
}

// legend explains the marks that were used.
func (t *textWriter) legend(shown []Placement) {
	var parts []string
	for _, s := range states {
		for i := range shown {
			if shown[i].Clusters[s.State] > 0 {
				parts = append(parts, t.Paint(s.style, string(s.mark))+" "+string(s.State))
				break
			}
		}
	}
	if len(parts) > 0 {
		t.line(strings.Join(parts, "  "))
	}
}

func (t *textWriter) members(m Members) {
	s := output.Green
	if m.Ready < m.Total {
		s = output.Yellow
	}
	t.line("")
	t.line("Members: " + t.Paint(s, fmt.Sprintf("%d of %d ready", m.Ready, m.Total)))
	away, outdated := membersTogether(m.NotReady), membersTogether(m.Outdated)
	t.few(len(away), "reason; see gitfleet status --all", func(i int) {
		state := string(away[i].of.State)
		if away[i].of.State == status.StateForeign {
			state = "not ready"
		}
		t.member(away[i], state)
	})
	t.few(len(outdated), "reason; see gitfleet status --all", func(i int) { t.member(outdated[i], "credentials outdated") })
}

// member writes the state of members, since when and why.
func (t *textWriter) member(m group[Member], state string) {
	text := m.of.Reason
	if !m.since.IsZero() {
		text = "for " + t.lasting(m.since, m.differ) + ": " + text
	}
	if len(m.clusters) == 1 {
		t.indented(output.Yellow, m.names()+" "+state+" ", text)
		return
	}
	t.indented(output.Yellow, "", m.names()+" "+state+" "+text)
}

// section writes a heading and a line for each of the first items; nothing if there are none. holds counts what an item holds
// of what more says.
func section[T any](t *textWriter, heading string, all []T, holds func(T) int, more string, line func(T) string) {
	if len(all) == 0 {
		return
	}
	t.line("")
	t.line(heading)
	t.fewOf(len(all), func(i int) int { return holds(all[i]) }, more, func(i int) { t.indented(output.Plain, "", line(all[i])) })
}

func one(status.Suspension) int { return 1 }

func deletedObjects(d group[Deletions]) int { return len(d.of.Objects) * len(d.clusters) }

func driftedObjects(d group[Drift]) int { return len(d.clusters) }

func blockedDeletion(d group[Deletions]) string {
	return fmt.Sprintf("%s  for %d on %s: %s", conditions.AllowTrailer(d.of.Placement), len(d.of.Objects), d.names(), d.of.Objects[0])
}

func unfinishedDeletion(d group[Deletions]) string {
	text := fmt.Sprintf("%s on %s: %s", d.of.Placement, d.names(), d.of.Objects[0])
	if n := len(d.of.Objects) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more; see gitfleet describe %s)", n, d.of.Placement)
	}
	return text
}

func (t *textWriter) suspension(s status.Suspension) string {
	text := s.Subject + ", "
	if s.Effect != "" {
		text += s.Effect.Verb() + " "
	}
	text += "for " + t.span(s.Since)
	if !s.Until.IsZero() {
		text += " until " + s.Until.UTC().Format("2006-01-02 15:04 MST")
	}
	return text + " by " + s.By + ": " + s.Reason
}

func (t *textWriter) drift(d group[Drift]) string {
	text := fmt.Sprintf("%s on %s, %s for %s", d.of.Object, d.names(), d.of.State, t.lasting(d.since, d.differ))
	if len(d.of.By) > 0 {
		text += " by " + strings.Join(d.of.By, ", ")
	}
	if d.of.Undecided && d.of.Message != "" {
		text += ": " + d.of.Message
	}
	return text
}

// proposals says how many drifts are held, and which command decides about them.
func (t *textWriter) proposals(all []Drift) {
	held := 0
	for _, d := range all {
		if d.Undecided {
			held++
		}
	}
	if held > 0 {
		t.line(t.Paint(output.Dim, "  "+output.Count(held, "object")+" held; see gitfleet proposals list"))
	}
}

// RefusedText says that the newest commit is refused, or waits for what is fetched, and which one is in force.
func RefusedText(s status.Source) string {
	why, inForce := "is refused", "no commit is in force yet"
	if len(s.Fetches) > 0 {
		why = fetchesText(s.Fetches)
	}
	if s.InForce.Hash != "" {
		inForce = output.ShortHash(s.InForce.Hash) + " stays in force"
	}
	return fmt.Sprintf("commit %s %s; %s", output.ShortHash(s.Newest.Hash), why, inForce)
}

// fetchesText says what a commit waits for.
func fetchesText(names []string) string {
	return "waits until its remote bases and charts are fetched: " + strings.Join(names, ", ")
}

// FailuresText says how often the repository could not be read, and since when.
func FailuresText(failures int, success time.Time) string {
	attempts := output.Count(failures, "failed attempt")
	if success.IsZero() {
		return attempts + ", never read yet"
	}
	return attempts + " since " + success.UTC().Format(time.RFC3339)
}
