package review

import (
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

// The limits of the parts of a comment.
const (
	maxProblems   = 50
	maxPlacements = 50
	maxContents   = 20
	maxFields     = 20
	maxPaths      = 3
	maxGroups     = 10
	maxLines      = 100
	maxNames      = 10
	maxText       = 300
)

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

// problemMessage is a problem without its place.
func problemMessage(p problem.Problem) string {
	if p.Kustomization == p.Path {
		p.Kustomization = ""
	}
	p.Path = ""
	return markdown.Code(shortened(p.Marked()))
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

// allowedMarker is in the comment on a pull request from a fork, and says for which commit the label
// was set. A short hash would not do: its author could make another commit with the same.
func allowedMarker(head string) string { return "<!-- gitfleet plan allowed for " + head + " -->" }
