// Package fakeforge has a forge in memory. The tests of package forge hold it to the contract of forge.Client, as they do
// the real ones.
package fakeforge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// URL is the address of the repository.
const URL = "https://git.example.com"

// User and UserID are the user of the token.
const (
	User   = "fleet"
	UserID = 1
)

// A Forge has the pull requests, issues and statuses of one repository. It may be changed between two requests, for what
// others do there, and is not safe for concurrent use.
type Forge struct {
	Pulls  []*forge.PullRequest
	Issues []*forge.Thread // opened by the user of the token, the oldest first
	// Heads are the commits of branches from which pull requests are opened.
	Heads map[string]string
	// Comments are those of the user of the token on pull requests, by their number, and Remarks those of others.
	Comments map[int64][]forge.Comment
	Remarks  []forge.Remark
	// Lines are the comments on lines of pull requests, by their number.
	Lines map[int64][]forge.LineComment
	// Statuses are all that were set, the oldest first.
	Statuses []forge.Status
	// Labels are the labels of the repository, in the order in which they were created.
	Labels []forge.Label
	// Members are the users besides the one of the token who may write, and Readers those who may only read.
	Members, Readers []string
	// Reviewers are those whose reviews were requested, by pull request.
	Reviewers map[int64][]string
	// NoIssues disables the issues of the repository.
	NoIssues bool
	Now      time.Time
}

// New returns a forge with some pull requests.
func New(pulls ...forge.PullRequest) *Forge {
	f := &Forge{
		Heads: map[string]string{}, Comments: map[int64][]forge.Comment{}, Lines: map[int64][]forge.LineComment{}, Reviewers: map[int64][]string{},
		Now: time.Unix(1_800_000_000, 0),
	}
	f.SetPulls(pulls...)
	return f
}

// SetPulls replaces all pull requests.
func (f *Forge) SetPulls(pulls ...forge.PullRequest) {
	f.Pulls = nil
	for _, pr := range pulls {
		f.Add(pr)
	}
}

// Add adds a pull request.
func (f *Forge) Add(pr forge.PullRequest) { f.Pulls = append(f.Pulls, &pr) }

// End closes or merges a pull request.
func (f *Forge) End(number int64, s forge.State) {
	if pr := f.pull(number); pr != nil {
		pr.State, pr.Ended = s, f.Now
		if s == forge.Merged {
			pr.MergeCommit = "merge of " + pr.Head
		}
	}
}

// EndIssue closes an issue.
func (f *Forge) EndIssue(number int64) {
	if i := f.issue(number); i != nil {
		i.State, i.Ended = forge.Closed, f.Now
	}
}

func (f *Forge) pull(number int64) *forge.PullRequest {
	return find(f.Pulls, func(pr *forge.PullRequest) bool { return pr.Number == number })
}

func (f *Forge) issue(number int64) *forge.Thread {
	return find(f.Issues, func(i *forge.Thread) bool { return i.Number == number })
}

// find returns the first element that fits; nil if there is none.
func find[T any](all []*T, fits func(*T) bool) *T {
	if i := slices.IndexFunc(all, fits); i >= 0 {
		return all[i]
	}
	return nil
}

// thread returns a pull request or an issue; nil if there is none.
func (f *Forge) thread(of forge.Thread) *forge.Thread {
	if of.Kind == forge.KindIssue {
		return f.issue(of.Number)
	}
	if pr := f.pull(of.Number); pr != nil {
		return &pr.Thread
	}
	return nil
}

func missing(what string, number int64) error {
	return &forge.StatusError{Status: 404, Message: fmt.Sprintf("there is no %s %d", what, number)}
}

// ListOpen implements forge.Client.
func (f *Forge) ListOpen(_ context.Context, base string) (open []forge.PullRequest, _ error) {
	for _, pr := range f.Pulls {
		if pr.State == forge.Open && pr.Base == base {
			open = append(open, *pr)
		}
	}
	slices.SortStableFunc(open, func(a, b forge.PullRequest) int { return cmp.Compare(a.Number, b.Number) })
	return open, nil
}

