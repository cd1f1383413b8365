package forge

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"
	"github.com/google/go-github/v88/github"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// missing returns the labels that are not among some names. As on GitHub, case does not matter.
func missing(labels []Label, names []string) []Label {
	return slices.DeleteFunc(slices.Clone(labels), func(l Label) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, l.Name) })
	})
}

// createEach creates labels, one of which may have been created meanwhile.
func createEach(labels []Label, create func(l Label) error) error {
	for _, l := range labels {
		if err := create(l); err != nil && statusOf(err) != http.StatusConflict && !answered(err, http.StatusUnprocessableEntity, "already_exists") {
			return fmt.Errorf("create label %s: %w", l.Name, err)
		}
	}
	return nil
}

func (g *giteaClient) EnsureLabels(ctx context.Context, labels []Label) error {
	c := g.api(ctx)
	all, err := g.labels(c)
	if err != nil {
		return err
	}
	return createEach(missing(labels, giteaLabels(all)), func(l Label) error {
		_, _, err := c.CreateLabel(g.owner, g.name, gitea.CreateLabelOption{Name: l.Name, Color: l.Color, Description: l.Description})
		return err
	})
}

func (g *githubClient) EnsureLabels(ctx context.Context, labels []Label) error {
	all, err := pages("list labels", func(page int) ([]*github.Label, bool, error) {
		list, resp, err := g.api.Issues.ListLabels(ctx, g.owner, g.name, &github.ListOptions{Page: page, PerPage: pageSize})
		return list, err == nil && resp.NextPage != 0, err
	})
	if err != nil {
		return err
	}
	return createEach(missing(labels, sortedNames(all, (*github.Label).GetName)), func(l Label) error {
		_, _, err := g.api.Issues.CreateLabel(ctx, g.owner, g.name, &github.Label{Name: &l.Name, Color: new(strings.TrimPrefix(l.Color, "#")), Description: &l.Description})
		return err
	})
}

func (g *gitlabClient) EnsureLabels(ctx context.Context, labels []Label) error {
	all, err := pages("list labels", func(page int) ([]*gitlab.Label, bool, error) {
		list, resp, err := g.api.Labels.ListLabels(g.project, &gitlab.ListLabelsOptions{ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize}}, gitlab.WithContext(ctx))
		return list, err == nil && resp.NextPage != 0, err
	})
	if err != nil {
		return err
	}
	return createEach(missing(labels, sortedNames(all, func(l *gitlab.Label) string { return l.Name })), func(l Label) error {
		_, _, err := g.api.Labels.CreateLabel(g.project, &gitlab.CreateLabelOptions{Name: &l.Name, Color: &l.Color, Description: &l.Description}, gitlab.WithContext(ctx))
		return err
	})
}
