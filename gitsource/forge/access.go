package forge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

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
}

func (g *githubClient) Access(ctx context.Context) (Access, error) {
	user, resp, err := g.api.Users.Get(ctx, "")
	if err != nil {
		return Access{}, fmt.Errorf("ask whose the token is: %w", err)
	}
	repo, _, err := g.api.Repositories.Get(ctx, g.owner, g.name)
	if err != nil {
		return Access{}, fmt.Errorf("read repository %s/%s: %w", g.owner, g.name, err)
	}
	a := Access{User: user.GetLogin(), ReadOnly: !repo.GetPermissions().GetPush(), Archived: repo.GetArchived(), NoIssues: !repo.GetHasIssues()}
	// Only a classic token has scopes. One of the others has permissions, which are not told.
	if scopes := strings.FieldsFunc(resp.Header.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' }); len(scopes) > 0 &&
		!slices.Contains(scopes, "repo") && (repo.GetPrivate() || !slices.Contains(scopes, "public_repo")) {
		a.MissingScope = "repo"
	}
	return a, nil
}

func (g *giteaClient) Access(ctx context.Context) (Access, error) {
	c, err := g.api(ctx)
	if err != nil {
		return Access{}, err
	}
	user, _, err := c.GetMyUserInfo()
	if err != nil {
		return Access{}, fmt.Errorf("ask whose the token is: %w", err)
	}
	repo, _, err := c.GetRepo(g.owner, g.name)
	if err != nil {
		return Access{}, fmt.Errorf("read repository %s/%s: %w", g.owner, g.name, err)
	}
	return Access{
		User: user.UserName, ReadOnly: repo.Permissions != nil && !repo.Permissions.Push,
		Archived: repo.Archived, NoPullRequests: !repo.HasPullRequests, NoIssues: !repo.HasIssues,
	}, nil
}

func (g *gitlabClient) Access(ctx context.Context) (Access, error) {
	user, _, err := g.api.Users.CurrentUser(gitlab.WithContext(ctx))
	if err != nil {
		return Access{}, fmt.Errorf("ask whose the token is: %w", err)
	}
	project, _, err := g.api.Projects.GetProject(g.project, nil, gitlab.WithContext(ctx))
	if err != nil {
		return Access{}, fmt.Errorf("read project %s: %w", g.project, err)
	}
	a := Access{
		User: user.Username, Archived: project.Archived,
		NoPullRequests: project.MergeRequestsAccessLevel == gitlab.DisabledAccessControl, NoIssues: project.IssuesAccessLevel == gitlab.DisabledAccessControl,
	}
	if p := project.Permissions; p != nil && (p.ProjectAccess != nil || p.GroupAccess != nil) { // an administrator may have neither
		a.ReadOnly = (p.ProjectAccess == nil || p.ProjectAccess.AccessLevel < gitlab.DeveloperPermissions) && (p.GroupAccess == nil || p.GroupAccess.AccessLevel < gitlab.DeveloperPermissions)
	}
	token, _, err := g.api.PersonalAccessTokens.GetSinglePersonalAccessToken(gitlab.WithContext(ctx))
	switch {
	case err != nil && statusOf(err)/100 != 4:
		return Access{}, fmt.Errorf("read the scopes of the token: %w", err)
	case err == nil && !slices.Contains(token.Scopes, "api"): // tokens of other kinds have no scopes to read
		a.MissingScope = "api"
	}
	return a, nil
}
