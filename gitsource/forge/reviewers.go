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

// OwnersFiles are the places of a CODEOWNERS file, the first of which counts. It is empty for Gitea, which has rules of its
// own, and requests the reviews itself.
func (t Type) OwnersFiles() []string {
	switch t {
	case GitHub:
		return []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"}
	case GitLab:
		return []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"}
	}
	return nil
}

// requestEach requests a review of each name, and returns those that the forge refuses, such as users that it does not know.
func requestEach(number int64, names []string, request func(name, team string) error) (refused []string, err error) {
	for _, name := range names {
		_, team, _ := strings.Cut(name, "/")
		err := request(name, team)
		switch {
		case slices.Contains([]int{http.StatusNotFound, http.StatusUnprocessableEntity}, statusOf(err)):
			refused = append(refused, name)
		case err != nil:
			return refused, fmt.Errorf("request a review of pull request %d by %s: %w", number, name, err)
		}
	}
	return refused, nil
}

func (g *giteaClient) RequestReviewers(ctx context.Context, number int64, names []string) ([]string, error) {
	return requestEach(number, names, func(name, team string) error {
		option := gitea.PullReviewRequestOptions{Reviewers: []string{name}}
		if team != "" {
			option = gitea.PullReviewRequestOptions{TeamReviewers: []string{team}}
		}
		_, err := g.api(ctx).CreateReviewRequests(g.owner, g.name, number, option)
		return err
	})
}

func (g *githubClient) RequestReviewers(ctx context.Context, number int64, names []string) ([]string, error) {
	return requestEach(number, names, func(name, team string) error {
		request := github.ReviewersRequest{Reviewers: []string{name}}
		if team != "" {
			request = github.ReviewersRequest{TeamReviewers: []string{team}}
		}
		_, _, err := g.api.PullRequests.RequestReviewers(ctx, g.owner, g.name, int(number), request)
		return err
	})
}

// RequestReviewers implements Client. On GitLab only users can be reviewers.
func (g *gitlabClient) RequestReviewers(ctx context.Context, number int64, names []string) (refused []string, err error) {
	var ids []int64
	for _, name := range names {
		users, _, err := g.api.Users.ListUsers(&gitlab.ListUsersOptions{Username: &name}, gitlab.WithContext(ctx))
		if err != nil {
			return refused, fmt.Errorf("find user %s: %w", name, err)
		}
		if len(users) == 1 {
			ids = append(ids, users[0].ID)
		} else {
			refused = append(refused, name)
		}
	}
	if len(ids) == 0 {
		return refused, nil
	}
	mr, _, err := g.api.MergeRequests.GetMergeRequest(g.project, number, nil, gitlab.WithContext(ctx))
	if err != nil {
		return refused, fmt.Errorf("read merge request %d: %w", number, err)
	}
	for _, r := range mr.Reviewers { // those that others have chosen: an edit sets all of them
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return refused, g.edit(ctx, Thread{Number: number}, &gitlab.UpdateMergeRequestOptions{ReviewerIDs: &ids})
}
