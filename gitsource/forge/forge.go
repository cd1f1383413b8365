// Package forge asks a forge about the pull requests and issues of one repository.
//
// [New] returns a [Client] for Gitea (and Forgejo), GitHub or GitLab, where a pull
// request is a merge request. It asks for as little as possible, and what a pull request
// is now the forge says. Errors of a forge that answers are of the type [*StatusError];
// none has a credential in it.
package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Client is one repository on a forge, asked in the name of the user of a token. Any
// goroutine may use it.
type Client interface {
	// ListOpen lists the open pull requests to a base branch by their numbers, those of
	// forks too. Bodies of forks are shortened. A few that are larger than what is read of an
	// answer are left out.
	ListOpen(ctx context.Context, base string) ([]PullRequest, error)
	// FindPullRequest returns the pull request from a branch of the repository itself to
	// a base branch, whatever its state is; nil if there is none. Which one that is of
	// several depends on the forge.
	FindPullRequest(ctx context.Context, base, branch string) (*PullRequest, error)
	// PullRequest returns the pull request with a number.
	PullRequest(ctx context.Context, number int64) (PullRequest, error)
	// OpenPullRequest opens a pull request. If it is open but could not be labeled, it is
	// returned with the error.
	OpenPullRequest(ctx context.Context, p Proposal) (PullRequest, error)
	// EditPullRequest replaces the body of a pull request.
	EditPullRequest(ctx context.Context, number int64, body string) error
	// ClosePullRequest comments on a pull request, and closes it with another body.
	ClosePullRequest(ctx context.Context, number int64, comment, body string) error
	// SetLabels adds and removes labels of a pull request, and leaves its others. Labels
	// that the repository does not have are created.
	SetLabels(ctx context.Context, number int64, add, remove []string) error

	// FindComment returns the first comment on a pull request that has a marker in it and
	// was written by the user of the token; nil if there is none.
	FindComment(ctx context.Context, number int64, marker string) (*Comment, error)
	// AddComment comments on a pull request.
	AddComment(ctx context.Context, number int64, body string) (Comment, error)
	// EditComment replaces the body of a comment on a pull request.
	EditComment(ctx context.Context, number, id int64, body string) error

	// ListIssues lists the issues with a label that the user of the token has opened, the newest
	// first: those in a state, or all if it is empty. Of very many only the newest are listed. The
	// error is [ErrIssuesDisabled] if the repository has no issues.
	ListIssues(ctx context.Context, label string, state State) ([]Issue, error)
	// Issue returns the issue with a number; nil if it was deleted.
	Issue(ctx context.Context, number int64) (*Issue, error)
	// OpenIssue opens an issue. The error is [ErrIssuesDisabled] if the repository has no issues.
	OpenIssue(ctx context.Context, i NewIssue) (Issue, error)
	// EditIssue replaces the body of an issue.
	EditIssue(ctx context.Context, number int64, body string) error
	// CloseIssue comments on an issue, and closes it with another body.
	CloseIssue(ctx context.Context, number int64, comment, body string) error

	// SetStatus sets the status of a commit in a context, instead of the one before. On
	// GitLab one that stays pending keeps its description.
	SetStatus(ctx context.Context, s Status) error
	// FindStatus returns the status of a commit in a context, without its URL; nil if it has none.
	FindStatus(ctx context.Context, commit, name string) (*Status, error)

	// LineURL is where people see a file of a commit, at a line if that is not zero. It asks
	// nothing.
	LineURL(commit, path string, line int) string
}

// A State is what has become of a pull request.
type State string

// The states of a pull request.
const (
	Open   State = "open"
	Merged State = "merged"
	Closed State = "closed" // without having been merged
)

// A PullRequest is one to a branch of the repository.
type PullRequest struct {
	Number int64
	// URL is where people see it.
	URL         string
	Title, Body string
	// Author is the user name of who opened it.
	Author string
	Draft  bool
	// Labels are sorted. Those of a fork on Gitea are not told, since anybody can set them.
	Labels []string
	// Base is the branch of the repository that it is to be merged into.
	Base string
	// Branch is the branch that is to be merged. With Fork it is a branch of another
	// repository, or none.
	Branch string
	Fork   bool
	// Head is the hash of the last commit to be merged, and HeadRef the reference by
	// which the repository itself has it.
	Head, HeadRef string
	State         State
	// MergeCommit is the commit of the base branch that has it; empty unless it is merged.
	MergeCommit string
	// Ended is when it was merged or closed; zero while it is open.
	Ended time.Time
}

// A Proposal is what a new pull request is opened with.
type Proposal struct {
	Base, Branch string
	Title, Body  string
	Labels       []string
}

// A Comment is one on a pull request.
type Comment struct {
	ID   int64
	Body string
}

