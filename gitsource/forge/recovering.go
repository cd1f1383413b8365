package forge

import (
	"context"
	"errors"
	"time"
)

// A recovering client returns an error where one for a forge panics. The libraries and the clients follow pointers that an answer of
// the documented form sets, and a forge, or a proxy in front of it, may answer anything, such as null in a list.
type recovering struct{ client Client }

// errNotUnderstood is the error of a forge whose answer has not the form of its API. The panic is not quoted, since it may have text of
// the answer.
var errNotUnderstood = errors.New("the answer of the forge has not the form of its API: something that it must have is missing")

func recovered(err *error) {
	if recover() != nil {
		*err = errNotUnderstood
	}
}

// ListOpen implements Client.
func (c recovering) ListOpen(ctx context.Context, base string) (result []PullRequest, err error) {
	defer recovered(&err)
	return c.client.ListOpen(ctx, base)
}

// FindPullRequest implements Client.
func (c recovering) FindPullRequest(ctx context.Context, base, branch string) (result *PullRequest, err error) {
	defer recovered(&err)
	return c.client.FindPullRequest(ctx, base, branch)
}

// PullRequest implements Client.
func (c recovering) PullRequest(ctx context.Context, number int64) (result PullRequest, err error) {
	defer recovered(&err)
	return c.client.PullRequest(ctx, number)
}

// OpenPullRequest implements Client.
func (c recovering) OpenPullRequest(ctx context.Context, p NewPullRequest) (result PullRequest, err error) {
	defer recovered(&err)
	return c.client.OpenPullRequest(ctx, p)
}

// Edit implements Client.
func (c recovering) Edit(ctx context.Context, t Thread, e Edit) (err error) {
	defer recovered(&err)
	return c.client.Edit(ctx, t, e)
}

// RequestReviewers implements Client.
func (c recovering) RequestReviewers(ctx context.Context, number int64, names []string) (result []string, err error) {
	defer recovered(&err)
	return c.client.RequestReviewers(ctx, number, names)
}

// EnsureLabels implements Client.
func (c recovering) EnsureLabels(ctx context.Context, labels []Label) (err error) {
	defer recovered(&err)
	return c.client.EnsureLabels(ctx, labels)
}

// Close implements Client.
func (c recovering) Close(ctx context.Context, t Thread, comment, body string) (err error) {
	defer recovered(&err)
	return c.client.Close(ctx, t, comment, body)
}

// FindComment implements Client.
func (c recovering) FindComment(ctx context.Context, number int64, marker string) (result *Comment, err error) {
	defer recovered(&err)
	return c.client.FindComment(ctx, number, marker)
}

// AddComment implements Client.
func (c recovering) AddComment(ctx context.Context, number int64, body string) (result Comment, err error) {
	defer recovered(&err)
	return c.client.AddComment(ctx, number, body)
}

// EditComment implements Client.
func (c recovering) EditComment(ctx context.Context, number, id int64, body string) (err error) {
	defer recovered(&err)
	return c.client.EditComment(ctx, number, id, body)
}

// ListRemarks implements Client.
func (c recovering) ListRemarks(ctx context.Context, since time.Time) (result []Remark, err error) {
	defer recovered(&err)
	return c.client.ListRemarks(ctx, since)
}

// MayWrite implements Client.
func (c recovering) MayWrite(ctx context.Context, r Remark) (result bool, err error) {
	defer recovered(&err)
	return c.client.MayWrite(ctx, r)
}

// MergedPullRequest implements Client.
func (c recovering) MergedPullRequest(ctx context.Context, base, commit string) (result *PullRequest, err error) {
	defer recovered(&err)
	return c.client.MergedPullRequest(ctx, base, commit)
}

// Approvals implements Client.
func (c recovering) Approvals(ctx context.Context, pr PullRequest) (result []Remark, err error) {
	defer recovered(&err)
	return c.client.Approvals(ctx, pr)
}

// FindLineComments implements Client.
func (c recovering) FindLineComments(ctx context.Context, number int64, marker string) (result []string, err error) {
	defer recovered(&err)
	return c.client.FindLineComments(ctx, number, marker)
}

// CommentOnLines implements Client.
func (c recovering) CommentOnLines(ctx context.Context, number int64, head, text string, comments []LineComment) (err error) {
	defer recovered(&err)
	return c.client.CommentOnLines(ctx, number, head, text, comments)
}

// ListIssues implements Client.
func (c recovering) ListIssues(ctx context.Context, label string, state State) (result []Thread, err error) {
	defer recovered(&err)
	return c.client.ListIssues(ctx, label, state)
}

// Issue implements Client.
func (c recovering) Issue(ctx context.Context, number int64) (result *Thread, err error) {
	defer recovered(&err)
	return c.client.Issue(ctx, number)
}

// OpenIssue implements Client.
func (c recovering) OpenIssue(ctx context.Context, i NewIssue) (result Thread, err error) {
	defer recovered(&err)
	return c.client.OpenIssue(ctx, i)
}

// SetStatus implements Client.
func (c recovering) SetStatus(ctx context.Context, s Status) (err error) {
	defer recovered(&err)
	return c.client.SetStatus(ctx, s)
}

// FindStatus implements Client.
func (c recovering) FindStatus(ctx context.Context, commit, name string) (result *Status, err error) {
	defer recovered(&err)
	return c.client.FindStatus(ctx, commit, name)
}

// Access implements Client.
func (c recovering) Access(ctx context.Context) (result Access, err error) {
	defer recovered(&err)
	return c.client.Access(ctx)
}

// LineURL implements Client.
func (c recovering) LineURL(commit, path string, line int) string {
	return c.client.LineURL(commit, path, line)
}
