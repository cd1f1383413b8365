package forge

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// maxReviews is the maximum number of own reviews of a pull request that are looked at for
// comments. Each is requested separately.
const maxReviews = 100

// giteaClient is a repository on a Gitea or Forgejo server.
type giteaClient struct {
	url         string
	page        string // the address of the repository in a browser
	owner, name string
	client      *http.Client
	user        tokenUser
}

func newGitea(cfg Config) (*giteaClient, error) {
	client, err := newHTTPClient(cfg, "token")
	if err != nil {
		return nil, err
	}
	g := &giteaClient{url: cfg.URL, page: cfg.repositoryURL(), client: client, user: tokenUser{token: cfg.Token}}
	g.owner, g.name, _ = strings.Cut(cfg.Repository, "/")
	return g, nil
}

// api returns a client for requests with a context, which the library's client keeps.
func (g *giteaClient) api(ctx context.Context) *gitea.Client {
	c, _ := gitea.NewClient(g.url, gitea.SetHTTPClient(g.client), gitea.SetContext(ctx), gitea.SetGiteaVersion(""), gitea.SetUserAgent(userAgent))
	return c // the only error is about the version of the server, which is not checked
}

func (g *giteaClient) ListOpen(ctx context.Context, base string) ([]PullRequest, error) {
	return listPullRequests(func(page, size int) ([]PullRequest, bool, error) {
		list, resp, err := g.api(ctx).ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{
			ListOptions: gitea.ListOptions{Page: page, PageSize: size}, State: gitea.StateOpen,
		})
		if err != nil {
			return nil, false, err
		}
		var out []PullRequest
		for _, pr := range list {
			if pr.Base != nil && pr.Base.Ref == base {
				out = append(out, fromGitea(pr))
			}
		}
		return out, resp.NextPage != 0, nil
	})
}

func (g *giteaClient) FindPullRequest(ctx context.Context, base, branch string) (*PullRequest, error) {
	pr, _, err := g.api(ctx).GetPullRequestByBaseHead(g.owner, g.name, base, branch)
	switch {
	case statusOf(err) == http.StatusNotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the pull request of %s: %w", branch, err)
	}
	found := fromGitea(pr)
	return &found, nil
}

func (g *giteaClient) PullRequest(ctx context.Context, number int64) (PullRequest, error) {
	pr, _, err := g.api(ctx).GetPullRequest(g.owner, g.name, number)
	if err != nil {
		return PullRequest{}, fmt.Errorf("read pull request %d: %w", number, err)
	}
	return fromGitea(pr), nil
}

func fromGitea(pr *gitea.PullRequest) PullRequest {
	out := PullRequest{
		Thread:  Thread{Number: pr.Index, URL: pr.HTMLURL, Title: pr.Title, Body: pr.Body, State: Open},
		HeadRef: fmt.Sprintf("refs/pull/%d/head", pr.Index),
	}
	out.Labels = giteaLabels(pr.Labels)
	if pr.Poster != nil {
		out.Author, out.AuthorID = pr.Poster.UserName, pr.Poster.ID
	}
	if pr.Created != nil {
		out.Opened = *pr.Created
	}
	if pr.Head != nil {
		out.Branch, out.Head = pr.Head.Name, pr.Head.Sha // after the branch is deleted, Ref is not a branch name
	}
	if pr.Base != nil {
		out.Base = pr.Base.Ref
	}
	// Users with read permission can push to refs/for/. That creates a pull request without a
	// branch, and so without a name.
	out.Fork = pr.Base == nil || pr.Head == nil || pr.Base.RepoID != pr.Head.RepoID || pr.Head.Name == ""
	if out.Fork {
		out.Labels = nil // the author can set them without write permission
	}
	switch {
	case pr.HasMerged:
		out.State = Merged
		if pr.Merged != nil {
			out.Ended = *pr.Merged
		}
		if pr.MergedCommitID != nil {
			out.MergeCommit = *pr.MergedCommitID
		}
	case pr.State == gitea.StateClosed:
		out.State = Closed
		if pr.Closed != nil {
			out.Ended = *pr.Closed
		}
	}
	return out
}

