package review

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// maxComment is the maximum size of a comment in bytes. GitHub and Gitea accept 65,536
// characters.
const maxComment = 60_000

// maxChanges is the part of a comment after which no more differences of objects are written.
const maxChanges = 40_000

// A comment is written part by part. A part that does not fit is replaced by a note that says
// so.
type comment struct {
	text    strings.Builder
	dropped bool
}

// add appends a part if it fits.
func (c *comment) add(part string) {
	if c.text.Len()+len(part) > maxComment {
		c.dropped = true
		return
	}
	c.text.WriteString(part)
}

// fold appends a part that is collapsed at first.
func (c *comment) fold(title, part string) {
	if part != "" {
		c.add("<details><summary>" + title + "</summary>\n\n" + part + "\n</details>\n\n")
	}
}

// body returns the comment. Text from the pull request is formatted as code, so that it has no
// effect as Markdown.
func (r *Result) body(s subject) string {
	c := &comment{}
	c.add(marker(s.fleet) + "\n" + keyMarker(s.key) + "\n" + writtenText(s.written))
	if s.fork {
		c.add(allowedMarker(s.head) + "\n")
	}
	_, title := r.Status()
	c.add(planTitle + markdown.Code(shortened(title)) + "\n\n")
	fleet := markdown.Code(s.fleet)
	if r.Clusters > 0 { // they are not counted if there is no plan
		fleet += " of " + markdown.Count(r.Clusters, "cluster")
	}
	c.add(fmt.Sprintf("Merging %s into %s at %s, for the fleet %s:\n\n", shortHash(s.head), markdown.Code(s.branch), shortHash(s.base), fleet))
	switch {
	case r.Conflict != "":
		c.add("The branch cannot be merged here: " + markdown.Code(shortened(r.Conflict)) + ". To get a plan, merge the newest commit of the base into it, or rebase it.\n\n")
	case r.Refused != "":
		c.add("The commit would be refused, and the one before stays in force: " + markdown.Code(shortened(r.Refused)) + "\n\n")
	}
	c.add(r.problemsText(s))
	c.add(r.missingText(s))
	if r.Conflict == "" && r.Refused == "" && !refuses(r.Problems) {
		c.add(r.summary())
		c.add(r.membersText(s.asking))
		c.add(r.blockedText())
		c.add(r.placementsText())
		r.contentsText(c, s)
		r.clustersText(c)
		c.fold("Rollout", r.rolloutsText())
	}
	rest := "The whole plan"
	if c.dropped {
		rest = "Some of the plan does not fit here. The whole plan"
	}
	c.text.WriteString(rest + ": " + markdown.Code(fmt.Sprintf("gitfleet plan --pr %d", s.number)) + "\n")
	return c.text.String()
}

// refuses reports whether problems prevent a commit from coming into force.
func refuses(ps problem.List) bool {
	return slices.ContainsFunc(ps, func(p problem.Problem) bool { return p.Severity == problem.Error })
}

func (r *Result) problemsText(s subject) string {
	if len(r.Problems) == 0 {
		return ""
	}
	return "**Problems**\n\n" + items(r.Problems, maxProblems, func(p problem.Problem) string { return problemText(p, s) }) + "\n"
}

// problemText formats a problem. Its position is a link to the line in the pull request.
func problemText(p problem.Problem, s subject) string {
	link := ""
	if p.Path != "" {
		link = fmt.Sprintf("[%s](%s) ", markdown.Code(shortened(p.Origin.String())), s.lineURL(s.head, p.Path, p.Line))
	}
	return link + problemMessage(p)
}

// summary returns the totals.
func (r *Result) summary() string {
	if r.None() {
		return "Nothing changes: the same clusters get the same objects.\n\n"
	}
	t := r.totals()
	var parts []string
	for _, part := range []struct {
		n          int
		what, does string
	}{
		{len(r.Changes.Placements), "placement", "changed"}, {t.created, "object", "created"}, {t.changed, "object", "changed"},
		{t.deleted, "object", "deleted"}, {t.released, "object", "released"}, {t.passed, "object", "handed over to another placement"},
	} {
		if part.n > 0 {
			parts = append(parts, markdown.Count(part.n, part.what)+" "+part.does)
		}
	}
	text := fmt.Sprintf("%s, on %s.", strings.Join(parts, ", "), markdown.Count(t.clusters, "cluster"))
	if t.there > 0 {
		text += fmt.Sprintf(" Already there, because somebody has made the same change: %s on %s. Nothing is written to it there.", markdown.Count(t.there, "object"), markdown.Count(t.thereOn, "cluster"))
	}
	return text + "\n\n"
}

