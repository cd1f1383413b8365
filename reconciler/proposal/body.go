package proposal

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/difftext"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// most is the maximum number of clusters, and of lines about them, that one pull request lists, maxWriters that of
// writers above the details, and maxReason the maximum length of a reason in characters.
const (
	most       = 50
	maxWriters = 5
	maxReason  = 1000
	// longestTitle is what the forges allow.
	longestTitle = 255
)

// title returns the title of the pull request or issue of a change.
func (c *change) title() string {
	if c.rollback != nil {
		return c.rollback.Title()
	}
	return forge.Shorten(fmt.Sprintf("Drift: %s %s: %s on %s", c.id.Kind, markdown.Plain(nameOf(c.id)), c.what(), c.share()), longestTitle)
}

// what says what was done to the object.
func (c *change) what() string {
	switch {
	case c.deleted:
		return "deleted"
	case c.addition:
		return c.fields() + " added"
	}
	return c.fields() + " changed"
}

// fields names the only field of a change, or counts them.
func (c *change) fields() string {
	n := len(c.paths)
	if n == 1 {
		if name := fieldName(c.paths[0].Path); name != "" {
			return name
		}
	}
	if n > 0 {
		if more := andMore.FindStringSubmatch(c.paths[n-1].Path); more != nil {
			rest, _ := strconv.Atoi(more[1]) // it is a number
			n += rest
		}
	}
	return markdown.Count(n, "field")
}