func giteaLabels(labels []*gitea.Label) []string {
	return sortedNames(labels, func(l *gitea.Label) string { return l.Name })
}

func (g *giteaClient) OpenPullRequest(ctx context.Context, p NewPullRequest) (PullRequest, error) {
	c := g.api(ctx)
	labels, unlabeled := g.labelIDs(c, p.Labels)
	if unlabeled != nil && statusOf(unlabeled) != http.StatusForbidden {
		return PullRequest{}, unlabeled
	}
	pr, _, err := c.CreatePullRequest(g.owner, g.name, gitea.CreatePullRequestOption{Head: p.Branch, Base: p.Base, Title: p.Title, Body: p.Body, Labels: labels})
	if err != nil {
		return PullRequest{}, fmt.Errorf("open a pull request of %s: %w", p.Branch, err)
	}
	return fromGitea(pr), unlabeled
}

func (g *giteaClient) Edit(ctx context.Context, t Thread, e Edit) error {
	if err := g.editLabels(ctx, t.Number, e); err != nil || e.onlyLabels() {
		return err
	}
	return g.edit(ctx, t, gitea.EditIssueOption{Title: e.Title, Body: e.text()}) // an empty title stays
}

// editLabels changes labels of a pull request or of an issue one by one, since others change them as well.
func (g *giteaClient) editLabels(ctx context.Context, number int64, e Edit) error {
	c := g.api(ctx)
	if len(e.AddLabels) > 0 {
		ids, err := g.labelIDs(c, e.AddLabels)
		if err != nil {
			return err
		}
		if _, _, err := c.AddIssueLabels(g.owner, g.name, number, gitea.IssueLabelsOption{Labels: ids}); err != nil {
			return fmt.Errorf("label %d: %w", number, err)
		}
	}
	if len(e.RemoveLabels) == 0 {
		return nil
	}
	labels, _, err := c.GetIssueLabels(g.owner, g.name, number, gitea.ListLabelsOptions{})
	if err != nil {
		return fmt.Errorf("read the labels of %d: %w", number, err)
	}
	for _, l := range labels {
		if !slices.Contains(e.RemoveLabels, l.Name) {
			continue
		}
		if _, err := c.DeleteIssueLabel(g.owner, g.name, number, l.ID); err != nil && statusOf(err) != http.StatusNotFound {
			return fmt.Errorf("remove label %s of %d: %w", l.Name, number, err)
		}
	}
	return nil
}

func (g *giteaClient) Close(ctx context.Context, t Thread, comment, body string) error {
	// A token without the scope of issues may close a pull request nevertheless.
	if _, err := g.AddComment(ctx, t.Number, comment); err != nil && (t.Kind == KindIssue || statusOf(err) != http.StatusForbidden) {
		return err
	}
	return g.edit(ctx, t, gitea.EditIssueOption{Body: &body, State: new(gitea.StateClosed)})
}

// edit changes a thread. A token without the scope of issues may change pull requests.
func (g *giteaClient) edit(ctx context.Context, t Thread, change gitea.EditIssueOption) error {
	if t.Kind == KindIssue {
		_, _, err := g.api(ctx).EditIssue(g.owner, g.name, t.Number, change)
		return wrapf(err, "edit issue %d", t.Number)
	}
	_, _, err := g.api(ctx).EditPullRequest(g.owner, g.name, t.Number, gitea.EditPullRequestOption{Title: change.Title, Body: change.Body, State: change.State})
	return wrapf(err, "edit pull request %d", t.Number)
}

// countedPages reads a list whose responses have its length, and no links to the next page.
func countedPages[T any](what string, read func(page gitea.ListOptions) ([]T, *gitea.Response, error)) ([]T, error) {
	seen := 0
	return pages(what, func(page int) ([]T, bool, error) {
		list, resp, err := read(gitea.ListOptions{Page: page, PageSize: pageSize})
		if err != nil {
			return nil, false, err
		}
		seen += len(list)
		total, _ := strconv.Atoi(resp.Header.Get("X-Total-Count"))
		return list, len(list) > 0 && seen < total, nil
	})
}

