// Package forge is a client for the pull requests, issues and commit statuses of one repository
// on a forge.
//
// [New] returns a [Client] for Gitea (and Forgejo), GitHub or GitLab, where a pull request is a
// merge request. It sends as few requests as possible and keeps no state about pull requests.
// Error responses have the type [*StatusError]; no error contains a credential.
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

// A Client accesses one repository on a forge as the user of a token. It is safe for concurrent
// use.
type Client interface {
	// ListOpen lists the open pull requests to a base branch, also those from forks, sorted by
	// number. Bodies of pull requests from forks are shortened. A few pull requests that exceed
	// the size limit of a response are left out.
	ListOpen(ctx context.Context, base string) ([]PullRequest, error)
	// FindPullRequest returns the pull request from a branch of the repository itself to a base
	// branch, in any state; nil if there is none. If there are several, the forge decides which
	// one is returned.
	FindPullRequest(ctx context.Context, base, branch string) (*PullRequest, error)
	// PullRequest returns the pull request with a number.
	PullRequest(ctx context.Context, number int64) (PullRequest, error)
	// OpenPullRequest opens a pull request. Labels that the repository does not have are created.
	// If it was opened but could not be labeled, both the pull request and the error are returned.
	OpenPullRequest(ctx context.Context, p NewPullRequest) (PullRequest, error)
	// Edit changes the labels of a thread, and then its title and its body.
	Edit(ctx context.Context, t Thread, e Edit) error
	// Close adds a comment to a thread, replaces its body and closes it.
	Close(ctx context.Context, t Thread, comment, body string) error
	// RequestReviewers requests reviews of a pull request by users, and by teams that are named ORGANIZATION/TEAM. It returns
	// those that the forge refuses, since it does not know them or they may not read the repository.
	RequestReviewers(ctx context.Context, number int64, names []string) (refused []string, err error)
	// EnsureLabels creates the labels that the repository does not have. Others stay as they are.
	EnsureLabels(ctx context.Context, labels []Label) error

	// FindComment returns the first comment on a pull request that contains a marker and was
	// written by the user of the token; nil if there is none.
	FindComment(ctx context.Context, number int64, marker string) (*Comment, error)
	// AddComment comments on a pull request.
	AddComment(ctx context.Context, number int64, body string) (Comment, error)
	// EditComment replaces the body of a comment on a pull request.
	EditComment(ctx context.Context, number, id int64, body string) error

	// ListRemarks lists the comments of others than the user of the token on pull requests since a time, the oldest first.
	// If there are very many, some are left out.
	ListRemarks(ctx context.Context, since time.Time) ([]Remark, error)
	// MayWrite reports whether the author of a comment may write to the repository. It returns ErrPermissionsHidden if the
	// token may not ask that.
	MayWrite(ctx context.Context, r Remark) (bool, error)

	// MergedPullRequest returns the pull request whose merge into a base branch has made a commit; nil if there is none.
	MergedPullRequest(ctx context.Context, base, commit string) (*PullRequest, error)
	// Approvals returns who approves the head of a pull request with a review, without its author, the oldest first. A review
	// counts if nobody has dismissed it, if its author has not changed it, and may write to the repository.
	Approvals(ctx context.Context, pr PullRequest) ([]Remark, error)

	// FindLineComments returns the bodies of the comments on lines of a pull request that have a
	// marker in them and were written by the user of the token. It is an error if there are too
	// many to find all of them.
	FindLineComments(ctx context.Context, number int64, marker string) ([]string, error)
	// CommentOnLines comments on lines that the head of a pull request, which is its newest
	// commit, has added or changed: as one review with a text where the forge has reviews, where
	// one wrong line has all refused. The comments are in order. The error is ErrNotReady if the
	// forge does not know the lines of that commit yet.
	CommentOnLines(ctx context.Context, number int64, head, text string, comments []LineComment) error

	// ListIssues lists the issues with a label that the user of the token has opened, the
	// newest first. An empty state lists the issues in all states. If there are very many, only
	// the newest are listed. The error is [ErrIssuesDisabled] if the repository has no issues.
	ListIssues(ctx context.Context, label string, state State) ([]Thread, error)
	// Issue returns the issue with a number; nil if it was deleted.
	Issue(ctx context.Context, number int64) (*Thread, error)
	// OpenIssue opens an issue. The error is [ErrIssuesDisabled] if the repository has no issues.
	OpenIssue(ctx context.Context, i NewIssue) (Thread, error)

	// SetStatus sets the status of a commit in a context, and replaces the one before. On
	// GitLab a status that stays pending keeps its description.
	SetStatus(ctx context.Context, s Status) error
	// FindStatus returns the status of a commit in a context, without its URL; nil if it has none.
	FindStatus(ctx context.Context, commit, name string) (*Status, error)

	// Access returns what the token may do in the repository. The error is about the repository, or
	// the token as a whole.
	Access(ctx context.Context) (Access, error)

	// LineURL returns the address at which a browser shows a file of a commit, at a line unless
	// it is zero. It sends no request.
	LineURL(commit, path string, line int) string
}

