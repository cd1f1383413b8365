package forge

import (
	"context"
	"fmt"
	"slices"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func (g *gitlabClient) ListIssues(ctx context.Context, label string, state State) ([]Issue, error) {
	own, labels := "created_by_me", gitlab.LabelOptions{label}
	option := gitlab.ListProjectIssuesOptions{Scope: &own, Labels: &labels}
	switch state {
	case Open:
		opened := "opened"
		option.State = &opened
	case Closed:
		closed := "closed"
		option.State = &closed
	}
	return listIssues(label, func(page int) ([]Issue, bool, error) {
		option.ListOptions = gitlab.ListOptions{Page: int64(page), PerPage: issuesPageSize}
		list, resp, err := g.api.Issues.ListProjectIssues(g.project, &option, gitlab.WithContext(ctx))
		if err != nil {
			return nil, false, g.issuesError(ctx, err)
		}
		var out []Issue
		for _, i := range list {
			out = append(out, fromGitLabIssue(i))
		}
		return out, resp.NextPage != 0, nil
	})
}

// issuesError returns ErrIssuesDisabled if the project has no issues.
func (g *gitlabClient) issuesError(ctx context.Context, err error) error {
	return issuesError(err, func() (bool, error) {
		p, _, err := g.api.Projects.GetProject(g.project, nil, gitlab.WithContext(ctx))
		if err != nil {
			return false, err
		}
		return p.IssuesAccessLevel != gitlab.DisabledAccessControl, nil
	})
}

func fromGitLabIssue(i *gitlab.Issue) Issue {
	out := Issue{Number: i.IID, URL: i.WebURL, Title: i.Title, Body: i.Description, Labels: slices.Sorted(slices.Values(i.Labels)), State: Open}
	if i.State == "closed" {
		out.State = Closed
		if i.ClosedAt != nil {
			out.Ended = *i.ClosedAt
		}
	}
	return out
}

func (g *gitlabClient) Issue(ctx context.Context, number int64) (*Issue, error) {
	i, _, err := g.api.Issues.GetIssue(g.project, number, gitlab.WithContext(ctx))
	if err != nil {
		if err = g.issuesError(ctx, err); isGone(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read issue %d: %w", number, err)
	}
	found := fromGitLabIssue(i)
	return &found, nil
}

func (g *gitlabClient) OpenIssue(ctx context.Context, i NewIssue) (Issue, error) {
	labels := gitlab.LabelOptions(i.Labels) // GitLab creates missing labels
	opened, _, err := g.api.Issues.CreateIssue(g.project, &gitlab.CreateIssueOptions{Title: &i.Title, Description: &i.Body, Labels: &labels}, gitlab.WithContext(ctx))
	if err != nil {
		return Issue{}, fmt.Errorf("open an issue: %w", g.issuesError(ctx, err))
	}
	return fromGitLabIssue(opened), nil
}

func (g *gitlabClient) EditIssue(ctx context.Context, number int64, body string) error {
	return g.editIssue(ctx, number, &gitlab.UpdateIssueOptions{Description: &body})
}

func (g *gitlabClient) CloseIssue(ctx context.Context, number int64, comment, body string) error {
	if _, _, err := g.api.Notes.CreateIssueNote(g.project, number, &gitlab.CreateIssueNoteOptions{Body: &comment}, gitlab.WithContext(ctx)); err != nil {
		return fmt.Errorf("comment on issue %d: %w", number, err)
	}
	event := "close"
	return g.editIssue(ctx, number, &gitlab.UpdateIssueOptions{Description: &body, StateEvent: &event})
}

func (g *gitlabClient) editIssue(ctx context.Context, number int64, change *gitlab.UpdateIssueOptions) error {
	if _, _, err := g.api.Issues.UpdateIssue(g.project, number, change, gitlab.WithContext(ctx)); err != nil {
		return fmt.Errorf("edit issue %d: %w", number, err)
	}
	return nil
}
