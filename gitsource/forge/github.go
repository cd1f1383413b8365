package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v88/github"
)

// githubClient is a repository on github.com or a GitHub Enterprise server.
type githubClient struct {
	page        string // the address of the repository in a browser
	owner, name string
	api         *github.Client
	user        tokenUser
}

func newGitHub(cfg Config) (*githubClient, error) {
	client, err := newHTTPClient(cfg, "Bearer")
	if err != nil {
		return nil, err
	}
	base := githubAPI(cfg.URL)
	g := &githubClient{page: cfg.repositoryURL(), user: tokenUser{token: cfg.Token}}
	g.owner, g.name, _ = strings.Cut(cfg.Repository, "/")
	// The library would remember rate limits and fail requests itself; the callers handle them.
	g.api, err = github.NewClient(github.WithHTTPClient(client), github.WithURLs(&base, nil), github.WithUserAgent(userAgent), github.WithDisableRateLimitCheck())
	return g, err
}

// githubAPI returns the address of the API of a GitHub server, with a slash at the end.
func githubAPI(address string) string {
	address = strings.TrimSuffix(address, "/")
	u, err := url.Parse(address)
	if err == nil && (u.Hostname() == "github.com" || strings.HasSuffix(u.Hostname(), ".ghe.com")) {
		return u.Scheme + "://api." + u.Host + "/"
	}
	return address + "/api/v3/"
}

func (g *githubClient) ListOpen(ctx context.Context, base string) ([]PullRequest, error) {
	return listPullRequests(func(page, size int) ([]PullRequest, bool, error) {
		list, resp, err := g.api.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
			State: "open", Base: base, ListOptions: github.ListOptions{Page: page, PerPage: size},
		})
		if err != nil {
			return nil, false, err
		}
		var out []PullRequest
		for _, pr := range list {
			out = append(out, fromGitHub(pr))
		}
		return out, resp.NextPage != 0, nil
	})
}

func (g *githubClient) FindPullRequest(ctx context.Context, base, branch string) (*PullRequest, error) {
	list, _, err := g.api.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
		State: "all", Base: base, Head: g.owner + ":" + branch, ListOptions: github.ListOptions{PerPage: pageSize},
	})
	if err != nil {
		return nil, fmt.Errorf("find the pull request of %s: %w", branch, err)
	}
	return newest(list, branch, fromGitHub), nil
}

func (g *githubClient) PullRequest(ctx context.Context, number int64) (PullRequest, error) {
	pr, _, err := g.api.PullRequests.Get(ctx, g.owner, g.name, int(number))
	if err != nil {
		return PullRequest{}, fmt.Errorf("read pull request %d: %w", number, err)
	}
	return fromGitHub(pr), nil
}

func fromGitHub(pr *github.PullRequest) PullRequest {
	out := PullRequest{
		Thread: Thread{Number: int64(pr.GetNumber()), URL: pr.GetHTMLURL(), Title: pr.GetTitle(), Body: pr.GetBody(), State: Open},
		Base:   pr.GetBase().GetRef(), Branch: pr.GetHead().GetRef(), Head: pr.GetHead().GetSHA(), HeadRef: fmt.Sprintf("refs/pull/%d/head", pr.GetNumber()),
	}
	out.Author, out.AuthorID = pr.GetUser().GetLogin(), pr.GetUser().GetID()
	out.Fork = pr.GetHead().GetRepo().GetID() != pr.GetBase().GetRepo().GetID()
	out.Labels, out.Opened = sortedNames(pr.Labels, (*github.Label).GetName), pr.GetCreatedAt().Time
	switch {
	case pr.MergedAt != nil:
		out.State, out.Ended, out.MergeCommit = Merged, pr.GetMergedAt().Time, pr.GetMergeCommitSHA()
	case pr.GetState() == "closed":
		out.State, out.Ended = Closed, pr.GetClosedAt().Time
	}
	return out
}

func (g *githubClient) OpenPullRequest(ctx context.Context, p NewPullRequest) (PullRequest, error) {
	pr, _, err := g.api.PullRequests.Create(ctx, g.owner, g.name, &github.NewPullRequest{Title: &p.Title, Head: &p.Branch, Base: &p.Base, Body: &p.Body})
	if err != nil {
		return PullRequest{}, fmt.Errorf("open a pull request of %s: %w", p.Branch, err)
	}
	opened := fromGitHub(pr)
	if len(p.Labels) == 0 {
		return opened, nil
	}
	labels, err := g.addLabels(ctx, opened.Number, p.Labels)
	if err != nil {
		return opened, err
	}
	opened.Labels = labels
	return opened, nil
}

