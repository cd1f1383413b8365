package forge

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// An Issue is one of the repository that is no pull request.
type Issue struct {
	Number int64
	// URL is where people see it.
	URL         string
	Title, Body string
	// Labels are sorted.
	Labels []string
	// State is Open or Closed.
	State State
	// Ended is when it was closed; zero while it is open.
	Ended time.Time
}

// A NewIssue is what a new issue is opened with.
type NewIssue struct {
	Title, Body string
	Labels      []string
}

// ErrIssuesDisabled is the error of a repository whose issues are switched off.
var ErrIssuesDisabled = errors.New("issues are disabled in the repository")

const (
	// issuesPageSize bounds a page of a list: each issue may have a long body.
	issuesPageSize = 20
	// mostIssues is how many issues are read of a list, the newest ones.
	mostIssues = 1000
)

// listIssues reads the issues with a label page by page, the newest first.
func listIssues(label string, read func(page int) (entries []Issue, next bool, err error)) ([]Issue, error) {
	var list []Issue
	next := true
	for page := 1; next && page <= mostIssues/issuesPageSize; page++ {
		var entries []Issue
		var err error
		if entries, next, err = read(page); err != nil {
			return nil, fmt.Errorf("list issues: %w", err)
		}
		for _, i := range entries {
			if slices.Contains(i.Labels, label) { // Gitea ignores a label that the repository does not have
				list = append(list, i)
			}
		}
	}
	return list, nil
}

// issuesError returns ErrIssuesDisabled instead of the answer of a repository that says it has
// no issues.
func issuesError(err error, enabled func() (bool, error)) error {
	answer, ok := errors.AsType[*StatusError](err)
	if !ok || answer.RetryAfter > 0 || !slices.Contains([]int{http.StatusForbidden, http.StatusNotFound, http.StatusGone}, answer.Status) {
		return err
	}
	if on, failed := enabled(); failed == nil && !on {
		return ErrIssuesDisabled
	}
	return err
}

// isGone reports whether an error says that there is no such issue, or none any more.
func isGone(err error) bool {
	status := statusOf(err)
	return status == http.StatusNotFound || status == http.StatusGone
}
