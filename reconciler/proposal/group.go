package proposal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
)

const (
	// maxGrouped is the maximum number of changes in one pull request.
	maxGrouped = 50
	// longestDiffs is how long the diffs in the body of a group may be together.
	longestDiffs = 30_000
)

// A group is the changes that one pull request has.
type group struct {
	// name is that of its placement, and hash is part of the name of its branch.
	name, hash string
	// changes are ordered like their edits, each of which was made in the files as the one before left them.
	changes []*change
	files   []edit.FileChange
}

// An offer is what a pull request or an issue has: a change, or a group.
type offer interface {
	title() string
	labels() []string
	message(marker string) string
	body(fleet string, waiting []*change) string
	// edit returns the changed files, and all the changes, of which there is at least one.
	edit() []edit.FileChange
	all() []*change
}

func (c *change) edit() []edit.FileChange { return c.files }
func (c *change) all() []*change          { return []*change{c} }

func (g *group) edit() []edit.FileChange { return g.files }
func (g *group) all() []*change          { return g.changes }

// sorted returns the changes by object, as people read them.
func (g *group) sorted() []*change {
	return slices.SortedStableFunc(slices.Values(g.changes), func(a, b *change) int {
		return cmp.Or(strings.Compare(a.id.String(), b.id.String()), strings.Compare(a.hash, b.hash))
	})
}

// title counts the changes, or is that of the only one.
func (g *group) title() string {
	if len(g.changes) == 1 {
		return g.changes[0].title()
	}
	return forge.Shorten(fmt.Sprintf("Drift: %s: %s on %s", g.name, markdown.Count(len(g.changes), "change"), g.share()), longestTitle)
}

// share counts the clusters that have any of the changes.
func (g *group) share() string {
	clusters := map[string]bool{}
	for _, c := range g.changes {
		for _, name := range c.clusters() {
			clusters[name] = true
		}
	}
	return markdown.Count(len(clusters), "cluster")
}

// labels returns the labels of all changes. Of the severities, the first in their order counts.
func (g *group) labels() []string {
	all := []string{driftLabel, severityLabel + defaultSeverity}
	for _, s := range slices.Backward(severities) {
		if slices.ContainsFunc(g.changes, func(c *change) bool { return c.severity() == s.name }) {
			all[1] = severityLabel + s.name
		}
	}
	for _, c := range g.changes {
		for _, l := range c.labels() {
			if !strings.HasPrefix(l, severityLabel) && !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}

// trailers returns the trailers that allow the deletions among the changes.
func (g *group) trailers() []string {
	var out []string
	for _, c := range g.changes {
		for _, line := range c.allowTrailers() {
			if !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}

func (g *group) message(marker string) string {
	if len(g.changes) == 1 {
		return g.changes[0].message(marker)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: take over drift of %s\n\nWhat was changed on member clusters:\n", g.name, markdown.Count(len(g.changes), "object"))
	for _, c := range g.sorted() {
		fmt.Fprintf(&b, "- %s %s: %s\n", c.id.Kind, markdown.Plain(nameOf(c.id)), c.what())
	}
	b.WriteString("\n")
	for _, line := range g.trailers() {
		b.WriteString(line + "\n")
	}
	b.WriteString(marker + "\n")
	return b.String()
}

// body has a section for each change, and then what merging and closing do to all of them.
func (g *group) body(fleet string, waiting []*change) string {
	end := marker(fleet, g.hash) + "\n" + offersLine(g.changes)
	if len(g.changes) == 1 {
		return g.changes[0].text(waiting) + end
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** of objects of %s on %s are left as they are until this pull request is merged or closed.\n\n",
		markdown.Count(len(g.changes), "change"), markdown.Code(g.name), g.share())
	diffs := 0
	for _, c := range g.sorted() {
		fmt.Fprintf(&b, "### %s: %s on %s (%s)\n\n", markdown.Code(c.id.Kind+" "+nameOf(c.id)), c.what(), c.share(), markdown.Code(c.shortName()))
		diff := markdown.CodeBlock("diff", c.diff())
		if diffs += len(diff); diffs > longestDiffs {
			diff = "The values are left out, since there are many: see " + markdown.Code("gitfleet proposals show "+c.shortName()) + ".\n"
		}
		b.WriteString(diff)
		c.writeFacts(&b)
		var effects strings.Builder
		c.writeEffects(&effects)
		if effects.Len() > 0 {
			b.WriteString("- **Merging:**" + effects.String() + "\n")
		}
		b.WriteString("\n")
	}
	writeSquashing(&b, g.trailers())
	b.WriteString("**Merging** takes all of this over into Git. Except where it says so above, nothing is written to these objects on these clusters.\n\n")
	fmt.Fprintf(&b, "**Closing** reverts all of it, also if somebody makes the same changes once more. To revert only one of them, use %s: it then leaves this pull request.\n\n", markdown.Code("gitfleet proposals close NAME"))
	writeDetails(&b, g.sorted(), waiting)
	return b.String() + end
}

const offersPrefix = "<!-- gitfleet offers:"

// offersLine is the line of a body that says which changes it has, where nobody sees it.
func offersLine(changes []*change) string {
	var b strings.Builder
	b.WriteString(offersPrefix)
	for _, c := range changes {
		b.WriteString(" " + c.hash)
	}
	return b.String() + " -->\n"
}

// offeredIn returns the hashes of the changes in the body of a group; grouped is false if it is not that of a group.
func offeredIn(body string) (hashes []string, grouped bool) {
	_, rest, found := strings.Cut(body, "\n"+offersPrefix)
	list, _, ended := strings.Cut(rest, " -->")
	if !found || !ended {
		return nil, false
	}
	return strings.Fields(list), true
}

// withoutOffer returns the body of a group without a change.
func withoutOffer(body, hash string) string {
	before, rest, _ := strings.Cut(body, "\n"+offersPrefix)
	return before + "\n" + offersPrefix + strings.Replace(rest, " "+hash, "", 1)
}
