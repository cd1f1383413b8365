package forge

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/go-github/v88/github"
)

func (g *githubClient) ListIssues(ctx context.Context, label string, state State) ([]Issue, error) {
	option := github.IssueListByRepoOptions{State: "all", Labels: []string{label}}
	if state != "" {
		option.State = string(state)
	}
	return listIssues(label, func(page int) ([]Issue, bool, error) {
		option.ListOptions = github.ListOptions{Page: page, PerPage: issuesPageSize}
		list, resp, err := g.api.Issues.ListByRepo(ctx, g.owner, g.name, &option)
		if err != nil {
			return nil, false, g.issuesError(ctx, err)
		}
		var own []Issue
		for _, i := range list {
			if i.IsPullRequest() {
				continue
			}
			self, err := g.self(ctx)
			if err != nil {
				return nil, false, err
			}
			if i.GetUser().GetID() == self {
				own = append(own, fromGitHubIssue(i))
			}
		}
		return own, resp.NextPage != 0, nil
	})
}

// issuesError returns ErrIssuesDisabled if the repository has no issues.
func (g *githubClient) issuesError(ctx context.Context, err error) error {
	return issuesError(err, func() (bool, error) {
		r, _, err := g.api.Repositories.Get(ctx, g.owner, g.name)
		return r.GetHasIssues(), err
	})
}

func fromGitHubIssue(i *github.Issue) Issue {
	out := Issue{Number: int64(i.GetNumber()), URL: i.GetHTMLURL(), Title: i.GetTitle(), Body: i.GetBody(), Labels: githubLabels(i.Labels), State: Open}
	if i.GetState() == "closed" {
		out.State, out.Ended = Closed, i.GetClosedAt().Time
	}
	return out
}

func (g *githubClient) Issue(ctx context.Context, number int64) (*Issue, error) {
	i, _, err := g.api.Issues.Get(ctx, g.owner, g.name, int(number))
	if err != nil {
		// For an issue that was moved to another repository the response is a redirect.
		if err = g.issuesError(ctx, err); isGone(err) || statusOf(err) == http.StatusMovedPermanently {
			return nil, nil
		}
		return nil, fmt.Errorf("read issue %d: %w", number, err)
	}
	found := fromGitHubIssue(i)
	return &found, nil
}

func (g *githubClient) OpenIssue(ctx context.Context, i NewIssue) (Issue, error) {
	if err := g.createLabels(ctx, i.Labels); err != nil {
		return Issue{}, err
	}
	labels := missing(i.Labels, nil)
	opened, _, err := g.api.Issues.Create(ctx, g.owner, g.name, &github.IssueRequest{Title: &i.Title, Body: &i.Body, Labels: &labels})
	if err != nil {
		return Issue{}, fmt.Errorf("open an issue: %w", g.issuesError(ctx, err))
	}
	return fromGitHubIssue(opened), nil
}

func (g *githubClient) EditIssue(ctx context.Context, number int64, body string) error {
	return g.editIssue(ctx, number, &github.IssueRequest{Body: &body})
}

func (g *githubClient) CloseIssue(ctx context.Context, number int64, comment, body string) error {
	if _, err := g.AddComment(ctx, number, comment); err != nil {
		return err
	}
	closed := "closed"
	return g.editIssue(ctx, number, &github.IssueRequest{Body: &body, State: &closed})
}

func (g *githubClient) editIssue(ctx context.Context, number int64, change *github.IssueRequest) error {
	if _, _, err := g.api.Issues.Edit(ctx, g.owner, g.name, int(number), change); err != nil {
		return fmt.Errorf("edit issue %d: %w", number, err)
	}
	return nil
}