// labelIDs returns the IDs of labels by name, and creates labels that the repository does not
// have. With an error it returns those before the label that could not be created.
func (g *giteaClient) labelIDs(c *gitea.Client, names []string) ([]int64, error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := g.labels(c)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, name := range names {
		i := slices.IndexFunc(all, func(l *gitea.Label) bool { return l.Name == name })
		if i >= 0 {
			ids = append(ids, all[i].ID)
			continue
		}
		created, _, err := c.CreateLabel(g.owner, g.name, gitea.CreateLabelOption{Name: name, Color: labelColor})
		if err != nil {
			return ids, fmt.Errorf("create label %s: %w", name, err)
		}
		ids = append(ids, created.ID)
	}
	return ids, nil
}

// labels returns the labels of the repository.
func (g *giteaClient) labels(c *gitea.Client) ([]*gitea.Label, error) {
	return countedPages("list labels", func(page gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return c.ListRepoLabels(g.owner, g.name, gitea.ListLabelsOptions{ListOptions: page})
	})
}

func (g *giteaClient) FindComment(ctx context.Context, number int64, marker string) (*Comment, error) {
	c := g.api(ctx)
	list, _, err := c.ListIssueComments(g.owner, g.name, number, gitea.ListIssueCommentOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the comments on pull request %d: %w", number, err)
	}
	for _, found := range list {
		if found.Poster == nil || !strings.Contains(found.Body, marker) {
			continue
		}
		self, err := g.self(c)
		if err != nil {
			return nil, err
		}
		if found.Poster.ID == self {
			return &Comment{found.ID, found.Body}, nil
		}
	}
	return nil, nil
}

// self returns the ID of the user of the token.
func (g *giteaClient) self(c *gitea.Client) (int64, error) {
	return g.user.id(func() (int64, error) {
		user, _, err := c.GetMyUserInfo()
		if err != nil {
			return 0, err
		}
		return user.ID, nil
	})
}

func (g *giteaClient) AddComment(ctx context.Context, number int64, body string) (Comment, error) {
	added, _, err := g.api(ctx).CreateIssueComment(g.owner, g.name, number, gitea.CreateIssueCommentOption{Body: body})
	if err != nil {
		return Comment{}, fmt.Errorf("comment on pull request %d: %w", number, err)
	}
	return Comment{added.ID, added.Body}, nil
}

func (g *giteaClient) EditComment(ctx context.Context, number, id int64, body string) error {
	_, _, err := g.api(ctx).EditIssueComment(g.owner, g.name, id, gitea.EditIssueCommentOption{Body: body})
	return wrapf(err, "edit a comment on pull request %d", number)
}

func (g *giteaClient) SetStatus(ctx context.Context, s Status) error {
	_, _, err := g.api(ctx).CreateStatus(g.owner, g.name, s.Commit, gitea.CreateStatusOption{
		State: gitea.StatusState(s.State), TargetURL: s.URL, Description: Shorten(s.Description, 255), Context: s.Context,
	})
	return wrapf(err, "set status %s of commit %.8s", s.Context, s.Commit)
}

func (g *giteaClient) FindStatus(ctx context.Context, commit, name string) (*Status, error) {
	all, _, err := g.api(ctx).GetCombinedStatus(g.owner, g.name, commit)
	if err != nil {
		return nil, fmt.Errorf("read the statuses of commit %.8s: %w", commit, err)
	}
	for _, s := range all.Statuses {
		if s.Context == name {
			return &Status{Commit: commit, Context: name, State: StatusState(s.State), Description: s.Description}, nil
		}
	}
	return nil, nil
}

func (g *giteaClient) LineURL(commit, path string, line int) string {
	return lineURL(g.page, "src/commit/"+commit, path, line)
}

