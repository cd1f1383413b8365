package forge

import (
	"context"
	"fmt"

	"code.gitea.io/sdk/gitea"
)

func (g *giteaClient) ListIssues(ctx context.Context, label string, state State) ([]Issue, error) {
	c, err := g.api(ctx)
	if err != nil {
		return nil, err
	}
	option := gitea.ListIssueOption{Type: gitea.IssueTypeIssue, State: gitea.StateAll, Labels: []string{label}}
	if state != "" {
		option.State = gitea.StateType(state)
	}
	return listIssues(label, func(page int) ([]Issue, bool, error) {
		option.ListOptions = gitea.ListOptions{Page: page, PageSize: issuesPageSize}
		list, resp, err := c.ListRepoIssues(g.owner, g.name, option)
		if err != nil {
			return nil, false, g.issuesError(c, err)
		}
		var own []Issue
		for _, i := range list {
			self, err := g.self(c)
			if err != nil {
				return nil, false, err
			}
			if i.Poster != nil && i.Poster.ID == self {
				own = append(own, fromGiteaIssue(i))
			}
		}
		return own, resp.NextPage != 0, nil
	})
}

// issuesError returns ErrIssuesDisabled if the repository has no issues.
func (g *giteaClient) issuesError(c *gitea.Client, err error) error {
	return issuesError(err, func() (bool, error) { return g.hasIssues(c) })
}

func (g *giteaClient) hasIssues(c *gitea.Client) (bool, error) {
	r, _, err := c.GetRepo(g.owner, g.name)
	if err != nil {
		return false, fmt.Errorf("read the repository: %w", err)
	}
	return r.HasIssues, nil
}

func fromGiteaIssue(i *gitea.Issue) Issue {
	out := Issue{Number: i.Index, URL: i.HTMLURL, Title: i.Title, Body: i.Body, Labels: giteaLabels(i.Labels), State: Open}
	if i.State == gitea.StateClosed {
		out.State = Closed
		if i.Closed != nil {
			out.Ended = *i.Closed
		}
	}
	return out
}

func (g *giteaClient) Issue(ctx context.Context, number int64) (*Issue, error) {
	c, err := g.api(ctx)
	if err != nil {
		return nil, err
	}
	i, _, err := c.GetIssue(g.owner, g.name, number)
	if err != nil {
		if err = g.issuesError(c, err); isGone(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read issue %d: %w", number, err)
	}
	found := fromGiteaIssue(i)
	return &found, nil
}

func (g *giteaClient) OpenIssue(ctx context.Context, i NewIssue) (Issue, error) {
	c, err := g.api(ctx)
	if err != nil {
		return Issue{}, err
	}
	// Gitea opens an issue even if issues are disabled, but without its labels.
	switch enabled, err := g.hasIssues(c); {
	case err != nil:
		return Issue{}, err
	case !enabled:
		return Issue{}, ErrIssuesDisabled
	}
	labels, err := g.labelIDs(c, i.Labels)
	if err != nil {
		return Issue{}, err
	}
	opened, _, err := c.CreateIssue(g.owner, g.name, gitea.CreateIssueOption{Title: i.Title, Body: i.Body, Labels: labels})
	if err != nil {
		return Issue{}, fmt.Errorf("open an issue: %w", err)
	}
	return fromGiteaIssue(opened), nil
}

func (g *giteaClient) EditIssue(ctx context.Context, number int64, body string) error {
	return g.editIssue(ctx, number, gitea.EditIssueOption{Body: &body})
}

func (g *giteaClient) CloseIssue(ctx context.Context, number int64, comment, body string) error {
	if _, err := g.AddComment(ctx, number, comment); err != nil {
		return err
	}
	closed := gitea.StateClosed
	return g.editIssue(ctx, number, gitea.EditIssueOption{Body: &body, State: &closed})
}

func (g *giteaClient) editIssue(ctx context.Context, number int64, change gitea.EditIssueOption) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	if _, _, err := c.EditIssue(g.owner, g.name, number, change); err != nil {
		return fmt.Errorf("edit issue %d: %w", number, err)
	}
	return nil
}
