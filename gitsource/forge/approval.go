package forge

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"code.gitea.io/sdk/gitea"
	"github.com/google/go-github/v88/github"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// A verdict is what the last review of a user says about a pull request.
type verdict struct {
	user     Remark // only who wrote it, and when
	approves bool
}

// lastVerdicts returns the last verdict of each user, in the order in which they were given.
func lastVerdicts(all []verdict) []verdict {
	slices.SortStableFunc(all, func(a, b verdict) int { return a.user.At.Compare(b.user.At) })
	var out []verdict
	for _, v := range all {
		out = append(slices.DeleteFunc(out, func(earlier verdict) bool { return earlier.user.AuthorID == v.user.AuthorID }), v)
	}
	return out
}

// approvals returns who approves, without the author of the pull request and users who may not.
func approvals(pr PullRequest, all []verdict, may func(Remark) (bool, error)) (out []Remark, err error) {
	for _, v := range lastVerdicts(all) {
		if !v.approves || v.user.AuthorID == pr.AuthorID {
			continue
		}
		switch may, err := may(v.user); {
		case err != nil:
			return nil, err
		case may:
			v.user.Number = pr.Number
			out = append(out, v.user)
		}
	}
	return out, nil
}

func (g *giteaClient) MergedPullRequest(ctx context.Context, base, commit string) (*PullRequest, error) {
	pr, _, err := g.api(ctx).GetCommitPullRequest(g.owner, g.name, commit)
	switch {
	case statusOf(err) == http.StatusNotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the pull request that has made commit %.8s: %w", commit, err)
	}
	return mergedInto(base, commit, []PullRequest{fromGitea(pr)}), nil
}

// mergedInto returns the pull request whose merge into a branch has made a commit; nil if none has.
func mergedInto(base, commit string, list []PullRequest) *PullRequest {
	for _, pr := range list {
		if pr.State == Merged && pr.Base == base && pr.MergeCommit == commit {
			return &pr
		}
	}
	return nil
}

// Approvals implements Client. That a review is official means that its author may write to the repository, or is among those
// whose approvals count for the protected branch. After a merge the forge gives the newest commit of the branch as the head, which
// somebody may have pushed since.
func (g *giteaClient) Approvals(ctx context.Context, pr PullRequest) ([]Remark, error) {
	c := g.api(ctx)
	official := map[int64]bool{}
	list, err := countedPages(fmt.Sprintf("list the reviews of pull request %d", pr.Number), func(page gitea.ListOptions) ([]verdict, *gitea.Response, error) {
		list, resp, err := c.ListPullReviews(g.owner, g.name, pr.Number, gitea.ListPullReviewsOptions{ListOptions: page})
		var out []verdict
		for _, r := range list {
			v := verdict{approves: r.State == gitea.ReviewStateApproved && !r.Dismissed && !r.Stale && r.CommitID == pr.Head && (pr.State != Merged || !r.Submitted.After(pr.Ended))}
			if r.Reviewer != nil {
				v.user = Remark{ID: r.ID, At: r.Submitted, Author: r.Reviewer.UserName, AuthorID: r.Reviewer.ID}
			}
			if v.user.AuthorID != 0 && (r.State == gitea.ReviewStateApproved || r.State == gitea.ReviewStateRequestChanges) {
				out = append(out, v)
				official[r.ID] = r.Official
			} else {
				out = append(out, verdict{}) // the pages are counted
			}
		}
		return out, resp, err
	})
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(v verdict) bool { return v.user.AuthorID == 0 })
	return approvals(pr, list, func(user Remark) (bool, error) { return official[user.ID], nil })
}

func (g *githubClient) MergedPullRequest(ctx context.Context, base, commit string) (*PullRequest, error) {
	list, _, err := g.api.PullRequests.ListPullRequestsWithCommit(ctx, g.owner, g.name, commit, &github.ListOptions{PerPage: pageSize})
	switch status := statusOf(err); {
	case status == http.StatusNotFound || status == http.StatusUnprocessableEntity: // the forge does not have the commit
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the pull request that has made commit %.8s: %w", commit, err)
	}
	var out []PullRequest
	for _, pr := range list {
		out = append(out, fromGitHub(pr))
	}
	return mergedInto(base, commit, out), nil
}

