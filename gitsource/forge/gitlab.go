package forge

import (
	"context"
	"errors"
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
		list, resp, err := g.api.MergeRequests.ListProjectMergeRequests(g.project, &gitlab.ListProjectMergeRequestsOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: int64(size)}, State: new("opened"), TargetBranch: &base,
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
		Thread: Thread{Number: mr.IID, URL: mr.WebURL, Title: mr.Title, Body: mr.Description, Labels: slices.Sorted(slices.Values(mr.Labels)), State: Open},
		Base:   mr.TargetBranch, Branch: mr.SourceBranch, Fork: mr.SourceProjectID != mr.TargetProjectID, Head: mr.SHA, HeadRef: fmt.Sprintf("refs/merge-requests/%d/head", mr.IID),
	}
	if mr.CreatedAt != nil {
		out.Opened = *mr.CreatedAt
	}
	if mr.Author != nil {
		out.Author, out.AuthorID = mr.Author.Username, mr.Author.ID
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

func (g *gitlabClient) OpenPullRequest(ctx context.Context, p NewPullRequest) (PullRequest, error) {
	options := &gitlab.CreateMergeRequestOptions{Title: &p.Title, Description: &p.Body, SourceBranch: &p.Branch, TargetBranch: &p.Base, Labels: gitlabLabels(p.Labels)}
	mr, _, err := g.api.MergeRequests.CreateMergeRequest(g.project, options, gitlab.WithContext(ctx))
	if err != nil {
		return PullRequest{}, fmt.Errorf("open a merge request of %s: %w", p.Branch, err)
	}
	return fromGitLab(&mr.BasicMergeRequest), nil
}

func (g *gitlabClient) Edit(ctx context.Context, t Thread, e Edit) error {
	return g.edit(ctx, t, &gitlab.UpdateMergeRequestOptions{
		Title: e.titled(), Description: e.text(), AddLabels: gitlabLabels(e.AddLabels), RemoveLabels: gitlabLabels(e.RemoveLabels),
	})
}

// gitlabLabels returns labels for a request; nil if there are none. GitLab creates missing ones.
func gitlabLabels(names []string) *gitlab.LabelOptions {
	if len(names) == 0 {
		return nil
	}
	return new(gitlab.LabelOptions(names))
}

func (g *gitlabClient) Close(ctx context.Context, t Thread, comment, body string) error {
	var err error
	if t.Kind == KindIssue {
		_, _, err = g.api.Notes.CreateIssueNote(g.project, t.Number, &gitlab.CreateIssueNoteOptions{Body: &comment}, gitlab.WithContext(ctx))
		err = wrapf(err, "comment on issue %d", t.Number)
	} else {
		_, err = g.AddComment(ctx, t.Number, comment)
	}
	if err != nil {
		return err
	}
	return g.edit(ctx, t, &gitlab.UpdateMergeRequestOptions{Description: &body, StateEvent: new("close")})
}

func (g *gitlabClient) edit(ctx context.Context, t Thread, change *gitlab.UpdateMergeRequestOptions) error {
	if t.Kind == KindIssue {
		_, _, err := g.api.Issues.UpdateIssue(g.project, t.Number, &gitlab.UpdateIssueOptions{
			Title: change.Title, Description: change.Description, StateEvent: change.StateEvent, AddLabels: change.AddLabels, RemoveLabels: change.RemoveLabels,
		}, gitlab.WithContext(ctx))
		return wrapf(err, "edit issue %d", t.Number)
	}
	_, _, err := g.api.MergeRequests.UpdateMergeRequest(g.project, t.Number, change, gitlab.WithContext(ctx))
	return wrapf(err, "edit merge request %d", t.Number)
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
	return pages(fmt.Sprintf("list the comments on merge request %d", number), func(page int) ([]*gitlab.Note, bool, error) {
		list, resp, err := g.api.Notes.ListMergeRequestNotes(g.project, number, &gitlab.ListMergeRequestNotesOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize}, Sort: new("asc"),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, false, err
		}
		own, err := ownOf(list, func(n *gitlab.Note) (bool, error) {
			if n.System || !strings.Contains(n.Body, marker) {
				return false, nil
			}
			self, err := g.self(ctx)
			return err == nil && n.Author.ID == self, err
		})
		return own, resp.NextPage != 0, err
	})
}

// self returns the ID of the user of the token.
func (g *gitlabClient) self(ctx context.Context) (int64, error) {
	return g.user.id(func() (int64, error) {
		user, _, err := g.api.Users.CurrentUser(gitlab.WithContext(ctx))
		if err != nil {
			return 0, err
		}
		return user.ID, nil
	})
}

