package review

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// maxComment is the maximum size of a comment in bytes. GitHub and Gitea accept 65,536
// characters.
const maxComment = 60_000

// The limits of the parts of a comment.
const (
	maxProblems   = 50
	maxPlacements = 50
	maxContents   = 20
	maxFields     = 20
	maxGroups     = 10
	maxLines      = 100
	maxNames      = 10
	maxText       = 300
)

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

// A subject is the pull request and plan of a comment.
type subject struct {
	fleet, branch string
	base, head    string
	number        int64
	// fork says that the pull request is from a fork.
	fork bool
	// key identifies the plan among those of the pull request.
	key string
	// lineURL returns the address at which a browser shows a line of a file of a commit.
	lineURL func(commit, path string, line int) string
	// asking says that members have not answered yet.
	asking bool
	// written are the IDs of the problems that were written to lines.
	written []string
}

// planTitle begins the title of a comment, which is below all markers.
const planTitle = "### gitfleet plan: "

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
	if r.Conflict == "" && r.Refused == "" && !refuses(r.Problems) {
		c.add(r.summary())
		c.add(r.membersText(s.asking))
		c.add(r.heldText())
		c.add(r.placementsText())
		c.add(r.contentsText())
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

// problemMessage is a problem without its place.
func problemMessage(p problem.Problem) string {
	if p.Kustomization == p.Path {
		p.Kustomization = ""
	}
	p.Path = ""
	return markdown.Code(shortened(p.Marked()))
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
	return fmt.Sprintf("%s, on %s. An object counts once for each cluster.\n\n", strings.Join(parts, ", "), markdown.Count(t.clusters, "cluster"))
}

// heldText says which deletions would be held, and what allows them.
func (r *Result) heldText() string {
	type reason struct{ placement, why string }
	on := map[reason][]string{}
	objects := map[reason][]string{}
	var reasons []reason
	var placements []string
	n := 0
	for _, d := range r.Deletions() {
		if d.Held == "" {
			continue
		}
		n++
		key := reason{d.Placement, d.Held}
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
	if n == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s would be held** until the message of a commit on the base has the trailer\n\n", markdown.Count(n, "deletion"))
	slices.Sort(placements)
	b.WriteString(markdown.CodeBlock("text", status.AllowTrailer(strings.Join(placements, ", "))+"\n"))
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

// contentsText says which fields of which objects change.
func (r *Result) contentsText() string {
	if len(r.Changes.Contents) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("**Changed objects** (`-` is on the clusters, `+` is in the pull request)\n\n")
	for _, c := range r.Changes.Contents[:min(maxContents, len(r.Changes.Contents))] {
		fmt.Fprintf(&b, "%s of %s%s on %s: %s\n\n", markdown.Code(c.After.ID.String()), markdown.Code(c.Placement.String()), c.Note(), markdown.Count(len(c.Clusters), "cluster"), firstNames(c.Clusters))
		b.WriteString(markdown.CodeBlock("diff", fieldsText(c)) + "\n")
	}
	if rest := len(r.Changes.Contents) - maxContents; rest > 0 {
		fmt.Fprintf(&b, "and %s\n\n", markdown.Count(rest, "more object"))
	}
	return b.String()
}

// fieldsText formats the differences of the fields of an object.
func fieldsText(c forecast.ContentChange) string {
	details := c.Fields()
	var b strings.Builder
	for _, d := range details[:min(maxFields, len(details))] {
		fmt.Fprintf(&b, "  %s\n", shortened(markdown.Plain(d.Path)))
		if d.ValueInHub != "" {
			fmt.Fprintf(&b, "- %s\n", shortened(markdown.Plain(d.ValueInHub)))
		}
		if d.ValueInMember != "" {
			fmt.Fprintf(&b, "+ %s\n", shortened(markdown.Plain(d.ValueInMember)))
		}
	}
	if rest := len(details) - maxFields; rest > 0 {
		fmt.Fprintf(&b, "  and %d more\n", rest)
	}
	if len(details) == 0 {
		b.WriteString("  only what gitfleet does not compare, such as its own annotations\n")
	}
	return b.String()
}

// clustersText says what changes on which clusters: first the most common changes, then the
// other groups of clusters.
func (r *Result) clustersText(c *comment) {
	groups := r.groups()
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
		return text
	})
}

// items returns a Markdown list of the first entries, and the number of the others.
func items[T any](all []T, most int, text func(T) string) string {
	var b strings.Builder
	for _, item := range all[:min(most, len(all))] {
		b.WriteString("- " + text(item) + "\n")
	}
	if rest := len(all) - most; rest > 0 {
		fmt.Fprintf(&b, "- and %d more\n", rest)
	}
	return b.String()
}

// firstNames lists the first few names.
func firstNames(names []string) string { return markdown.List(names, maxNames) }

// shortened cuts a long text.
func shortened(text string) string { return forge.Shorten(text, maxText) }

// shortHash returns a commit hash as forges show it.
func shortHash(hash string) string { return hash[:min(12, len(hash))] }

// marker identifies the comment of a fleet, and keyMarker the plan in it.
func marker(fleet string) string { return "<!-- gitfleet plan: " + fleet + " -->" }

func keyMarker(key string) string { return "<!-- gitfleet plan of " + key + " -->" }

// keyMarkerOf returns the beginning of the keyMarker of all plans of a head.
func keyMarkerOf(head string) string { return "<!-- gitfleet plan of " + shortHash(head) + "-" }