// A Kind says what a thread is.
type Kind int

// The kinds of threads. Their numbers may be counted apart.
const (
	KindPullRequest Kind = iota
	KindIssue
)

// A Thread is a conversation on a forge: a pull request, or an issue of the repository.
type Thread struct {
	Kind   Kind
	Number int64
	// URL is its address in a browser.
	URL         string
	Title, Body string
	// Labels are sorted. They are empty for pull requests from forks on Gitea, where anybody
	// can set them.
	Labels []string
	// State is not Merged for an issue.
	State State
	// Opened is the time at which it was opened first.
	Opened time.Time
	// Ended is the time at which it was merged or closed; zero while it is open.
	Ended time.Time
}

// A State is the state of a thread.
type State string

// The states of a thread.
const (
	Open   State = "open"
	Merged State = "merged"
	Closed State = "closed" // without being merged
)

// A PullRequest is a pull request to a branch of the repository.
type PullRequest struct {
	Thread
	// Author is the user name of who opened it, and AuthorID the ID.
	Author   string
	AuthorID int64
	// Base is the branch of the repository into which it is to be merged.
	Base string
	// Branch is the branch to merge. If Fork is set, it is a branch of another repository, or
	// empty.
	Branch string
	Fork   bool
	// Head is the last commit of the branch, and HeadRef the reference under which the
	// repository itself has it.
	Head, HeadRef string
	// MergeCommit is the commit by which it was merged into the base branch; empty unless it is
	// merged.
	MergeCommit string
}

// A NewPullRequest has the fields of a pull request to open.
type NewPullRequest struct {
	Base, Branch string
	Title, Body  string
	Labels       []string
}

// An Edit has the changes of a thread.
type Edit struct {
	// Title and Body are the new ones; empty if they stay.
	Title, Body string
	// AddLabels and RemoveLabels are the labels to add and to remove. Labels that the repository does not have are
	// created, and one that is not there is not removed.
	AddLabels, RemoveLabels []string
}

// titled and text return the new title and the new body for a request; nil if they stay.
func (e Edit) titled() *string { return unlessEmpty(e.Title) }
func (e Edit) text() *string   { return unlessEmpty(e.Body) }

func unlessEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// onlyLabels reports whether neither the title nor the body changes.
func (e Edit) onlyLabels() bool { return e.Title == "" && e.Body == "" }

// A Comment is a comment on a pull request.
type Comment struct {
	ID   int64
	Body string
}