// blockedText says which deletions would be blocked, and what allows them.
func (r *Result) blockedText() string {
	type reason struct{ placement, why string }
	on := map[reason][]string{}
	objects := map[reason][]string{}
	var reasons []reason
	var placements []string
	var blocked []forecast.Deletion
	clusters := map[string]bool{}
	for _, d := range r.Deletions() {
		if d.Blocked == "" {
			continue
		}
		blocked, clusters[d.Cluster] = append(blocked, d), true
		key := reason{d.Placement, d.Blocked}
		if on[key] == nil {
			reasons = append(reasons, key)
		}
		if !slices.Contains(on[key], d.Cluster) {
			on[key] = append(on[key], d.Cluster)
		}
		if name := d.ID().String(); !slices.Contains(objects[key], name) {
			objects[key] = append(objects[key], name)
		}
		if !slices.Contains(placements, d.Placement) {
			placements = append(placements, d.Placement)
		}
	}
	if blocked == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**The deletion of %s on %s would be blocked** until the message of a commit on the base has the trailer\n\n", markdown.Count(forecast.CountObjects(blocked), "object"), markdown.Count(len(clusters), "cluster"))
	slices.Sort(placements)
	b.WriteString(markdown.CodeBlock("text", conditions.AllowTrailer(strings.Join(placements, ", "))+"\n"))
	b.WriteString("\nPut it into the message of the merge or squash commit. In the message of another commit of the pull request it has no effect.\n\n")
	b.WriteString(items(reasons, maxGroups, func(key reason) string {
		return fmt.Sprintf("%s on %s: %s: %s", markdown.Code(key.placement), firstNames(on[key]), firstNames(objects[key]), markdown.Code(shortened(key.why)))
	}))
	return b.String() + "\n"
}

func (r *Result) placementsText() string {
	all := r.Changes.Placements
	if len(all) == 0 {
		return ""
	}
	return "**Placements**\n\n" + items(all, maxPlacements, func(p forecast.PlacementChange) string { return markdown.Code(p.Placement) + placementText(p) }) + "\n"
}

// placementText says what happens to a placement.
func placementText(p forecast.PlacementChange) string {
	text := strings.TrimSuffix(" "+p.Summary(), " ")
	if p.RenamedFrom != "" {
		text = " is renamed from " + markdown.Code(p.RenamedFrom) + "; its clusters and rollout carry over"
	}
	if p.PolicyTo != "" {
		text += fmt.Sprintf("; its policy changes from %s to %s", markdown.Code(p.PolicyFrom), markdown.Code(p.PolicyTo))
	}
	for _, s := range p.Settings[:min(maxFields, len(p.Settings))] {
		text += fmt.Sprintf("; %s changes from %s to %s", markdown.Code(s.Field), settingText(s.From), settingText(s.To))
	}
	if rest := len(p.Settings) - maxFields; rest > 0 {
		text += "; and " + markdown.Count(rest, "more field")
	}
	if len(p.Gained) > 0 {
		text += fmt.Sprintf("; gains %s: %s", markdown.Count(len(p.Gained), "cluster"), firstNames(p.Gained))
	}
	if len(p.Lost) > 0 {
		text += fmt.Sprintf("; leaves %s: %s", markdown.Count(len(p.Lost), "cluster"), firstNames(p.Lost))
	}
	if rest, ok := strings.CutPrefix(text, ";"); ok {
		return ":" + rest
	}
	return text
}

// settingText formats the value of a field of a placement.
func settingText(value string) string {
	if value == "" {
		return "not set"
	}
	return markdown.Code(shortened(value))
}