func (g *giteaClient) FindLineComments(ctx context.Context, number int64, marker string) ([]string, error) {
	c := g.api(ctx)
	what := fmt.Sprintf("list the reviews of pull request %d", number)
	reviews, err := countedPages(what, func(page gitea.ListOptions) ([]*gitea.PullReview, *gitea.Response, error) {
		list, resp, err := c.ListPullReviews(g.owner, g.name, number, gitea.ListPullReviewsOptions{ListOptions: page})
		for _, r := range list {
			r.Body = "" // anybody may write long ones, and none is read
		}
		return list, resp, err
	})
	if err != nil {
		return nil, err
	}
	reviews = slices.DeleteFunc(reviews, func(r *gitea.PullReview) bool { return r.Reviewer == nil || r.CodeCommentsCount == 0 })
	if len(reviews) == 0 {
		return nil, nil
	}
	self, err := g.self(c)
	if err != nil {
		return nil, err
	}
	reviews = slices.DeleteFunc(reviews, func(r *gitea.PullReview) bool { return r.Reviewer.ID != self })
	if len(reviews) > maxReviews {
		return nil, fmt.Errorf("%s: there are %d reviews with comments on lines, at most %d are read", what, len(reviews), maxReviews)
	}
	var found []string
	for _, r := range reviews {
		list, _, err := c.ListPullReviewComments(g.owner, g.name, number, r.ID)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		for _, comment := range list {
			if strings.Contains(comment.Body, marker) {
				found = append(found, comment.Body)
			}
		}
	}
	return found, nil
}

func (g *giteaClient) CommentOnLines(ctx context.Context, number int64, head, text string, comments []LineComment) error {
	review := gitea.CreatePullReviewOptions{State: gitea.ReviewStateComment, Body: text, CommitID: head}
	for _, line := range comments {
		review.Comments = append(review.Comments, gitea.CreatePullReviewComment{Path: line.Path, Body: line.Body, NewLineNum: int64(line.Line)})
	}
	_, _, err := g.api(ctx).CreatePullReview(g.owner, g.name, number, review)
	return wrapf(err, "comment on lines of pull request %d", number)
}

func (g *giteaClient) ListIssues(ctx context.Context, label string, state State) ([]Thread, error) {
	c := g.api(ctx)
	option := gitea.ListIssueOption{Type: gitea.IssueTypeIssue, State: gitea.StateAll, Labels: []string{label}}
	if state != "" {
		option.State = gitea.StateType(state)
	}
	return listIssues(label, func(page int) ([]Thread, bool, error) {
		option.ListOptions = gitea.ListOptions{Page: page, PageSize: issuesPageSize}
		list, resp, err := c.ListRepoIssues(g.owner, g.name, option)
		if err != nil {
			return nil, false, g.issuesError(c, err)
		}
		var own []Thread
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

func fromGiteaIssue(i *gitea.Issue) Thread {
	out := Thread{Kind: KindIssue, Number: i.Index, URL: i.HTMLURL, Title: i.Title, Body: i.Body, Labels: giteaLabels(i.Labels), State: Open, Opened: i.Created}
	if i.State == gitea.StateClosed {
		out.State = Closed
		if i.Closed != nil {
			out.Ended = *i.Closed
		}
	}
	return out
}

func (g *giteaClient) Issue(ctx context.Context, number int64) (*Thread, error) {
	c := g.api(ctx)
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

func (g *giteaClient) OpenIssue(ctx context.Context, i NewIssue) (Thread, error) {
	c := g.api(ctx)
	// Gitea opens an issue even if issues are disabled, but without its labels.
	switch enabled, err := g.hasIssues(c); {
	case err != nil:
		return Thread{}, err
	case !enabled:
		return Thread{}, ErrIssuesDisabled
	}
	labels, err := g.labelIDs(c, i.Labels)
	if err != nil {
		return Thread{}, err
	}
	opened, _, err := c.CreateIssue(g.owner, g.name, gitea.CreateIssueOption{Title: i.Title, Body: i.Body, Labels: labels})
	if err != nil {
		return Thread{}, fmt.Errorf("open an issue: %w", err)
	}
	return fromGiteaIssue(opened), nil
}

func (g *giteaClient) Access(ctx context.Context) (Access, error) {
	c := g.api(ctx)
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
		PermissionsHidden: repo.Permissions != nil && !repo.Permissions.Admin,
	}, nil
}