// Approvals implements Client. A dismissed review has a state of its own.
func (g *githubClient) Approvals(ctx context.Context, pr PullRequest) ([]Remark, error) {
	list, err := pages(fmt.Sprintf("list the reviews of pull request %d", pr.Number), func(page int) ([]verdict, bool, error) {
		list, resp, err := g.api.PullRequests.ListReviews(ctx, g.owner, g.name, int(pr.Number), &github.ListOptions{Page: page, PerPage: pageSize})
		if err != nil {
			return nil, false, err
		}
		var out []verdict
		for _, r := range list {
			if state := r.GetState(); state == "APPROVED" || state == "CHANGES_REQUESTED" || state == "DISMISSED" {
				user := Remark{ID: r.GetID(), At: r.GetSubmittedAt().Time, Author: r.GetUser().GetLogin(), AuthorID: r.GetUser().GetID()}
				out = append(out, verdict{user, state == "APPROVED" && r.GetCommitID() == pr.Head})
			}
		}
		return out, resp.NextPage != 0, nil
	})
	if err != nil {
		return nil, err
	}
	return approvals(pr, list, func(user Remark) (bool, error) { return g.MayWrite(ctx, user) })
}

func (g *gitlabClient) MergedPullRequest(ctx context.Context, base, commit string) (*PullRequest, error) {
	list, _, err := g.api.Commits.ListMergeRequestsByCommit(g.project, commit, gitlab.WithContext(ctx))
	switch {
	case statusOf(err) == http.StatusNotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the merge request that has made commit %.8s: %w", commit, err)
	}
	var out []PullRequest
	for _, mr := range list {
		out = append(out, fromGitLab(mr))
	}
	return mergedInto(base, commit, out), nil
}

// What GitLab itself writes to a merge request when a user approves it, or takes that back.
const (
	gitlabApproved   = "approved this merge request"
	gitlabUnapproved = "unapproved this merge request"
)

// Approvals implements Client. An approval has no commit: it counts if it was given after the head was pushed.
func (g *gitlabClient) Approvals(ctx context.Context, pr PullRequest) ([]Remark, error) {
	pushed, err := g.pushedAt(ctx, pr)
	if err != nil || pushed.IsZero() {
		return nil, err
	}
	state, _, err := g.api.MergeRequestApprovals.GetConfiguration(g.project, pr.Number, gitlab.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read the approvals of merge request %d: %w", pr.Number, err)
	}
	list, err := pages(fmt.Sprintf("list the notes of merge request %d", pr.Number), func(page int) ([]verdict, bool, error) {
		notes, resp, err := g.api.Notes.ListMergeRequestNotes(g.project, pr.Number, &gitlab.ListMergeRequestNotesOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize}, Sort: new("asc"),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, false, err
		}
		var out []verdict
		for _, n := range notes {
			if n.System && n.CreatedAt != nil && (n.Body == gitlabApproved || n.Body == gitlabUnapproved) {
				user := Remark{ID: n.ID, At: *n.CreatedAt, Author: n.Author.Username, AuthorID: n.Author.ID}
				out = append(out, verdict{user, n.Body == gitlabApproved && n.CreatedAt.After(pushed)})
			}
		}
		return out, resp.NextPage != 0, nil
	})
	if err != nil {
		return nil, err
	}
	return approvals(pr, list, func(user Remark) (bool, error) {
		if !slices.ContainsFunc(state.ApprovedBy, func(a *gitlab.MergeRequestApproverUser) bool { return a.User != nil && a.User.ID == user.AuthorID }) {
			return false, nil // it was taken back, or removed by a push
		}
		return g.MayWrite(ctx, user)
	})
}

// pushedAt returns when the head of a merge request was pushed last; zero if that is not known.
func (g *gitlabClient) pushedAt(ctx context.Context, pr PullRequest) (at time.Time, err error) {
	versions, _, err := g.api.MergeRequests.GetMergeRequestDiffVersions(g.project, pr.Number, &gitlab.GetMergeRequestDiffVersionsOptions{
		ListOptions: gitlab.ListOptions{PerPage: pageSize},
	}, gitlab.WithContext(ctx))
	if err != nil {
		return at, fmt.Errorf("list the versions of merge request %d: %w", pr.Number, err)
	}
	for _, v := range versions {
		if v.HeadCommitSHA == pr.Head && v.CreatedAt != nil && v.CreatedAt.After(at) {
			at = *v.CreatedAt
		}
	}
	return at, nil
}