// contentsText says which objects change, each with its difference collapsed. What follows in the comment keeps room.
func (r *Result) contentsText(c *comment, s subject) {
	all := r.Changes.Contents
	if len(all) > 0 {
		c.add("**Changed objects** (`-` is on the clusters, `+` is in the pull request)\n\n")
	}
	for i, changed := range all[:min(maxContents, len(all))] {
		title, text := changeTitle(changed), r.changeText(i, s)
		if c.text.Len()+len(title)+len(text) > maxChanges {
			c.dropped, text = true, ""
		}
		if text == "" {
			c.add(title + "\n\n")
			continue
		}
		c.fold(title, text)
	}
	if rest := len(all) - maxContents; rest > 0 {
		c.add(fmt.Sprintf("and %s\n\n", markdown.Count(rest, "more object")))
	}
}

// changeTitle says which fields of which object change on how many clusters, in HTML.
func changeTitle(c forecast.ContentChange) string {
	code := func(text string) string {
		return "<code>" + html.EscapeString(shortened(markdown.Plain(text))) + "</code>"
	}
	text := fmt.Sprintf("%s of %s%s on %s", code(c.After.ID.String()), code(c.Placement.String()), c.Note(), markdown.Count(len(c.Clusters), "cluster"))
	paths := c.Paths()
	for i, path := range paths[:min(len(paths), maxPaths)] {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + code(path)
	}
	if rest := len(paths) - maxPaths; rest > 0 {
		text += ", and " + markdown.Count(rest, "more field")
	}
	return text
}

// changeText has the line of a changed object in the head, its clusters and its difference.
func (r *Result) changeText(i int, s subject) string {
	c := r.Changes.Contents[i]
	var b strings.Builder
	if at := c.After.Origin; at.Path != "" {
		if i < len(r.contentLines) && r.contentLines[i] > 0 {
			at.Line = r.contentLines[i]
		}
		fmt.Fprintf(&b, "[%s](%s) on ", markdown.Code(shortened(at.String())), s.lineURL(s.head, at.Path, at.Line))
	}
	b.WriteString(firstNames(c.Clusters) + "\n\n")
	lines := slices.Collect(strings.Lines(c.Diff()))
	if len(lines) == 0 {
		return b.String() + c.NoDiff() + "\n"
	}
	var d strings.Builder
	for _, line := range lines[:min(len(lines), maxLines)] {
		d.WriteString(shortened(markdown.Plain(strings.TrimSuffix(line, "\n"))) + "\n")
	}
	if rest := len(lines) - maxLines; rest > 0 {
		fmt.Fprintf(&d, "# and %s\n", markdown.Count(rest, "more line"))
	}
	return b.String() + markdown.CodeBlock("diff", d.String())
}

// clustersText says what changes on which clusters: first the most common changes, then the
// other groups of clusters. What contentsText has said is not repeated.
func (r *Result) clustersText(c *comment) {
	groups := slices.DeleteFunc(r.groups(), func(g clusterGroup) bool {
		return len(r.Changes.Contents) <= maxContents && !slices.ContainsFunc(g.changes, func(line string) bool { return !strings.HasPrefix(line, changedPrefix) })
	})
	for i, g := range groups {
		title := "The same on " + markdown.Count(len(g.clusters), "cluster")
		if i == maxGroups {
			c.add(fmt.Sprintf("and %s of clusters\n\n", markdown.Count(len(groups)-i, "more group")))
			return
		}
		if len(g.clusters) == 1 {
			title = "On " + html.EscapeString(g.clusters[0])
		}
		var b strings.Builder
		for _, line := range g.changes[:min(maxLines, len(g.changes))] {
			b.WriteString(shortened(markdown.Plain(line)) + "\n")
		}
		if rest := len(g.changes) - maxLines; rest > 0 {
			fmt.Fprintf(&b, "# and %d more\n", rest)
		}
		c.fold(title, firstNames(g.clusters)+"\n\n"+markdown.CodeBlock("diff", b.String()))
	}
}

func (r *Result) rolloutsText() string {
	return items(r.Rollouts, maxPlacements, func(o forecast.Rollout) string {
		text := markdown.Code(o.Placement) + ": " + o.Summary()
		if len(o.First) > 0 {
			text += "; first " + firstNames(o.First)
		}
		for _, line := range o.Calendar() {
			text += "\n  - " + markdown.Code(line)
		}
		return text
	})
}