// FindPullRequest implements forge.Client.
func (f *Forge) FindPullRequest(_ context.Context, base, branch string) (*forge.PullRequest, error) {
	pr := find(f.Pulls, func(pr *forge.PullRequest) bool { return pr.Branch == branch && pr.Base == base && !pr.Fork })
	if pr == nil {
		return nil, nil
	}
	found := *pr
	return &found, nil
}

// PullRequest implements forge.Client.
func (f *Forge) PullRequest(_ context.Context, number int64) (forge.PullRequest, error) {
	if pr := f.pull(number); pr != nil {
		return *pr, nil
	}
	return forge.PullRequest{}, missing("pull request", number)
}

// OpenPullRequest implements forge.Client.
func (f *Forge) OpenPullRequest(_ context.Context, p forge.NewPullRequest) (forge.PullRequest, error) {
	for _, pr := range f.Pulls {
		if pr.Branch == p.Branch && pr.Base == p.Base && pr.State == forge.Open {
			return forge.PullRequest{}, &forge.StatusError{Status: 409, Message: "pull request already exists"}
		}
	}
	number := int64(1)
	for _, pr := range f.Pulls {
		number = max(number, pr.Number+1)
	}
	pr := forge.PullRequest{
		Thread: forge.Thread{Number: number, URL: fmt.Sprint(URL, "/pulls/", number), Title: p.Title, Body: p.Body, Labels: sorted(p.Labels), State: forge.Open, Opened: f.Now},
		Author: User, AuthorID: UserID, Base: p.Base, Branch: p.Branch, Head: f.Heads[p.Branch], HeadRef: HeadRef(number),
	}
	f.Add(pr)
	return pr, nil
}

// HeadRef returns the reference to the head of a pull request.
func HeadRef(number int64) string { return fmt.Sprintf("refs/pull/%d/head", number) }

func sorted(labels []string) []string {
	labels = slices.Clone(labels)
	slices.Sort(labels)
	return slices.Compact(labels)
}

// Edit implements forge.Client.
func (f *Forge) Edit(_ context.Context, of forge.Thread, e forge.Edit) error {
	t := f.thread(of)
	if t == nil {
		return missing("thread", of.Number)
	}
	labels := slices.DeleteFunc(slices.Clone(t.Labels), func(l string) bool { return slices.Contains(e.RemoveLabels, l) })
	t.Title, t.Body, t.Labels = cmp.Or(e.Title, t.Title), cmp.Or(e.Body, t.Body), sorted(append(labels, e.AddLabels...))
	return nil
}

// Close implements forge.Client.
func (f *Forge) Close(ctx context.Context, of forge.Thread, comment, body string) error {
	t := f.thread(of)
	if t == nil {
		return missing("thread", of.Number)
	}
	if t.Body = body; of.Kind == forge.KindIssue {
		f.EndIssue(of.Number)
		return nil
	}
	f.End(of.Number, forge.Closed)
	_, err := f.AddComment(ctx, of.Number, comment)
	return err
}

// RequestReviewers implements forge.Client.
func (f *Forge) RequestReviewers(_ context.Context, number int64, names []string) (refused []string, _ error) {
	for _, name := range names {
		if slices.Contains(f.Members, name) || slices.Contains(f.Readers, name) {
			f.Reviewers[number] = append(f.Reviewers[number], name)
		} else {
			refused = append(refused, name)
		}
	}
	return refused, nil
}

// EnsureLabels implements forge.Client.
func (f *Forge) EnsureLabels(_ context.Context, labels []forge.Label) error {
	for _, l := range labels {
		if !slices.ContainsFunc(f.Labels, func(known forge.Label) bool { return known.Name == l.Name }) {
			f.Labels = append(f.Labels, l)
		}
	}
	return nil
}

// FindComment implements forge.Client.
func (f *Forge) FindComment(_ context.Context, number int64, marker string) (*forge.Comment, error) {
	for _, c := range f.Comments[number] {
		if strings.Contains(c.Body, marker) {
			return &c, nil
		}
	}
	return nil, nil
}

// AddComment implements forge.Client.
func (f *Forge) AddComment(_ context.Context, number int64, body string) (forge.Comment, error) {
	c := forge.Comment{ID: int64(len(f.Comments[number]) + 1), Body: body}
	f.Comments[number] = append(f.Comments[number], c)
	return c, nil
}

