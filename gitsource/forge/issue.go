package forge

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// ErrIssuesDisabled is returned if issues are disabled in the repository.
var ErrIssuesDisabled = errors.New("issues are disabled in the repository")

const (
	// issuesPageSize is the number of issues per page of a list: each may have a long body.
	issuesPageSize = 20
	// maxIssues is the maximum number of issues that are read of a list, the newest ones.
	maxIssues = 1000
)

// listIssues reads the issues with a label page by page, the newest first.
func listIssues(label string, read func(page int) (entries []Thread, next bool, err error)) ([]Thread, error) {
	var list []Thread
	next, text := true, 0
	for page := 1; next && page <= maxIssues/issuesPageSize && len(list) < maxIssues; page++ {
		var entries []Thread
		var err error
		if entries, next, err = read(page); err != nil {
			return nil, fmt.Errorf("list issues: %w", err)
		}
		for _, i := range entries {
			if slices.Contains(i.Labels, label) { // Gitea ignores a label that the repository does not have
				list = append(list, i)
				text += len(i.Title) + len(i.Body)
			}
			if text > maxText {
				return nil, fmt.Errorf("list issues: %w", errMuchText)
			}
		}
	}
	return list, nil
}

// issuesError returns ErrIssuesDisabled for the error response of a repository in which issues
// are disabled, and other errors unchanged.
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

// isGone reports whether an error says that there is no such issue, or that it was deleted.
func isGone(err error) bool {
	status := statusOf(err)
	return status == http.StatusNotFound || status == http.StatusGone
}