// A LineComment is a comment on a line of a file, in the version of a pull request. Lines are
// counted from one.
type LineComment struct {
	Path string
	Line int
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

// A Status is a commit status.
type Status struct {
	// Commit is the full hash.
	Commit string
	// Context distinguishes it from the statuses of other tools; an example is gitfleet/plan.
	Context string
	State   StatusState
	// Description is one line. It is shortened to the maximum length of the forge.
	Description string
	// URL is the address of the details; empty if there are none.
	URL string
}

// Access is what a token may do in the repository, as far as the forge says so.
type Access struct {
	// User is the user name of the token.
	User string
	// ReadOnly says that the user may not push, and so neither open pull requests of branches of
	// the repository nor set statuses.
	ReadOnly bool
	// MissingScope is what the token was not made for; empty if it was, or if the forge does not
	// say.
	MissingScope string
	// Archived says that nobody may write to the repository. NoPullRequests and NoIssues say that
	// it has none.
	Archived, NoPullRequests, NoIssues bool
	// PermissionsHidden says that the token may not ask what others may do in the repository.
	PermissionsHidden bool
}

const (
	// pageSize is the number of entries per page of a list.
	pageSize = 50
	// maxPages is the maximum number of pages of a list that are read.
	maxPages = 40
	// maxText is the maximum size of the titles and bodies of a list, in bytes.
	maxText = 32 << 20
)

// errMuchText is the error of a list with too much text.
var errMuchText = fmt.Errorf("more than %d MiB of text", maxText>>20)

// pages reads a list page by page. next is false for the last page.
func pages[T any](what string, read func(page int) (entries []T, next bool, err error)) ([]T, error) {
	var out []T
	for page := 1; page <= maxPages; page++ {
		entries, next, err := read(page)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		out = append(out, entries...)
		if len(out) > maxPages*pageSize {
			break // the forge sends longer pages than it was asked for
		}
		if !next {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s: more than %d", what, maxPages*pageSize)
}

// ownOf returns the entries of a page that are our own: those of others, who may write many and long ones,
// are not kept.
func ownOf[T any](page []T, isOwn func(T) (bool, error)) (own []T, err error) {
	for _, entry := range page {
		is, err := isOwn(entry)
		if err != nil {
			return nil, err
		}
		if is {
			own = append(own, entry)
		}
	}
	return own, nil
}

// The limits of a list of pull requests.
const (
	maxPullRequests = 5000
	// maxLeftOut is the maximum number of pull requests that are left out as too large.
	maxLeftOut = 20
	// maxForkBody is the maximum length of the body of a pull request from a fork, in
	// characters.
	maxForkBody = 1000
)

// pageSizes are the page sizes of a list. A page whose response is too large is requested again
// in pages of the next size. Each size divides the one before.
var pageSizes = []int{pageSize, 25, 5, 1}

// A lister reads a list of pull requests.
type lister struct {
	read    func(page, size int) (entries []PullRequest, next bool, err error)
	list    []PullRequest
	text    int // the size of the titles and bodies of list
	leftOut int
}

// page reads one page with the first of the given sizes, and on responses that are too large
// with the others. It reports whether there is another page.
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
	case errors.Is(err, errTooLarge) && l.leftOut < maxLeftOut:
		l.leftOut++
		return true, nil
	case err != nil:
		return false, err
	}
	for _, pr := range entries {
		if pr.Fork {
			pr.Body = Shorten(pr.Body, maxForkBody)
		}
		l.list = append(l.list, pr)
		if l.text += len(pr.Title) + len(pr.Body); l.text > maxText {
			return false, errMuchText
		}
	}
	if len(l.list) > maxPullRequests {
		return false, errManyPullRequests // the forge sends longer pages than it was asked for
	}
	return next, nil
}

var errManyPullRequests = fmt.Errorf("more than %d are open", maxPullRequests)

// listPullRequests reads a list of pull requests, and sorts it by number.
func listPullRequests(read func(page, size int) (entries []PullRequest, next bool, err error)) ([]PullRequest, error) {
	l := &lister{read: read}
	page, next, err := 0, true, error(nil)
	for err == nil && next && page < maxPullRequests/pageSize {
		page++
		next, err = l.page(page, pageSizes)
	}
	switch {
	case next && err == nil:
		err = errManyPullRequests
		fallthrough
	case err != nil:
		return nil, fmt.Errorf("list pull requests: %w", err)
	}
	list := l.list
	slices.SortFunc(list, func(a, b PullRequest) int { return cmp.Compare(a.Number, b.Number) })
	return slices.CompactFunc(list, func(a, b PullRequest) bool { return a.Number == b.Number }), nil
}

// newest returns the pull request of a branch of the repository itself: the open one, or
// otherwise the newest; nil if there is none. The list begins with the newest.
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

// sortedNames returns the sorted names of labels.
func sortedNames[T any](labels []T, name func(T) string) []string {
	var out []string
	for _, l := range labels {
		out = append(out, name(l))
	}
	slices.Sort(out)
	return out
}

// lineURL returns the page of a repository that shows a file, at a line unless it is zero. view
// is the part of the address that selects the commit.
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

// labelColor is the colour of new labels.
const labelColor = "#0969da"

// Shorten cuts a text to a number of characters.
func Shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// A Label is a label of a repository.
type Label struct {
	Name string
	// Color is like #0969da. Description is one line of at most 100 characters.
	Color, Description string
}

// A Remark is a comment of somebody else than the user of the token on a pull request, or an approving review.
type Remark struct {
	ID     int64
	Number int64 // of the pull request
	Body   string
	At     time.Time
	// Author is the user name of who wrote it, and AuthorID the ID.
	Author   string
	AuthorID int64
}

// A NewIssue has the fields of an issue to open.
type NewIssue struct {
	Title, Body string
	Labels      []string
}