// addLabels adds labels to a pull request or to an issue, and returns all that it has.
func (g *githubClient) addLabels(ctx context.Context, number int64, names []string) ([]string, error) {
	if err := g.createLabels(ctx, names); err != nil {
		return nil, err
	}
	labels, _, err := g.api.Issues.AddLabelsToIssue(ctx, g.owner, g.name, int(number), names)
	if err != nil {
		return nil, fmt.Errorf("label %d: %w", number, err)
	}
	return sortedNames(labels, (*github.Label).GetName), nil
}

// editLabels changes labels of a pull request or of an issue one by one, since others change them as well.
func (g *githubClient) editLabels(ctx context.Context, number int64, e Edit) error {
	if len(e.AddLabels) > 0 {
		if _, err := g.addLabels(ctx, number, e.AddLabels); err != nil {
			return err
		}
	}
	for _, name := range e.RemoveLabels {
		_, err := g.api.Issues.RemoveLabelForIssue(ctx, g.owner, g.name, int(number), url.PathEscape(name))
		if err != nil && statusOf(err) != http.StatusNotFound {
			return fmt.Errorf("remove label %s of %d: %w", name, number, err)
		}
	}
	return nil
}

func (g *githubClient) Edit(ctx context.Context, t Thread, e Edit) error {
	if err := g.editLabels(ctx, t.Number, e); err != nil || e.onlyLabels() {
		return err
	}
	return g.edit(ctx, t, e.titled(), e.text(), nil)
}

func (g *githubClient) Close(ctx context.Context, t Thread, comment, body string) error {
	if _, err := g.AddComment(ctx, t.Number, comment); err != nil {
		return err
	}
	return g.edit(ctx, t, nil, &body, new("closed"))
}

// edit changes a thread; nil stays. A fine-grained token without the permission for issues may change pull requests.
func (g *githubClient) edit(ctx context.Context, t Thread, title, body, state *string) error {
	if t.Kind == KindIssue {
		_, _, err := g.api.Issues.Edit(ctx, g.owner, g.name, int(t.Number), &github.IssueRequest{Title: title, Body: body, State: state})
		return wrapf(err, "edit issue %d", t.Number)
	}
	_, _, err := g.api.PullRequests.Edit(ctx, g.owner, g.name, int(t.Number), &github.PullRequest{Title: title, Body: body, State: state})
	return wrapf(err, "edit pull request %d", t.Number)
}

// createLabels creates the labels that the repository does not have.
func (g *githubClient) createLabels(ctx context.Context, names []string) error {
	for _, name := range names {
		_, _, err := g.api.Issues.GetLabel(ctx, g.owner, g.name, url.PathEscape(name))
		if statusOf(err) == http.StatusNotFound {
			_, _, err = g.api.Issues.CreateLabel(ctx, g.owner, g.name, &github.Label{Name: &name, Color: new(strings.TrimPrefix(labelColor, "#"))})
		}
		if err != nil && !answered(err, http.StatusUnprocessableEntity, "already_exists") {
			return fmt.Errorf("create label %s: %w", name, err)
		}
	}
	return nil
}

func (g *githubClient) FindComment(ctx context.Context, number int64, marker string) (*Comment, error) {
	comments, err := pages(fmt.Sprintf("list the comments on pull request %d", number), func(page int) ([]*github.IssueComment, bool, error) {
		list, resp, err := g.api.Issues.ListComments(ctx, g.owner, g.name, int(number), &github.IssueListCommentsOptions{
			ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
		})
		if err != nil {
			return nil, false, err
		}
		own, err := ownOf(list, func(c *github.IssueComment) (bool, error) { return g.isOwn(ctx, c.GetUser(), c.GetBody(), marker) })
		return own, resp.NextPage != 0, err
	})
	if err != nil || len(comments) == 0 {
		return nil, err
	}
	return &Comment{comments[0].GetID(), comments[0].GetBody()}, nil
}

// isOwn reports whether a comment has a marker and was written by the user of the token.
func (g *githubClient) isOwn(ctx context.Context, author *github.User, body, marker string) (bool, error) {
	if !strings.Contains(body, marker) {
		return false, nil
	}
	self, err := g.self(ctx)
	return err == nil && author.GetID() == self, err
}

// self returns the ID of the user of the token.
func (g *githubClient) self(ctx context.Context) (int64, error) {
	return g.user.id(func() (int64, error) {
		user, _, err := g.api.Users.Get(ctx, "")
		return user.GetID(), err
	})
}

func (g *githubClient) AddComment(ctx context.Context, number int64, body string) (Comment, error) {
	c, _, err := g.api.Issues.CreateComment(ctx, g.owner, g.name, int(number), &github.IssueComment{Body: &body})
	return Comment{c.GetID(), c.GetBody()}, wrapf(err, "comment on pull request %d", number)
}