func (g *gitlabClient) AddComment(ctx context.Context, number int64, body string) (Comment, error) {
	n, _, err := g.api.Notes.CreateMergeRequestNote(g.project, number, &gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	if err != nil {
		return Comment{}, fmt.Errorf("comment on merge request %d: %w", number, err)
	}
	return Comment{n.ID, n.Body}, nil
}

func (g *gitlabClient) EditComment(ctx context.Context, number, id int64, body string) error {
	_, _, err := g.api.Notes.UpdateMergeRequestNote(g.project, number, id, &gitlab.UpdateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	return wrapf(err, "edit a comment on merge request %d", number)
}

// gitlabStates maps the states of commit statuses to those of GitLab.
var gitlabStates = map[StatusState]gitlab.BuildStateValue{
	StatusPending: gitlab.Pending, StatusSuccess: gitlab.Success, StatusFailure: gitlab.Failed, StatusErrored: gitlab.Failed,
}

func (g *gitlabClient) SetStatus(ctx context.Context, s Status) error {
	state := gitlabStates[s.State]
	options := &gitlab.SetCommitStatusOptions{State: state, Context: &s.Context, Description: new(Shorten(s.Description, 255))}
	if s.URL != "" {
		options.TargetURL = &s.URL
	}
	_, _, err := g.api.Commits.SetCommitStatus(g.project, s.Commit, options, gitlab.WithContext(ctx))
	// GitLab refuses to set the state that a status already has; the description then stays as
	// it is.
	if answered(err, http.StatusBadRequest, "from :"+string(state)+" ") {
		return nil
	}
	return wrapf(err, "set status %s of commit %.8s", s.Context, s.Commit)
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
	refs := mr.DiffRefs
	if refs.HeadSha != head {
		return fmt.Errorf("comment on lines of merge request %d: its changes are those of commit %.8q, not %.8s: %w", number, refs.HeadSha, head, ErrNotReady)
	}
	var refused []error
	for _, c := range comments {
		_, _, err := g.api.Discussions.CreateMergeRequestDiscussion(g.project, number, &gitlab.CreateMergeRequestDiscussionOptions{
			Body: &c.Body,
			Position: &gitlab.PositionOptions{
				BaseSHA: &refs.BaseSha, StartSHA: &refs.StartSha, HeadSHA: &refs.HeadSha,
				PositionType: new("text"), OldPath: &c.Path, NewPath: &c.Path, NewLine: new(int64(c.Line)),
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

func (g *gitlabClient) ListIssues(ctx context.Context, label string, state State) ([]Thread, error) {
	option := gitlab.ListProjectIssuesOptions{Scope: new("created_by_me"), Labels: &gitlab.LabelOptions{label}}
	switch state {
	case Open:
		option.State = new("opened")
	case Closed:
		option.State = new("closed")
	}
	return listIssues(label, func(page int) ([]Thread, bool, error) {
		option.ListOptions = gitlab.ListOptions{Page: int64(page), PerPage: issuesPageSize}
		list, resp, err := g.api.Issues.ListProjectIssues(g.project, &option, gitlab.WithContext(ctx))
		if err != nil {
			return nil, false, g.issuesError(ctx, err)
		}
		var out []Thread
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

func fromGitLabIssue(i *gitlab.Issue) Thread {
	out := Thread{Kind: KindIssue, Number: i.IID, URL: i.WebURL, Title: i.Title, Body: i.Description, Labels: slices.Sorted(slices.Values(i.Labels)), State: Open}
	if i.CreatedAt != nil {
		out.Opened = *i.CreatedAt
	}
	if i.State == "closed" {
		out.State = Closed
		if i.ClosedAt != nil {
			out.Ended = *i.ClosedAt
		}
	}
	return out
}

func (g *gitlabClient) Issue(ctx context.Context, number int64) (*Thread, error) {
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

func (g *gitlabClient) OpenIssue(ctx context.Context, i NewIssue) (Thread, error) {
	options := &gitlab.CreateIssueOptions{Title: &i.Title, Description: &i.Body, Labels: new(gitlab.LabelOptions(i.Labels))} // GitLab creates missing labels
	opened, _, err := g.api.Issues.CreateIssue(g.project, options, gitlab.WithContext(ctx))
	if err != nil {
		return Thread{}, fmt.Errorf("open an issue: %w", g.issuesError(ctx, err))
	}
	return fromGitLabIssue(opened), nil
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
