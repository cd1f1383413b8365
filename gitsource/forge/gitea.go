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

// api returns a client for one request, since the library's client keeps the context.
func (g *giteaClient) api(ctx context.Context) (*gitea.Client, error) {
	return gitea.NewClient(g.url, gitea.SetHTTPClient(g.client), gitea.SetContext(ctx), gitea.SetGiteaVersion(""), gitea.SetUserAgent(userAgent))
}

func (g *giteaClient) ListOpen(ctx context.Context, base string) ([]PullRequest, error) {
	c, err := g.api(ctx)
	if err != nil {
		return nil, err
	}
	return listPullRequests(func(page, size int) ([]PullRequest, bool, error) {
		list, resp, err := c.ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{
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
	c, err := g.api(ctx)
	if err != nil {
		return nil, err
	}
	pr, _, err := c.GetPullRequestByBaseHead(g.owner, g.name, base, branch)
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
	c, err := g.api(ctx)
	if err != nil {
		return PullRequest{}, err
	}
	pr, _, err := c.GetPullRequest(g.owner, g.name, number)
	if err != nil {
		return PullRequest{}, fmt.Errorf("read pull request %d: %w", number, err)
	}
	return fromGitea(pr), nil
}

func fromGitea(pr *gitea.PullRequest) PullRequest {
	out := PullRequest{
		Number: pr.Index, URL: pr.HTMLURL, Title: pr.Title, Body: pr.Body, Draft: pr.Draft,
		HeadRef: fmt.Sprintf("refs/pull/%d/head", pr.Index), State: Open,
	}
	if pr.Poster != nil {
		out.Author = pr.Poster.UserName
	}
	out.Labels = giteaLabels(pr.Labels)
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

// giteaLabels returns the sorted names of labels.
func giteaLabels(labels []*gitea.Label) []string {
	var out []string
	for _, l := range labels {
		out = append(out, l.Name)
	}
	slices.Sort(out)
	return out
}

func (g *giteaClient) OpenPullRequest(ctx context.Context, p Proposal) (PullRequest, error) {
	c, err := g.api(ctx)
	if err != nil {
		return PullRequest{}, err
	}
	labels, err := g.labelIDs(c, p.Labels)
	if err != nil {
		return PullRequest{}, err
	}
	pr, _, err := c.CreatePullRequest(g.owner, g.name, gitea.CreatePullRequestOption{Head: p.Branch, Base: p.Base, Title: p.Title, Body: p.Body, Labels: labels})
	if err != nil {
		return PullRequest{}, fmt.Errorf("open a pull request of %s: %w", p.Branch, err)
	}
	return fromGitea(pr), nil
}

func (g *giteaClient) EditPullRequest(ctx context.Context, number int64, body string) error {
	return g.edit(ctx, number, gitea.EditPullRequestOption{Body: &body})
}

func (g *giteaClient) ClosePullRequest(ctx context.Context, number int64, comment, body string) error {
	if _, err := g.AddComment(ctx, number, comment); err != nil {
		return err
	}
	closed := gitea.StateClosed
	return g.edit(ctx, number, gitea.EditPullRequestOption{Body: &body, State: &closed})
}

func (g *giteaClient) edit(ctx context.Context, number int64, change gitea.EditPullRequestOption) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	if _, _, err := c.EditPullRequest(g.owner, g.name, number, change); err != nil {
		return fmt.Errorf("edit pull request %d: %w", number, err)
	}
	return nil
}

func (g *giteaClient) SetLabels(ctx context.Context, number int64, add, remove []string) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	labels, _, err := c.GetIssueLabels(g.owner, g.name, number, gitea.ListLabelsOptions{})
	if err != nil {
		return fmt.Errorf("read the labels of pull request %d: %w", number, err)
	}
	var has []string
	for _, l := range labels {
		has = append(has, l.Name)
		if !slices.Contains(remove, l.Name) {
			continue
		}
		if _, err := c.DeleteIssueLabel(g.owner, g.name, number, l.ID); err != nil && statusOf(err) != http.StatusNotFound {
			return fmt.Errorf("remove label %s of pull request %d: %w", l.Name, number, err)
		}
	}
	ids, err := g.labelIDs(c, missing(add, has))
	if err != nil || len(ids) == 0 {
		return err
	}
	if _, _, err := c.AddIssueLabels(g.owner, g.name, number, gitea.IssueLabelsOption{Labels: ids}); err != nil {
		return fmt.Errorf("label pull request %d: %w", number, err)
	}
	return nil
}

// labelIDs returns the IDs of labels by name, and creates labels that the repository does not
// have.
func (g *giteaClient) labelIDs(c *gitea.Client, names []string) ([]int64, error) {
	if len(names) == 0 {
		return nil, nil
	}
	seen := 0
	all, err := pages("list labels", func(page int) ([]*gitea.Label, bool, error) {
		list, resp, err := c.ListRepoLabels(g.owner, g.name, gitea.ListLabelsOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize}})
		if err != nil {
			return nil, false, err
		}
		seen += len(list)
		total, _ := strconv.Atoi(resp.Header.Get("X-Total-Count")) // this response has no Link header
		return list, len(list) > 0 && seen < total, nil
	})
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, name := range missing(names, nil) {
		i := slices.IndexFunc(all, func(l *gitea.Label) bool { return l.Name == name })
		if i >= 0 {
			ids = append(ids, all[i].ID)
			continue
		}
		created, _, err := c.CreateLabel(g.owner, g.name, gitea.CreateLabelOption{Name: name, Color: labelColor})
		if err != nil {
			return nil, fmt.Errorf("create label %s: %w", name, err)
		}
		ids = append(ids, created.ID)
	}
	return ids, nil
}

func (g *giteaClient) FindComment(ctx context.Context, number int64, marker string) (*Comment, error) {
	c, err := g.api(ctx)
	if err != nil {
		return nil, err
	}
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
	c, err := g.api(ctx)
	if err != nil {
		return Comment{}, err
	}
	added, _, err := c.CreateIssueComment(g.owner, g.name, number, gitea.CreateIssueCommentOption{Body: body})
	if err != nil {
		return Comment{}, fmt.Errorf("comment on pull request %d: %w", number, err)
	}
	return Comment{added.ID, added.Body}, nil
}

func (g *giteaClient) EditComment(ctx context.Context, number, id int64, body string) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	if _, _, err := c.EditIssueComment(g.owner, g.name, id, gitea.EditIssueCommentOption{Body: body}); err != nil {
		return fmt.Errorf("edit a comment on pull request %d: %w", number, err)
	}
	return nil
}

func (g *giteaClient) SetStatus(ctx context.Context, s Status) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	_, _, err = c.CreateStatus(g.owner, g.name, s.Commit, gitea.CreateStatusOption{
		State: gitea.StatusState(s.State), TargetURL: s.URL, Description: shorten(s.Description, 255), Context: s.Context,
	})
	if err != nil {
		return fmt.Errorf("set status %s of commit %.8s: %w", s.Context, s.Commit, err)
	}
	return nil
}

func (g *giteaClient) FindStatus(ctx context.Context, commit, name string) (*Status, error) {
	c, err := g.api(ctx)
	if err != nil {
		return nil, err
	}
	all, _, err := c.GetCombinedStatus(g.owner, g.name, commit)
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
