package e2e

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/giteaserver"
)

// commitTo replaces a file on a branch as another author, and returns the commit.
func (p *proposing) commitTo(branch, path string, edit func(text string) string) string {
	p.t.Helper()
	file, _, err := p.forge.Client.GetContents(giteaserver.User, "hub", branch, path)
	noError(p.t, err)
	text := p.contentOf(branch, path)
	person := gitea.Identity{Name: "Ada Example", Email: "ada@example.com"}
	_, _, err = p.forge.Client.UpdateFile(giteaserver.User, "hub", path, gitea.UpdateFileOptions{
		FileOptions: gitea.FileOptions{Message: "edit " + path, BranchName: branch, Author: person, Committer: person},
		SHA:         file.SHA, Content: base64.StdEncoding.EncodeToString([]byte(edit(text))),
	})
	noError(p.t, err)
	return p.branchHead(branch)
}

// contentOf returns the text of a file on a branch.
func (p *proposing) contentOf(branch, path string) string {
	p.t.Helper()
	file, _, err := p.forge.Client.GetContents(giteaserver.User, "hub", branch, path)
	noError(p.t, err)
	text, err := base64.StdEncoding.DecodeString(*file.Content)
	noError(p.t, err)
	return string(text)
}

// branchHead returns the commit of a branch.
func (p *proposing) branchHead(branch string) string {
	p.t.Helper()
	b, _, err := p.forge.Client.GetRepoBranch(giteaserver.User, "hub", branch)
	noError(p.t, err)
	return b.Commit.ID
}

func (p *proposing) comments(number int64) []string {
	p.t.Helper()
	list, _, err := p.forge.Client.ListIssueComments(giteaserver.User, "hub", number, gitea.ListIssueCommentOptions{})
	noError(p.t, err)
	var out []string
	for _, c := range list {
		out = append(out, c.Body)
	}
	return out
}

// A branch is rebuilt when its file has changed in Git. Commits that people push to it stay,
// and one comment tells them so. The label gitfleet/hold keeps the object as it is after the
// pull request was closed, until the label is removed.
func TestPullRequestsChangedByUsers(t *testing.T) {
	t.Parallel()
	p := newProposing(t)
	p.start()
	const before, after = "registry.example/app:1", "registry.example/app:2"
	p.settled(before)
	for _, member := range p.members { // if all members have it, the edit is one of the manifest
		p.image(member, after)
	}
	pr := p.opened(1)
	branch := pr.Head.Ref
	var labels []string
	for _, l := range pr.Labels {
		labels = append(labels, l.Name)
	}
	slices.Sort(labels)
	if got := strings.Join(labels, ", "); got != "gitfleet/drift, gitfleet/severity: image, placement/all" {
		t.Errorf("labels: %s", got)
	}
	first := p.branchHead(branch)
	p.commitTo("main", "apps/web.yaml", func(text string) string { return text + "# once more\n" })
	p.eventually("the branch is built anew", func() bool { return p.branchHead(branch) != first })

	theirs := p.commitTo(branch, "apps/web.yaml", func(text string) string { return text + "# by a person\n" })
	p.commitTo("main", "apps/web.yaml", func(text string) string { return text + "# again\n" })
	p.eventually("there is a comment", func() bool { return len(p.comments(pr.Index)) > 0 })
	if got := p.branchHead(branch); got != theirs {
		t.Errorf("the branch is at %s, want %s", got, theirs)
	}

	hold, _, err := p.forge.Client.CreateLabel(giteaserver.User, "hub", gitea.CreateLabelOption{Name: "gitfleet/hold", Color: "#0969da"})
	noError(t, err)
	_, _, err = p.forge.Client.AddIssueLabels(giteaserver.User, "hub", pr.Index, gitea.IssueLabelsOption{Labels: []int64{hold.ID}})
	noError(t, err)
	p.forge.Close("hub", pr.Index)
	p.until("held by the label", func(r *status.Report) bool {
		return slices.ContainsFunc(r.Drifts, func(d status.Drift) bool { return strings.Contains(d.Message, "has the label gitfleet/hold") })
	})
	p.waitForAll(after, p.members...)
	_, err = p.forge.Client.DeleteIssueLabel(giteaserver.User, "hub", pr.Index, hold.ID)
	noError(t, err)
	p.waitForAll(before, p.members...)
	if comments := p.comments(pr.Index); len(comments) != 1 || !strings.Contains(comments[0], "leaves this branch as it is") {
		t.Errorf("comments: %q", comments)
	}
	if got := p.branchHead(branch); got != theirs {
		t.Errorf("the branch is at %s, want %s", got, theirs)
	}
}
