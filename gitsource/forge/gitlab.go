package forge

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
	"golang.org/x/time/rate"
)

// gitlabClient is a project on gitlab.com or a GitLab server. Its pull requests are merge
// requests.
type gitlabClient struct {
	page    string // the address of the project in a browser
	project string
	api     *gitlab.Client
	user    tokenUser
}

func newGitLab(cfg Config) (*gitlabClient, error) {
	client, err := newHTTPClient(cfg, "Bearer")
	if err != nil {
		return nil, err
	}
	api, err := gitlab.NewAuthSourceClient(noAuth{}, gitlab.WithHTTPClient(client), gitlab.WithBaseURL(cfg.URL), gitlab.WithUserAgent(userAgent),
		gitlab.WithoutRetries(), gitlab.WithCustomLimiter(rate.NewLimiter(rate.Inf, 0))) // the callers retry
	return &gitlabClient{page: cfg.repositoryURL(), project: cfg.Repository, api: api, user: tokenUser{token: cfg.Token}}, err
}

// noAuth sends no credentials: the transport adds the token. The library requires an
// authentication method.
type noAuth struct{}

func (noAuth) Init(context.Context, *gitlab.Client) error { return nil }
func (noAuth) Header(context.Context) (key, value string, err error) {
	return "Accept", "application/json", nil
}

func (g *gitlabClient) ListOpen(ctx context.Context, base string) ([]PullRequest, error) {
	return listPullRequests(func(page, size int) ([]PullRequest, bool, error) {
		opened := "opened"
		list, resp, err := g.api.MergeRequests.ListProjectMergeRequests(g.project, &gitlab.ListProjectMergeRequestsOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: int64(size)}, State: &opened, TargetBranch: &base,
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, false, err
		}
		var out []PullRequest
		for _, mr := range list {
			out = append(out, fromGitLab(mr))
		}
		return out, resp.NextPage != 0, nil
	})
}

func (g *gitlabClient) FindPullRequest(ctx context.Context, base, branch string) (*PullRequest, error) {
	list, _, err := g.api.MergeRequests.ListProjectMergeRequests(g.project, &gitlab.ListProjectMergeRequestsOptions{
		ListOptions: gitlab.ListOptions{PerPage: pageSize}, SourceBranch: &branch, TargetBranch: &base,
	}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("find the merge request of %s: %w", branch, err)
	}
	return newest(list, branch, fromGitLab), nil
}

func (g *gitlabClient) PullRequest(ctx context.Context, number int64) (PullRequest, error) {
	mr, _, err := g.api.MergeRequests.GetMergeRequest(g.project, number, nil, gitlab.WithContext(ctx))
	if err != nil {
		return PullRequest{}, fmt.Errorf("read merge request %d: %w", number, err)
	}
	return fromGitLab(&mr.BasicMergeRequest), nil
}

func fromGitLab(mr *gitlab.BasicMergeRequest) PullRequest {
	out := PullRequest{
		Number: mr.IID, URL: mr.WebURL, Title: mr.Title, Body: mr.Description, Draft: mr.Draft, Labels: slices.Sorted(slices.Values(mr.Labels)),
		Base: mr.TargetBranch, Branch: mr.SourceBranch, Fork: mr.SourceProjectID != mr.TargetProjectID, Head: mr.SHA, HeadRef: fmt.Sprintf("refs/merge-requests/%d/head", mr.IID), State: Open,
	}
	if mr.Author != nil {
		out.Author = mr.Author.Username
	}
	var ended *time.Time
	switch mr.State {
	case "merged":
		out.State, ended = Merged, mr.MergedAt
		out.MergeCommit = mr.MergeCommitSHA
		if out.MergeCommit == "" { // it was fast-forwarded, possibly after squashing
			out.MergeCommit = mr.SquashCommitSHA
		}
		if out.MergeCommit == "" {
			out.MergeCommit = mr.SHA
		}
	case "closed":
		out.State, ended = Closed, mr.ClosedAt
	}
	if ended != nil {
		out.Ended = *ended
	}
	return out
}

func (g *gitlabClient) OpenPullRequest(ctx context.Context, p Proposal) (PullRequest, error) {
	options := &gitlab.CreateMergeRequestOptions{Title: &p.Title, Description: &p.Body, SourceBranch: &p.Branch, TargetBranch: &p.Base}
	if len(p.Labels) > 0 {
		labels := gitlab.LabelOptions(p.Labels)
		options.Labels = &labels
	}
	mr, _, err := g.api.MergeRequests.CreateMergeRequest(g.project, options, gitlab.WithContext(ctx))
	if err != nil {
		return PullRequest{}, fmt.Errorf("open a merge request of %s: %w", p.Branch, err)
	}
	return fromGitLab(&mr.BasicMergeRequest), nil
}

func (g *gitlabClient) EditPullRequest(ctx context.Context, number int64, body string) error {
	return g.edit(ctx, number, &gitlab.UpdateMergeRequestOptions{Description: &body})
}

func (g *gitlabClient) ClosePullRequest(ctx context.Context, number int64, comment, body string) error {
	if _, err := g.AddComment(ctx, number, comment); err != nil {
		return err
	}
	event := "close"
	return g.edit(ctx, number, &gitlab.UpdateMergeRequestOptions{Description: &body, StateEvent: &event})
}

