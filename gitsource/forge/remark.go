package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
	"github.com/google/go-github/v88/github"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// maxRemarkPages is the maximum number of pages of recent comments that are read at once.
const maxRemarkPages = 10

// listRemarks reads recent comments page by page, and returns those of others since a time, the oldest first. The newest
// come first if newestFirst is set: then what is older ends the list.
func listRemarks(since time.Time, self int64, newestFirst bool, read func(page int) (entries []Remark, next bool, err error)) ([]Remark, error) {
	var out []Remark
	for page, next := 1, true; next && page <= maxRemarkPages; page++ {
		entries, more, err := read(page)
		if err != nil {
			return nil, fmt.Errorf("list comments: %w", err)
		}
		for _, r := range entries {
			switch {
			case r.At.Before(since):
				more = more && !newestFirst
			case r.Number > 0 && r.AuthorID != self:
				out = append(out, r)
			}
		}
		next = more
	}
	slices.SortFunc(out, func(a, b Remark) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// pullRequestIn returns the number at the end of the address of a pull request; zero if it is that of something else, such
// as an issue.
func pullRequestIn(address, kind string) int64 {
	address, _, _ = strings.Cut(address, "#")
	if path.Base(path.Dir(address)) != kind {
		return 0
	}
	number, _ := strconv.ParseInt(path.Base(address), 10, 64)
	return number
}

func (g *giteaClient) ListRemarks(ctx context.Context, since time.Time) ([]Remark, error) {
	c := g.api(ctx)
	self, err := g.self(c)
	if err != nil {
		return nil, err
	}
	return listRemarks(since, self, false, func(page int) ([]Remark, bool, error) {
		list, _, err := c.ListRepoIssueComments(g.owner, g.name, gitea.ListIssueCommentOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize}, Since: since})
		if err != nil {
			return nil, false, err
		}
		var out []Remark
		for _, n := range list {
			if n.Poster != nil {
				out = append(out, Remark{n.ID, pullRequestIn(n.PRURL, "pulls"), n.Body, n.Created, n.Poster.UserName, n.Poster.ID})
			}
		}
		return out, len(list) == pageSize, nil
	})
}

// ErrPermissionsHidden is the error of MayWrite if the token may not ask what others may do in the repository.
var ErrPermissionsHidden = errors.New("the token may not ask what others may do in the repository")

// mayWriteError is the error of a request for the permissions of a user; nil if the forge does not know that user.
func mayWriteError(err error, user string) error {
	switch status := statusOf(err); {
	case status == http.StatusNotFound:
		return nil
	case status == http.StatusForbidden && !IsGeneral(err):
		err = fmt.Errorf("%w: %w", ErrPermissionsHidden, err)
	}
	return fmt.Errorf("ask what %s may do in the repository: %w", user, err)
}

// MayWrite implements Client. Only administrators of the repository may ask for the permissions of others.
func (g *giteaClient) MayWrite(ctx context.Context, r Remark) (bool, error) {
	level, _, err := g.api(ctx).CollaboratorPermission(g.owner, g.name, r.Author)
	if err != nil {
		return false, mayWriteError(err, r.Author)
	}
	return level != nil && slices.Contains([]gitea.AccessMode{gitea.AccessModeWrite, gitea.AccessModeAdmin, gitea.AccessModeOwner}, level.Permission), nil
}

func (g *githubClient) ListRemarks(ctx context.Context, since time.Time) ([]Remark, error) {
	self, err := g.self(ctx)
	if err != nil {
		return nil, err
	}
	// The forge compares since with the last edit of a comment. The newest come first, so that no edits of old ones are in
	// front of them.
	return listRemarks(since, self, true, func(page int) ([]Remark, bool, error) {
		list, resp, err := g.api.Issues.ListComments(ctx, g.owner, g.name, 0, &github.IssueListCommentsOptions{ // of all
			Since: &since, Sort: new("created"), Direction: new("desc"), ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
		})
		if err != nil {
			return nil, false, err
		}
		var out []Remark
		for _, n := range list {
			out = append(out, Remark{n.GetID(), pullRequestIn(n.GetHTMLURL(), "pull"), n.GetBody(), n.GetCreatedAt().Time, n.GetUser().GetLogin(), n.GetUser().GetID()})
		}
		return out, resp.NextPage != 0, nil
	})
}

func (g *githubClient) MayWrite(ctx context.Context, r Remark) (bool, error) {
	level, _, err := g.api.Repositories.GetPermissionLevel(ctx, g.owner, g.name, r.Author)
	if err != nil {
		return false, mayWriteError(err, r.Author)
	}
	return level.GetPermission() == "admin" || level.GetPermission() == "write", nil // also for the roles maintain and custom ones
}

func (g *gitlabClient) ListRemarks(ctx context.Context, since time.Time) ([]Remark, error) {
	self, err := g.self(ctx)
	if err != nil {
		return nil, err
	}
	after := gitlab.ISOTime(since.UTC().AddDate(0, 0, -1)) // the day before: of that day there are none
	return listRemarks(since, self, true, func(page int) ([]Remark, bool, error) {
		list, resp, err := g.api.Events.ListProjectVisibleEvents(g.project, &gitlab.ListProjectVisibleEventsOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize}, Action: new(gitlab.CommentedEventType), After: &after, Sort: new("desc"),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, false, err
		}
		var out []Remark
		for _, e := range list {
			n := e.Note
			if n.NoteableType == "MergeRequest" && n.CreatedAt != nil && !n.System {
				out = append(out, Remark{n.ID, n.NoteableIID, n.Body, *n.CreatedAt, n.Author.Username, n.Author.ID})
			}
		}
		return out, resp.NextPage != 0, nil
	})
}

func (g *gitlabClient) MayWrite(ctx context.Context, r Remark) (bool, error) {
	member, _, err := g.api.ProjectMembers.GetInheritedProjectMember(g.project, r.AuthorID, gitlab.WithContext(ctx))
	if err != nil {
		return false, mayWriteError(err, r.Author)
	}
	return member.AccessLevel >= gitlab.DeveloperPermissions && member.State != "blocked", nil
}
