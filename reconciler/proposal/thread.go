package proposal

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// ownPrefix is the prefix of the names of all branches with changes, and branchPrefix that of those with drift.
const (
	ownPrefix    = "gitfleet/"
	branchPrefix = ownPrefix + "drift/"
)

// issuePrefix is the prefix of the names of issues. No branch of gitfleet has it.
const issuePrefix = "issue/"

// rollbackPrefix is the prefix of the names of branches that undo content.
const rollbackPrefix = "gitfleet/failed-content/"

// A thread is the pull request or the issue that offers a change, or several of one placement.
type thread struct {
	forge.Thread
	// name identifies it: the branch of a pull request, or issuePrefix followed by the hash of the change.
	name string
	// mergeCommit is the commit by which it was merged; empty unless it is.
	mergeCommit string
}

func (t *thread) isIssue() bool { return t.Kind == forge.KindIssue }

// onHold reports whether it has the label that keeps the object as it is.
func (t *thread) onHold() bool { return slices.Contains(t.Labels, holdLabel) }

// expired reports whether it was closed since nobody decided about it.
func (t *thread) expired() bool {
	return t.State == forge.Closed && strings.HasSuffix(strings.TrimSpace(t.Body), expiredMarker)
}

func isIssue(name string) bool { return strings.HasPrefix(name, issuePrefix) }

func isPullRequest(name string) bool {
	return strings.HasPrefix(name, branchPrefix) || isRollback(name)
}

func isRollback(branch string) bool { return strings.HasPrefix(branch, rollbackPrefix) }

// fromPullRequest returns the thread of a pull request; nil if there is none.
func fromPullRequest(pr *forge.PullRequest, err error) (*thread, error) {
	if pr == nil {
		return nil, err
	}
	return &thread{pr.Thread, pr.Branch, pr.MergeCommit}, err
}

// fromIssue returns the issue of a change.
func fromIssue(i forge.Thread, hash string) thread {
	return thread{Thread: i, name: issuePrefix + hash}
}

// branchOf returns the branch of a change or a group that is offered for the first or another time.
func branchOf(prefix, hash string, attempt int) string {
	if attempt == 1 {
		return prefix + hash
	}
	return fmt.Sprintf("%s%s-%d", prefix, hash, attempt)
}

// branchHash returns the hash of the change of a pull request or an issue, which is part of the name
// of its branch.
func branchHash(branch string) string {
	for _, prefix := range []string{issuePrefix, branchPrefix, rollbackPrefix} {
		branch = strings.TrimPrefix(branch, prefix)
	}
	hash, _, _ := strings.Cut(branch, "-")
	return hash
}

// trailer returns the line that marks a commit on a branch as gitfleet's own for a change.
func trailer(branch string) string {
	if isRollback(branch) {
		return "Gitfleet-Failed-Content: " + branchHash(branch)
	}
	return "Gitfleet-Drift: " + branchHash(branch)
}

func marker(fleet, hash string) string { return "<!-- gitfleet: " + fleet + " " + hash + " -->" }

var marked = regexp.MustCompile(`(?m)^<!-- gitfleet: ([A-Za-z0-9_.-]+) ([0-9a-f]+) -->\r?$`)

// markedAs returns the hash of the change in the body of a fleet's pull request; empty if it
// belongs to another fleet.
func markedAs(body, fleet string) (hash string) {
	found := marked.FindStringSubmatch(body)
	if found == nil || found[1] != fleet {
		return ""
	}
	return found[2]
}

// endedMarker says at the end of a body that gitfleet closed the pull request or issue since its drift had ended.
const endedMarker = "<!-- gitfleet: ended -->"

// expiredMarker says at the end of a body that gitfleet closed the pull request since nobody decided about it, and elsewhere
// that it was opened again after that.
const expiredMarker = "<!-- gitfleet: expired -->"

// markEnded returns the body of a pull request or issue that gitfleet closes.
func markEnded(body string) string { return strings.TrimSpace(body) + "\n" + endedMarker + "\n" }

// endedByGitfleet reports whether gitfleet closed a pull request because its drift had ended.
func endedByGitfleet(body string) bool {
	return strings.HasSuffix(strings.TrimSpace(body), endedMarker)
}

// isOver reports whether a pull request or issue no longer counts for a change that has lasted since a
// time: it was merged before, or gitfleet itself has closed it.
func isOver(pr *thread, since time.Time) bool {
	switch pr.State {
	case forge.Merged:
		return pr.Ended.Before(since)
	case forge.Closed:
		return endedByGitfleet(pr.Body)
	}
	return false
}

// closedByGitfleet reports whether nobody decided about a pull request or an issue that is closed.
func closedByGitfleet(pr *thread) bool {
	return pr.State == forge.Closed && endedByGitfleet(pr.Body)
}

// isIn reports whether a change is offered by a pull request together with others, or could be.
func (c *change) isIn(branch string) bool {
	return isPullRequest(branch) && branchHash(branch) != c.hash
}

// ChangeOf returns the name of the change that a pull request of a fleet offers; empty if it offers none.
func ChangeOf(pr forge.PullRequest, fleet string) string {
	if !IsOfDrift(pr) || markedAs(pr.Body, fleet) == "" {
		return ""
	}
	return branchHash(pr.Branch)
}

// IsOfDrift reports whether a pull request offers drift, of whichever fleet.
func IsOfDrift(pr forge.PullRequest) bool {
	return !pr.Fork && strings.HasPrefix(pr.Branch, branchPrefix)
}

// IsIssueOfDrift reports whether a webhook may be about an issue that a Proposer has opened.
func IsIssueOfDrift(labels []string, body string) bool {
	return slices.Contains(labels, issueLabel) || marked.MatchString(body)
}