func (g *gitlabClient) SetLabels(ctx context.Context, number int64, add, remove []string) error {
	options := &gitlab.UpdateMergeRequestOptions{}
	if len(add) > 0 { // GitLab creates missing labels
		labels := gitlab.LabelOptions(add)
		options.AddLabels = &labels
	}
	if len(remove) > 0 {
		labels := gitlab.LabelOptions(remove)
		options.RemoveLabels = &labels
	}
	if len(add)+len(remove) == 0 {
		return nil
	}
	return g.edit(ctx, number, options)
}

func (g *gitlabClient) edit(ctx context.Context, number int64, change *gitlab.UpdateMergeRequestOptions) error {
	if _, _, err := g.api.MergeRequests.UpdateMergeRequest(g.project, number, change, gitlab.WithContext(ctx)); err != nil {
		return fmt.Errorf("edit merge request %d: %w", number, err)
	}
	return nil
}

func (g *gitlabClient) FindComment(ctx context.Context, number int64, marker string) (*Comment, error) {
	notes, err := g.ownNotes(ctx, number, marker)
	if err != nil || len(notes) == 0 {
		return nil, err
	}
	return &Comment{notes[0].ID, notes[0].Body}, nil
}

// ownNotes returns the comments on a merge request that have a marker in them and were written by
// the user of the token, the oldest first.
func (g *gitlabClient) ownNotes(ctx context.Context, number int64, marker string) ([]*gitlab.Note, error) {
	oldest := "asc"
	notes, err := pages(fmt.Sprintf("list the comments on merge request %d", number), func(page int) ([]*gitlab.Note, bool, error) {
		list, resp, err := g.api.Notes.ListMergeRequestNotes(g.project, number, &gitlab.ListMergeRequestNotesOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize}, Sort: &oldest,
		}, gitlab.WithContext(ctx))
		return list, err == nil && resp.NextPage != 0, err
	})
	if err != nil {
		return nil, err
	}
	var own []*gitlab.Note
	for _, n := range notes {
		if n.System || !strings.Contains(n.Body, marker) {
			continue
		}
		self, err := g.user.id(func() (int64, error) {
			user, _, err := g.api.Users.CurrentUser(gitlab.WithContext(ctx))
			if err != nil {
				return 0, err
			}
			return user.ID, nil
		})
		if err != nil {
			return nil, err
		}
		if n.Author.ID == self {
			own = append(own, n)
		}
	}
	return own, nil
}

func (g *gitlabClient) AddComment(ctx context.Context, number int64, body string) (Comment, error) {
	n, _, err := g.api.Notes.CreateMergeRequestNote(g.project, number, &gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	if err != nil {
		return Comment{}, fmt.Errorf("comment on merge request %d: %w", number, err)
	}
	return Comment{n.ID, n.Body}, nil
}

func (g *gitlabClient) EditComment(ctx context.Context, number, id int64, body string) error {
	if _, _, err := g.api.Notes.UpdateMergeRequestNote(g.project, number, id, &gitlab.UpdateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx)); err != nil {
		return fmt.Errorf("edit a comment on merge request %d: %w", number, err)
	}
	return nil
}

// gitlabStates maps the states of commit statuses to those of GitLab.
var gitlabStates = map[StatusState]gitlab.BuildStateValue{
	StatusPending: gitlab.Pending, StatusSuccess: gitlab.Success, StatusFailure: gitlab.Failed, StatusErrored: gitlab.Failed,
}

func (g *gitlabClient) SetStatus(ctx context.Context, s Status) error {
	description := shorten(s.Description, 255)
	state := gitlabStates[s.State]
	options := &gitlab.SetCommitStatusOptions{State: state, Context: &s.Context, Description: &description}
	if s.URL != "" {
		options.TargetURL = &s.URL
	}
	_, _, err := g.api.Commits.SetCommitStatus(g.project, s.Commit, options, gitlab.WithContext(ctx))
	// GitLab refuses to set the state that a status already has; the description then stays as
	// it is.
	if err != nil && !answered(err, http.StatusBadRequest, "from :"+string(state)+" ") {
		return fmt.Errorf("set status %s of commit %.8s: %w", s.Context, s.Commit, err)
	}
	return nil
}

func (g *gitlabClient) FindStatus(ctx context.Context, commit, name string) (*Status, error) {
	list, _, err := g.api.Commits.GetCommitStatuses(g.project, commit, &gitlab.GetCommitStatusesOptions{Name: &name}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read the statuses of commit %.8s: %w", commit, err)
	}
	for _, s := range list {
		if s.Name != name {
			continue
		}
		found := &Status{Commit: commit, Context: name, State: StatusErrored, Description: s.Description}
		for state, value := range gitlabStates {
			if state != StatusErrored && string(value) == s.Status {
				found.State = state
			}
		}
		return found, nil
	}
	return nil, nil
}

func (g *gitlabClient) LineURL(commit, path string, line int) string {
	return lineURL(g.page, "-/blob/"+commit, path, line)
}