// EditComment implements forge.Client.
func (f *Forge) EditComment(_ context.Context, number, id int64, body string) error {
	for i, c := range f.Comments[number] {
		if c.ID == id {
			f.Comments[number][i].Body = body
			return nil
		}
	}
	return missing("comment", id)
}

// ListRemarks implements forge.Client.
func (f *Forge) ListRemarks(_ context.Context, since time.Time) ([]forge.Remark, error) {
	return slices.DeleteFunc(slices.Clone(f.Remarks), func(r forge.Remark) bool { return r.At.Before(since) }), nil
}

// MayWrite implements forge.Client.
func (f *Forge) MayWrite(_ context.Context, r forge.Remark) (bool, error) {
	return r.Author == User || slices.Contains(f.Members, r.Author), nil
}

// MergedPullRequest implements forge.Client.
func (f *Forge) MergedPullRequest(_ context.Context, base, commit string) (*forge.PullRequest, error) {
	pr := find(f.Pulls, func(pr *forge.PullRequest) bool { return pr.Base == base && pr.MergeCommit == commit && commit != "" })
	if pr == nil {
		return nil, nil
	}
	found := *pr
	return &found, nil
}

// Approvals implements forge.Client. Nobody approves anything.
func (f *Forge) Approvals(context.Context, forge.PullRequest) ([]forge.Remark, error) {
	return nil, nil
}

// FindLineComments implements forge.Client.
func (f *Forge) FindLineComments(_ context.Context, number int64, marker string) (found []string, _ error) {
	for _, c := range f.Lines[number] {
		if strings.Contains(c.Body, marker) {
			found = append(found, c.Body)
		}
	}
	return found, nil
}

// CommentOnLines implements forge.Client.
func (f *Forge) CommentOnLines(_ context.Context, number int64, head, _ string, comments []forge.LineComment) error {
	if pr := f.pull(number); pr == nil || pr.Head != head {
		return errors.Join(forge.ErrNotReady, missing("pull request", number))
	}
	f.Lines[number] = append(f.Lines[number], comments...)
	return nil
}

// ListIssues implements forge.Client.
func (f *Forge) ListIssues(_ context.Context, label string, state forge.State) (list []forge.Thread, _ error) {
	if f.NoIssues {
		return nil, forge.ErrIssuesDisabled
	}
	for _, i := range slices.Backward(f.Issues) {
		if (state == "" || i.State == state) && slices.Contains(i.Labels, label) {
			list = append(list, *i)
		}
	}
	return list, nil
}

// Issue implements forge.Client.
func (f *Forge) Issue(_ context.Context, number int64) (*forge.Thread, error) {
	i := f.issue(number)
	if i == nil {
		return nil, nil
	}
	found := *i
	return &found, nil
}

// OpenIssue implements forge.Client.
func (f *Forge) OpenIssue(_ context.Context, n forge.NewIssue) (forge.Thread, error) {
	if f.NoIssues {
		return forge.Thread{}, forge.ErrIssuesDisabled
	}
	i := forge.Thread{Kind: forge.KindIssue, Number: int64(len(f.Issues) + 1), Title: n.Title, Body: n.Body, Labels: sorted(n.Labels), State: forge.Open, Opened: f.Now}
	i.URL = fmt.Sprint(URL, "/issues/", i.Number)
	f.Issues = append(f.Issues, &i)
	return i, nil
}

// SetStatus implements forge.Client.
func (f *Forge) SetStatus(_ context.Context, s forge.Status) error {
	f.Statuses = append(f.Statuses, s)
	return nil
}

// FindStatus implements forge.Client.
func (f *Forge) FindStatus(_ context.Context, commit, name string) (*forge.Status, error) {
	for _, s := range slices.Backward(f.Statuses) {
		if s.Commit == commit && s.Context == name {
			return &s, nil
		}
	}
	return nil, nil
}

// Access implements forge.Client.
func (f *Forge) Access(context.Context) (forge.Access, error) {
	return forge.Access{User: User, NoIssues: f.NoIssues}, nil
}

// LineURL implements forge.Client.
func (f *Forge) LineURL(commit, path string, line int) string {
	at := fmt.Sprintf("%s/%s/%s", URL, commit, (&url.URL{Path: path}).EscapedPath())
	if line > 0 {
		at += fmt.Sprintf("#L%d", line)
	}
	return at
}
