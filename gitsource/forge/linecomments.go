package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"
	"github.com/google/go-github/v88/github"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// mostReviews is the maximum number of own reviews of a pull request on Gitea that are looked at
// for comments. Each is requested separately.
const mostReviews = 100

func (g *githubClient) FindLineComments(ctx context.Context, number int64, marker string) ([]string, error) {
	list, err := pages(fmt.Sprintf("list the comments on lines of pull request %d", number), func(page int) ([]*github.PullRequestComment, bool, error) {
		list, resp, err := g.api.PullRequests.ListComments(ctx, g.owner, g.name, int(number), &github.PullRequestListCommentsOptions{
			ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
		})
		return list, err == nil && resp.NextPage != 0, err
	})
	if err != nil {
		return nil, err
	}
	var found []string
	for _, c := range list {
		if own, err := g.isOwn(ctx, c.GetUser(), c.GetBody(), marker); err != nil {
			return nil, err
		} else if own {
			found = append(found, c.GetBody())
		}
	}
	return found, nil
}

func (g *githubClient) CommentOnLines(ctx context.Context, number int64, head, text string, comments []LineComment) error {
	event, side := "COMMENT", "RIGHT"
	review := &github.PullRequestReviewRequest{CommitID: &head, Body: &text, Event: &event}
	for _, c := range comments {
		review.Comments = append(review.Comments, &github.DraftReviewComment{Path: &c.Path, Line: &c.Line, Side: &side, Body: &c.Body})
	}
	if _, _, err := g.api.PullRequests.CreateReview(ctx, g.owner, g.name, int(number), review); err != nil {
		return fmt.Errorf("comment on lines of pull request %d: %w", number, err)
	}
	return nil
}

func (g *giteaClient) FindLineComments(ctx context.Context, number int64, marker string) ([]string, error) {
	c, err := g.api(ctx)
	if err != nil {
		return nil, err
	}
	what, seen := fmt.Sprintf("list the reviews of pull request %d", number), 0
	reviews, err := pages(what, func(page int) ([]*gitea.PullReview, bool, error) {
		list, resp, err := c.ListPullReviews(g.owner, g.name, number, gitea.ListPullReviewsOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize}})
		if err != nil {
			return nil, false, err
		}
		seen += len(list)
		total, _ := strconv.Atoi(resp.Header.Get("X-Total-Count")) // this list has no links to its pages
		return list, len(list) > 0 && seen < total, nil
	})
	if err != nil {
		return nil, err
	}
	reviews = slices.DeleteFunc(reviews, func(r *gitea.PullReview) bool { return r.Reviewer == nil || r.CodeCommentsCount == 0 })
	if len(reviews) == 0 {
		return nil, nil
	}
	self, err := g.self(c)
	if err != nil {
		return nil, err
	}
	reviews = slices.DeleteFunc(reviews, func(r *gitea.PullReview) bool { return r.Reviewer.ID != self })
	if len(reviews) > mostReviews {
		return nil, fmt.Errorf("%s: there are %d reviews with comments on lines, at most %d are read", what, len(reviews), mostReviews)
	}
	var found []string
	for _, r := range reviews {
		list, _, err := c.ListPullReviewComments(g.owner, g.name, number, r.ID)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		for _, comment := range list {
			if strings.Contains(comment.Body, marker) {
				found = append(found, comment.Body)
			}
		}
	}
	return found, nil
}

func (g *giteaClient) CommentOnLines(ctx context.Context, number int64, head, text string, comments []LineComment) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	review := gitea.CreatePullReviewOptions{State: gitea.ReviewStateComment, Body: text, CommitID: head}
	for _, line := range comments {
		review.Comments = append(review.Comments, gitea.CreatePullReviewComment{Path: line.Path, Body: line.Body, NewLineNum: int64(line.Line)})
	}
	if _, _, err := c.CreatePullReview(g.owner, g.name, number, review); err != nil {
		return fmt.Errorf("comment on lines of pull request %d: %w", number, err)
	}
	return nil
}

func (g *gitlabClient) FindLineComments(ctx context.Context, number int64, marker string) ([]string, error) {
	notes, err := g.ownNotes(ctx, number, marker)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, n := range notes {
		if n.Position != nil {
			found = append(found, n.Body)
		}
	}
	return found, nil
}

// CommentOnLines implements Client. GitLab has no reviews: each comment is a thread of its own, and
// the text is not written.
func (g *gitlabClient) CommentOnLines(ctx context.Context, number int64, head, _ string, comments []LineComment) error {
	mr, _, err := g.api.MergeRequests.GetMergeRequest(g.project, number, nil, gitlab.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("read merge request %d: %w", number, err)
	}
	refs, kind := mr.DiffRefs, "text"
	if refs.HeadSha != head {
		return fmt.Errorf("comment on lines of merge request %d: its changes are those of commit %.8q, not %.8s: %w", number, refs.HeadSha, head, ErrNotReady)
	}
	var refused []error
	for _, c := range comments {
		line := int64(c.Line)
		_, _, err := g.api.Discussions.CreateMergeRequestDiscussion(g.project, number, &gitlab.CreateMergeRequestDiscussionOptions{
			Body: &c.Body,
			Position: &gitlab.PositionOptions{
				BaseSHA: &refs.BaseSha, StartSHA: &refs.StartSha, HeadSHA: &refs.HeadSha,
				PositionType: &kind, OldPath: &c.Path, NewPath: &c.Path, NewLine: &line,
			},
		}, gitlab.WithContext(ctx))
		if err == nil {
			continue
		}
		err = fmt.Errorf("comment on %s:%d of merge request %d: %w", c.Path, c.Line, number, err)
		if IsGeneral(err) {
			return err
		}
		refused = append(refused, err)
	}
	return errors.Join(refused...)
}