// A StatusState is the state of a commit status.
type StatusState string

// The states of a commit status.
const (
	StatusPending StatusState = "pending"
	StatusSuccess StatusState = "success"
	StatusFailure StatusState = "failure"
	StatusErrored StatusState = "error"
)

// A Status is what a commit is shown with.
type Status struct {
	// Commit is the full hash.
	Commit string
	// Context distinguishes it from those of others, such as gitfleet/plan.
	Context string
	State   StatusState
	// Description is one line; it is shortened to what the forge takes.
	Description string
	// URL is where there is more to see; empty if there is none.
	URL string
}

// New returns a client of a repository. It asks nothing yet.
func New(cfg Config) (Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	switch cfg.Type {
	case Gitea:
		return newGitea(cfg)
	case GitHub:
		return newGitHub(cfg)
	case GitLab:
		return newGitLab(cfg)
	}
	return nil, fmt.Errorf("type: %q is not supported", cfg.Type)
}

const (
	// pageSize is how many entries of a list are asked for at once.
	pageSize = 50
	// mostPages is the maximum number of pages of a list that are read.
	mostPages = 40
)

// pages reads a list page by page. next is false with the last page.
func pages[T any](what string, read func(page int) (entries []T, next bool, err error)) ([]T, error) {
	var out []T
	for page := 1; page <= mostPages; page++ {
		entries, next, err := read(page)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		out = append(out, entries...)
		if !next {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s: more than %d", what, mostPages*pageSize)
}

// The bounds of a list of pull requests.
const (
	mostPullRequests = 5000
	// mostLeftOut is how many may be left out as too large.
	mostLeftOut = 20
	// mostForkBody is how much of the body of a fork is kept, in characters.
	mostForkBody = 1000
)

// pageSizes are those by which a list is read. If the answer is too large, what it has is
// asked for by pages of the next size, which fit into it.
var pageSizes = []int{pageSize, 25, 5, 1}

// A lister reads a list of pull requests.
type lister struct {
	read    func(page, size int) (entries []PullRequest, next bool, err error)
	list    []PullRequest
	leftOut int
}

// page reads one page of the first of some sizes, and reports whether there is another.
func (l *lister) page(page int, sizes []int) (next bool, err error) {
	entries, next, err := l.read(page, sizes[0])
	switch {
	case errors.Is(err, errTooLarge) && len(sizes) > 1:
		parts := sizes[0] / sizes[1]
		for part := range parts {
			if next, err = l.page((page-1)*parts+part+1, sizes[1:]); err != nil || !next {
				return false, err
			}
		}
		return true, nil
	case errors.Is(err, errTooLarge) && l.leftOut < mostLeftOut:
		l.leftOut++
		return true, nil
	case err != nil:
		return false, err
	}
	for _, pr := range entries {
		if pr.Fork {
			pr.Body = shorten(pr.Body, mostForkBody)
		}
		l.list = append(l.list, pr)
	}
	return next, nil
}

// listPullRequests reads a list of pull requests, and sorts it by number.
func listPullRequests(read func(page, size int) (entries []PullRequest, next bool, err error)) ([]PullRequest, error) {
	l := &lister{read: read}
	page, next, err := 0, true, error(nil)
	for err == nil && next && page < mostPullRequests/pageSize {
		page++
		next, err = l.page(page, pageSizes)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("list pull requests: %w", err)
	case next:
		return nil, fmt.Errorf("list pull requests: more than %d are open", mostPullRequests)
	}
	list := l.list
	slices.SortFunc(list, func(a, b PullRequest) int { return cmp.Compare(a.Number, b.Number) })
	return slices.CompactFunc(list, func(a, b PullRequest) bool { return a.Number == b.Number }), nil
}

// newest returns the pull request of a branch of the repository itself: the open one, or
// else the newest; nil if a list that begins with the newest has none.
func newest[T any](list []T, branch string, convert func(T) PullRequest) *PullRequest {
	var found *PullRequest
	for _, entry := range list {
		pr := convert(entry)
		if !pr.Fork && pr.Branch == branch && (found == nil || found.State != Open && pr.State == Open) {
			found = &pr
		}
	}
	return found
}

// lineURL is the page of a repository that shows a file, at a line if that is not zero. view
// is the part of the address that names the commit.
func lineURL(repository, view, file string, line int) string {
	parts := strings.Split(file, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	address := repository + "/" + view + "/" + strings.Join(parts, "/")
	if line > 0 {
		address += fmt.Sprintf("#L%d", line)
	}
	return address
}

// labelColor is that of the labels that are created.
const labelColor = "#0969da"

// missing are the names that are not among others.
func missing(names, others []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(others, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// shorten returns a text of at most a number of characters.
func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
