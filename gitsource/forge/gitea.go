package forge

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// Config says which repository of which forge is asked, and in whose name.
type Config struct {
	// URL is where the forge is, such as https://git.example.com.
	URL string
	// Repository is OWNER/NAME.
	Repository string
	// Token returns the access token. It is called before each request, so that one that
	// was replaced is used.
	Token func() (string, error)
	// CABundle is a PEM file of certificates to trust beside the system's.
	CABundle string
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	u, err := url.Parse(c.URL)
	owner, name, found := strings.Cut(c.Repository, "/")
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("url: must be like https://git.example.com")
	case !found || owner == "" || name == "" || strings.ContainsAny(name, "/?#"):
		return fmt.Errorf("repository: %q is not OWNER/NAME", c.Repository)
	case c.Token == nil:
		return errors.New("a token is needed: set tokenFile or tokenEnv")
	}
	return nil
}

// Gitea is a repository on a Gitea or Forgejo server. Any goroutine may use it.
type Gitea struct {
	cfg         Config
	owner, name string
	client      *http.Client
}

// NewGitea asks nothing yet.
func NewGitea(cfg Config) (*Gitea, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	client, err := newClient(cfg.CABundle)
	if err != nil {
		return nil, err
	}
	g := &Gitea{cfg: cfg, client: client}
	g.owner, g.name, _ = strings.Cut(cfg.Repository, "/")
	return g, nil
}

// api returns a client for one request: the library keeps the context and the token.
func (g *Gitea) api(ctx context.Context) (*gitea.Client, error) {
	token, err := g.cfg.Token()
	if err != nil {
		return nil, fmt.Errorf("read the token of the forge: %w", err)
	}
	return gitea.NewClient(g.cfg.URL, gitea.SetHTTPClient(g.client), gitea.SetToken(token), gitea.SetContext(ctx),
		gitea.SetGiteaVersion(""), gitea.SetUserAgent("gitfleet"))
}

// pageSize is the largest page that Gitea returns by default.
const pageSize = 50

// mostPages is the maximum number of pages of open pull requests that are read.
const mostPages = 40

// OpenPullRequests lists the open ones to a base branch, from branches of the
// repository itself whose names have a prefix.
func (g *Gitea) OpenPullRequests(ctx context.Context, base, prefix string) ([]PullRequest, error) {
	c, err := g.api(ctx)
	if err != nil {
		return nil, err
	}
	var out []PullRequest
	for page := 1; page <= mostPages; page++ {
		list, resp, err := c.ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{
			ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize}, State: gitea.StateOpen,
		})
		if err != nil {
			return nil, fmt.Errorf("list pull requests: %w", err)
		}
		for _, pr := range list {
			if own(pr) && pr.Base.Ref == base && strings.HasPrefix(pr.Head.Ref, prefix) {
				out = append(out, fromGitea(pr))
			}
		}
		if resp.NextPage == 0 {
			return out, nil
		}
	}
	return nil, fmt.Errorf("list pull requests: more than %d are open", mostPages*pageSize)
}

// own reports whether a pull request is from a branch of the repository itself.
func own(pr *gitea.PullRequest) bool {
	return pr.Base != nil && pr.Head != nil && pr.Base.RepoID == pr.Head.RepoID
}

// FindPullRequest returns the pull request from a branch of the repository to a base
// branch, whatever its state is; nil if there is none.
func (g *Gitea) FindPullRequest(ctx context.Context, base, branch string) (*PullRequest, error) {
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

func fromGitea(pr *gitea.PullRequest) PullRequest {
	out := PullRequest{Number: pr.Index, URL: pr.HTMLURL, Body: pr.Body, State: Open}
	if pr.Head != nil {
		out.Branch = pr.Head.Ref
	}
	switch {
	case pr.HasMerged:
		out.State = Merged
		if pr.Merged != nil {
			out.Ended = *pr.Merged
		}
	case pr.State == gitea.StateClosed:
		out.State = Closed
		if pr.Closed != nil {
			out.Ended = *pr.Closed
		}
	}
	return out
}

// HasBranch reports whether the repository has a branch.
func (g *Gitea) HasBranch(ctx context.Context, branch string) (bool, error) {
	c, err := g.api(ctx)
	if err != nil {
		return false, err
	}
	_, _, err = c.GetRepoBranch(g.owner, g.name, branch)
	switch {
	case statusOf(err) == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for branch %s: %w", branch, err)
	}
	return true, nil
}

// Commit makes a branch with one commit on top of another branch. The error is
// [ErrStale] if the file is another one there. A branch that is there already is an
// error, and stays as it is.
func (g *Gitea) Commit(ctx context.Context, commit Commit) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	_, _, err = c.UpdateFile(g.owner, g.name, commit.Path, gitea.UpdateFileOptions{
		FileOptions: gitea.FileOptions{
			Message: commit.Message, BranchName: commit.Base, NewBranchName: commit.Branch,
			Author: gitea.Identity{Name: author, Email: email}, Committer: gitea.Identity{Name: author, Email: email},
		},
		SHA: blobID(commit.Before), Content: base64.StdEncoding.EncodeToString(commit.After),
	})
	switch answer, _ := errors.AsType[*StatusError](err); {
	case err == nil:
		return nil
	case answer != nil && answer.Status/100 == 4 && strings.Contains(answer.Message, "sha does not match"):
		return ErrStale
	default:
		return fmt.Errorf("commit to branch %s: %w", commit.Branch, err)
	}
}

// Who makes the commits.
const author, email = "gitfleet", "gitfleet@noreply.invalid"

// OpenPullRequest opens a pull request.
func (g *Gitea) OpenPullRequest(ctx context.Context, p Proposal) (PullRequest, error) {
	c, err := g.api(ctx)
	if err != nil {
		return PullRequest{}, err
	}
	pr, _, err := c.CreatePullRequest(g.owner, g.name, gitea.CreatePullRequestOption{Head: p.Branch, Base: p.Base, Title: p.Title, Body: p.Body})
	if err != nil {
		return PullRequest{}, fmt.Errorf("open a pull request of %s: %w", p.Branch, err)
	}
	return fromGitea(pr), nil
}

// EditPullRequest replaces the body of a pull request.
func (g *Gitea) EditPullRequest(ctx context.Context, number int64, body string) error {
	return g.edit(ctx, number, gitea.EditPullRequestOption{Body: &body})
}

// ClosePullRequest comments on a pull request, and closes it with another body.
func (g *Gitea) ClosePullRequest(ctx context.Context, number int64, comment, body string) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	if _, _, err := c.CreateIssueComment(g.owner, g.name, number, gitea.CreateIssueCommentOption{Body: comment}); err != nil {
		return fmt.Errorf("comment on pull request %d: %w", number, err)
	}
	closed := gitea.StateClosed
	return g.edit(ctx, number, gitea.EditPullRequestOption{Body: &body, State: &closed})
}

func (g *Gitea) edit(ctx context.Context, number int64, change gitea.EditPullRequestOption) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	if _, _, err := c.EditPullRequest(g.owner, g.name, number, change); err != nil {
		return fmt.Errorf("edit pull request %d: %w", number, err)
	}
	return nil
}

// DeleteBranch deletes a branch. One that is not there is no error.
func (g *Gitea) DeleteBranch(ctx context.Context, branch string) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	if _, _, err := c.DeleteRepoBranch(g.owner, g.name, branch); err != nil && statusOf(err) != http.StatusNotFound {
		return fmt.Errorf("delete branch %s: %w", branch, err)
	}
	return nil
}