var (
	// andMore is what a member adds to the last field that it reports of very many.
	andMore = regexp.MustCompile(` and (\d+) more$`)
	// plainName is a name that no forge makes anything of.
	plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/-]{0,62}$`)
)

// fieldName is the name of the field that a JSON pointer leads to, or of the list that it is an item
// of; empty if that does not belong in a title.
func fieldName(path string) string {
	for _, key := range slices.Backward(api.SplitPointer(path)) {
		if _, err := strconv.Atoi(key); err == nil || key == "-" {
			continue
		}
		if plainName.MatchString(key) {
			return key
		}
		break
	}
	return ""
}

// message returns the commit message, whose last line is the marker. It contains no number that
// changes while the pull request is open.
func (c *change) message(marker string) string {
	if c.rollback != nil {
		return c.rollback.Message(marker)
	}
	var b strings.Builder
	switch {
	case c.deleted:
		fmt.Fprintf(&b, "%s: remove %s %s\n\nIt was deleted on member clusters.\n", markdown.Plain(c.files[0].Path), c.id.Kind, markdown.Plain(nameOf(c.id)))
	case c.addition:
		fmt.Fprintf(&b, "%s: take over additions to %s %s\n\nWhat was added on member clusters:\n", markdown.Plain(c.files[0].Path), c.id.Kind, markdown.Plain(nameOf(c.id)))
	default:
		fmt.Fprintf(&b, "%s: take over drift of %s %s\n\nFields that were changed on member clusters:\n", markdown.Plain(c.files[0].Path), c.id.Kind, markdown.Plain(nameOf(c.id)))
	}
	for _, p := range c.paths {
		fmt.Fprintf(&b, "- %s\n", markdown.Plain(difftext.Path(c.object, p)))
	}
	b.WriteString("\n")
	for _, line := range c.allowTrailers() {
		b.WriteString(line + "\n")
	}
	b.WriteString(marker + "\n")
	return b.String()
}

// body returns the information that people need for the decision: what, where, who, and what merging and closing do; the
// rest is collapsed. Text from a member is in code that it cannot close. The changes that wait until fewer pull requests
// are open are listed, too.
func (c *change) body(fleet string, waiting []*change) string {
	return c.text(waiting) + marker(fleet, c.hash) + "\n"
}

// text is the body without the marker.
func (c *change) text(waiting []*change) string {
	if c.rollback != nil {
		return c.rollback.Body()
	}
	var b strings.Builder
	verb, end := "changed", "this pull request is merged or closed"
	if c.deleted {
		verb = "deleted"
	}
	if c.reason != nil {
		end = "this issue is closed"
	}
	object := markdown.Code(c.id.Kind + " " + nameOf(c.id))
	if c.addition {
		fmt.Fprintf(&b, "Something that Git does not have was added to %s on %s, and is left there until %s.\n\n", object, c.share(), end)
	} else {
		fmt.Fprintf(&b, "%s was %s on %s, and is left so until %s.\n\n", object, verb, c.share(), end)
	}
	b.WriteString(markdown.CodeBlock("diff", c.diff()))
	c.writeFacts(&b)
	b.WriteString("\n")
	if c.reason != nil {
		c.writeManual(&b)
	} else {
		writeSquashing(&b, c.allowTrailers())
		what := "change"
		switch {
		case c.deleted:
			what = "deletion"
		case c.addition:
			what = "addition"
		}
		b.WriteString("**Merging** takes the " + what + " over into Git.")
		if len(c.putsBack) == 0 {
			b.WriteString(" Nothing is written to the object on these clusters.")
		}
		c.writeEffects(&b)
		b.WriteString("\n\n")
	}
	putsBack := "reverts the change"
	switch {
	case c.deleted:
		putsBack = "creates the object again as it is in Git"
	case c.addition:
		putsBack = "removes it from these clusters"
	}
	fmt.Fprintf(&b, "**Closing** %s, also if somebody makes the same change once more.\n\n", putsBack)
	writeDetails(&b, []*change{c}, waiting)
	return b.String()
}

// writeFacts writes where the change is, who made it, and its line in Git.
func (c *change) writeFacts(b *strings.Builder) {
	fmt.Fprintf(b, "\n- **Where:** %s; first seen at %s\n", markdown.List(c.clusters(), most), c.first().UTC().Format(time.RFC3339))
	fmt.Fprintf(b, "- **Who:** %s\n", c.writers())
	if c.source.Path == "" {
		return
	}
	source := markdown.Code(c.source.String())
	if c.link != "" {
		source = linkTo(c.source, c.link)
	}
	fmt.Fprintf(b, "- **In Git:** %s\n", source)
}

// share says on how many of the clusters that get the object it was changed.
func (c *change) share() string {
	if c.holders > len(c.drifts) {
		return fmt.Sprintf("%d of %s", len(c.drifts), markdown.Count(c.holders, "cluster"))
	}
	return markdown.Count(len(c.drifts), "cluster")
}

// diff returns the fields of the change as lines of a diff.
func (c *change) diff() string {
	var b strings.Builder
	if c.deleted {
		b.WriteString("- (the whole object)\n")
	}
	for _, p := range c.paths {
		for _, line := range difftext.Field(c.object, p) {
			b.WriteString(markdown.Plain(line) + "\n")
		}
	}
	return b.String()
}

// writers names those who made the change on any cluster.
func (c *change) writers() string {
	var who []string
	for _, d := range c.drifts {
		for _, a := range d.By {
			if !slices.Contains(who, a.String()) {
				who = append(who, a.String())
			}
		}
	}
	if who == nil {
		return "not known"
	}
	return markdown.List(who, maxWriters)
}

// linkTo returns a link to a line in Git, and linkIn the address of that link in a body; empty if the body has none. The
// address stays what it was, so that a body does not change with every commit.
func linkTo(source api.Origin, address string) string {
	return "[" + markdown.Code(source.String()) + "](" + address + ")"
}

func linkIn(body string, source api.Origin) string {
	_, rest, _ := strings.Cut(body, "**In Git:** "+strings.TrimSuffix(linkTo(source, ""), ")"))
	address, _, _ := strings.Cut(rest, ")")
	return address
}

// writeSquashing says which trailers of the commit have to be kept.
func writeSquashing(b *strings.Builder, lines []string) {
	if lines != nil {
		fmt.Fprintf(b, "**Squashing:** keep the trailer %s, which allows the deletion, as the last line of the message.\n\n", markdown.List(lines, most))
	}
}

// writeEffects says what else merging does.
func (c *change) writeEffects(b *strings.Builder) {
	if len(c.putsBack) > 0 {
		b.WriteString(" It also **puts back** what else was changed in the object: " + c.otherChanges() + ". Merge that first to keep it, and this once it is in force.")
	}
	if c.override != "" {
		fmt.Fprintf(b, " %s in %s is for them only", markdown.Code(c.override), markdown.Code(c.files[0].Path))
		if !c.deleted {
			b.WriteString(": while it sets the value, later changes of it in the manifest do not reach them")
		}
		b.WriteString(".")
	}
	if len(c.others) > 0 {
		fmt.Fprintf(b, " It also **changes** the object on %s, in the order of the rollout: %s.", markdown.Count(len(c.others), "other cluster"), markdown.List(c.others, most))
	}
}

// writeManual writes why no edit is possible, and how to keep the change.
func (c *change) writeManual(b *strings.Builder) {
	fmt.Fprintf(b, "**Why this is not a pull request:** no edit of the files in Git makes the change: %s\n\n", markdown.Code(forge.Shorten(c.reason.Error(), maxReason)))
	b.WriteString("**To keep the change**, make it in Git by hand. Once these clusters have the commit, gitfleet closes this issue.\n\n")
}

// writeDetails writes what not everybody needs for the decision about some changes.
func writeDetails(b *strings.Builder, changes, waiting []*change) {
	b.WriteString("<details><summary>Who changed it on which cluster, and what else can be done</summary>\n\n")
	var who, names []string
	overwritten := false
	for _, c := range changes {
		object := ""
		if len(changes) > 1 {
			object = c.id.Kind + " " + nameOf(c.id) + " on "
		}
		names, overwritten = append(names, "gitfleet proposals show "+c.shortName()), overwritten || !c.addition
		for _, d := range c.drifts {
			before := ""
			if d.Count > 1 {
				before = "; the object was changed there " + markdown.Count(d.Count-1, "time") + " before"
			}
			for _, a := range d.By {
				who = append(who, object+d.Cluster+": "+a.String()+formatTime(a.Time)+before)
			}
			if len(d.By) == 0 {
				who = append(who, object+d.Cluster+": not known"+before)
			}
		}
	}
	if who = slices.Compact(who); len(who) > most {
		who = append(who[:most], fmt.Sprintf("and %d more", len(who)-most))
	}
	var lines strings.Builder
	for _, w := range who {
		lines.WriteString(markdown.Plain(w) + "\n")
	}
	b.WriteString(markdown.CodeBlock("text", lines.String()))
	b.WriteString("\n")
	object, each := "the object", markdown.Code(names[0])+" shows the change and its state."
	if len(changes) > 1 {
		object, each = "each object", markdown.Code("gitfleet proposals show NAME")+" shows a change and its state; the names are at the headings."
	}
	if overwritten {
		b.WriteString("- A commit that changes the object overwrites the change.\n")
	}
	fmt.Fprintf(b, "- The label %s keeps %s as it is, also after closing, until the label is removed.\n", markdown.Code(holdLabel), object)
	b.WriteString("- " + each + "\n")
	if len(waiting) > 0 {
		names = nil
		for _, w := range waiting {
			names = append(names, w.id.Kind+" "+nameOf(w.id))
		}
		fmt.Fprintf(b, "- **Waiting** until fewer pull requests and issues of drift are open: %s: %s.\n", markdown.Count(len(waiting), "change"), markdown.List(names, most))
	}
	b.WriteString("\n</details>\n\n")
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " at " + t.UTC().Format(time.RFC3339)
}

// nameOf returns the name of an object without its kind.
func nameOf(id api.ID) string {
	if id.Namespace == "" {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// The comments that gitfleet adds once to a pull request whose branch it does not change.
const (
	outdatedMarker  = "<!-- gitfleet: outdated -->"
	outdatedComment = "The base branch has another version of the changed file by now. gitfleet leaves this branch as it is, since other people have pushed to it: " +
		"update it, or close the pull request and make the change in Git."
)

var where = regexp.MustCompile(`(?m)^(?:- )?\*\*Where:\*\* (.+); first seen at `)

// mayListAny reports whether a body may list one of some clusters as one that has the change. A body
// that lists only some of the clusters, or was edited, may list any.
func mayListAny(body string, clusters []string) bool {
	found := where.FindAllStringSubmatch(body, -1)
	for _, each := range found {
		listed := strings.Split(each[1], ", ")
		if slices.ContainsFunc(clusters, func(c string) bool { return len(listed) > most || slices.Contains(listed, markdown.Code(c)) }) {
			return true
		}
	}
	return found == nil && len(clusters) > 0
}

// otherChanges lists the changes that merging puts back, with their clusters.
func (c *change) otherChanges() string {
	var out []string
	for _, other := range c.putsBack {
		out = append(out, fmt.Sprintf("%s on %s", markdown.Code(other.shortName()), markdown.List(other.clusters(), most)))
	}
	return strings.Join(out[:min(len(out), most)], ", ") + " (see `gitfleet proposals list`)"
}

// allowTrailers returns the trailers that a commit message needs to allow what the commit
// removes; nil if it removes nothing.
func (c *change) allowTrailers() []string {
	if !c.deleted {
		return nil
	}
	var out []string
	for _, d := range c.drifts {
		if line := conditions.AllowTrailer(d.Placement); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}
