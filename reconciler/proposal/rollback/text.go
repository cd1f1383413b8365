package rollback

import (
	"fmt"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

const (
	longestTitle  = 255  // what the forges allow
	longestReason = 1000 // in characters
	longestLabel  = 50
	maxFiles      = 20
)

// Label is the label of all pull requests and issues about content that has failed.
const Label = "gitfleet/failed-content"

// An Offer is a pull request that undoes content which has failed, or an issue about it.
type Offer struct {
	Placement api.PlacementKey
	Failed    updaterun.FailedContent
	// Paths are the files that the pull request changes, and Reason is why there is none; nil if there is one.
	Paths  []string
	Reason error
}

// short is a commit as forges make a link of it.
func short(commit string) string { return commit[:min(len(commit), 10)] }

// failure is what has failed, on one line of limited length.
func (o *Offer) failure() string {
	return markdown.Plain(forge.Shorten(o.Failed.Reason, longestReason))
}

// Title names the placement and the commit.
func (o *Offer) Title() string {
	return forge.Shorten(fmt.Sprintf("Failed content: undo %s in %s", short(o.Failed.Commit), markdown.Plain(o.Placement.String())), longestTitle)
}

// Labels are those of the pull request or issue, without those that say what it is.
func (o *Offer) Labels() []string {
	label := "placement/" + strings.TrimPrefix(strings.TrimPrefix(o.Placement.String(), "crp/"), "rp/")
	return []string{Label, label[:min(len(label), longestLabel)]}
}

// Message is the message of the commit, whose last line is the marker.
func (o *Offer) Message(marker string) string {
	return fmt.Sprintf("%s: undo content that failed\n\nIt came with commit %s, and failed in update run %s:\n%s\n\nThe clusters have the content of update run %s again.\n\n%s\n",
		markdown.Plain(o.Placement.String()), o.Failed.Commit, markdown.Plain(o.Failed.Run), o.failure(), markdown.Plain(o.Failed.Back), marker)
}

// Body says what has failed where, and what merging and closing do.
func (o *Offer) Body() string {
	var b strings.Builder
	placement := markdown.Code(o.Placement.String())
	fmt.Fprintf(&b, "The content of %s that came with commit %s failed in the update run %s:\n\n", placement, short(o.Failed.Commit), markdown.Code(o.Failed.Run))
	b.WriteString(markdown.CodeBlock("text", o.failure()+"\n"))
	fmt.Fprintf(&b, "\nSince %s the clusters have the content of the update run %s again, which came with commit %s. Git still has what failed; it does not come back by itself.\n\n",
		o.Failed.At.UTC().Format(time.RFC3339), markdown.Code(o.Failed.Back), short(o.Failed.BackCommit))
	if o.Reason != nil {
		fmt.Fprintf(&b, "**Why this is not a pull request:** the content cannot be undone by an edit of the files: %s\n\n", markdown.Code(forge.Shorten(o.Reason.Error(), longestReason)))
		b.WriteString("**To correct it**, change the content in Git by hand. gitfleet then closes this issue.\n\n")
	} else {
		fmt.Fprintf(&b, "**Merging** makes Git agree with the clusters again: it undoes what the commits after %s up to %s have changed in the content, in %s, and keeps other changes.\n\n",
			short(o.Failed.BackCommit), short(o.Failed.Commit), markdown.List(o.Paths, maxFiles))
	}
	fmt.Fprintf(&b, "**Closing** changes nothing. The content then stays out until Git has another one, or until somebody lets it run again: %s\n\n",
		markdown.Code("gitfleet resume "+o.Placement.String()+" --failed-content --reason TEXT"))
	b.WriteString("gitfleet closes this once the content is another one, or runs again.\n\n")
	return b.String()
}