func (g *githubClient) EditComment(ctx context.Context, number, id int64, body string) error {
	_, _, err := g.api.Issues.EditComment(ctx, g.owner, g.name, id, &github.IssueComment{Body: &body})
	return wrapf(err, "edit a comment on pull request %d", number)
}

func (g *githubClient) SetStatus(ctx context.Context, s Status) error {
	status := github.RepoStatus{State: new(string(s.State)), Context: &s.Context, Description: new(Shorten(s.Description, 140))}
	if s.URL != "" {
		status.TargetURL = &s.URL
	}
	_, _, err := g.api.Repositories.CreateStatus(ctx, g.owner, g.name, s.Commit, status)
	return wrapf(err, "set status %s of commit %.8s", s.Context, s.Commit)
}

func (g *githubClient) FindStatus(ctx context.Context, commit, name string) (*Status, error) {
	all, _, err := g.api.Repositories.GetCombinedStatus(ctx, g.owner, g.name, commit, &github.ListOptions{PerPage: 100})
	if err != nil {
		return nil, fmt.Errorf("read the statuses of commit %.8s: %w", commit, err)
	}
	for _, s := range all.Statuses {
		if s.GetContext() == name {
			return &Status{Commit: commit, Context: name, State: StatusState(s.GetState()), Description: s.GetDescription()}, nil
		}
	}
	return nil, nil
}

func (g *githubClient) LineURL(commit, path string, line int) string {
	return lineURL(g.page, "blob/"+commit, path, line)
}

func (g *githubClient) FindLineComments(ctx context.Context, number int64, marker string) ([]string, error) {
	list, err := pages(fmt.Sprintf("list the comments on lines of pull request %d", number), func(page int) ([]*github.PullRequestComment, bool, error) {
		list, resp, err := g.api.PullRequests.ListComments(ctx, g.owner, g.name, int(number), &github.PullRequestListCommentsOptions{
			ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
		})
		if err != nil {
			return nil, false, err
		}
		own, err := ownOf(list, func(c *github.PullRequestComment) (bool, error) {
			return g.isOwn(ctx, c.GetUser(), c.GetBody(), marker)
		})
		return own, resp.NextPage != 0, err
	})
	if err != nil {
		return nil, err
	}
	var found []string
	for _, c := range list {
		found = append(found, c.GetBody())
	}
	return found, nil
}

func (g *githubClient) CommentOnLines(ctx context.Context, number int64, head, text string, comments []LineComment) error {
	review := &github.PullRequestReviewRequest{CommitID: &head, Body: &text, Event: new("COMMENT")}
	for _, c := range comments {
		review.Comments = append(review.Comments, &github.DraftReviewComment{Path: &c.Path, Line: &c.Line, Side: new("RIGHT"), Body: &c.Body})
	}
	_, _, err := g.api.PullRequests.CreateReview(ctx, g.owner, g.name, int(number), review)
	return wrapf(err, "comment on lines of pull request %d", number)
}

func (g *githubClient) ListIssues(ctx context.Context, label string, state State) ([]Thread, error) {
	option := github.IssueListByRepoOptions{State: "all", Labels: []string{label}}
	if state != "" {
		option.State = string(state)
	}
	return listIssues(label, func(page int) ([]Thread, bool, error) {
		option.ListOptions = github.ListOptions{Page: page, PerPage: issuesPageSize}
		list, resp, err := g.api.Issues.ListByRepo(ctx, g.owner, g.name, &option)
		if err != nil {
			return nil, false, g.issuesError(ctx, err)
		}
		var own []Thread
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

func fromGitHubIssue(i *github.Issue) Thread {
	out := Thread{Kind: KindIssue, Number: int64(i.GetNumber()), URL: i.GetHTMLURL(), Title: i.GetTitle(), Body: i.GetBody(), Labels: sortedNames(i.Labels, (*github.Label).GetName), State: Open, Opened: i.GetCreatedAt().Time}
	if i.GetState() == "closed" {
		out.State, out.Ended = Closed, i.GetClosedAt().Time
	}
	return out
}

func (g *githubClient) Issue(ctx context.Context, number int64) (*Thread, error) {
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

func (g *githubClient) OpenIssue(ctx context.Context, i NewIssue) (Thread, error) {
	if err := g.createLabels(ctx, i.Labels); err != nil {
		return Thread{}, err
	}
	opened, _, err := g.api.Issues.Create(ctx, g.owner, g.name, &github.IssueRequest{Title: &i.Title, Body: &i.Body, Labels: &i.Labels})
	if err != nil {
		return Thread{}, fmt.Errorf("open an issue: %w", g.issuesError(ctx, err))
	}
	return fromGitHubIssue(opened), nil
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
