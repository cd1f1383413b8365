package e2e

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/giteaserver"
)

// write writes a file on a branch, which is created from main if it does not exist; an empty
// text deletes the file.
func (p *proposing) write(branch, path, text, message string) {
	p.t.Helper()
	options := gitea.FileOptions{Message: message, BranchName: branch}
	if _, _, err := p.forge.Client.GetRepoBranch(giteaserver.User, "hub", branch); err != nil {
		options.BranchName, options.NewBranchName = "main", branch
	}
	content := base64.StdEncoding.EncodeToString([]byte(text))
	existing, _, err := p.forge.Client.GetContents(giteaserver.User, "hub", options.BranchName, path)
	switch {
	case err != nil:
		_, _, err = p.forge.Client.CreateFile(giteaserver.User, "hub", path, gitea.CreateFileOptions{FileOptions: options, Content: content})
	case text == "":
		_, err = p.forge.Client.DeleteFile(giteaserver.User, "hub", path, gitea.DeleteFileOptions{FileOptions: options, SHA: existing.SHA})
	default:
		_, _, err = p.forge.Client.UpdateFile(giteaserver.User, "hub", path, gitea.UpdateFileOptions{FileOptions: options, SHA: existing.SHA, Content: content})
	}
	noError(p.t, err)
}

// plans returns the comments with a plan on a pull request.
func (p *proposing) plans(number int64) []string {
	p.t.Helper()
	list, _, err := p.forge.Client.ListIssueComments(giteaserver.User, "hub", number, gitea.ListIssueCommentOptions{})
	noError(p.t, err)
	var out []string
	for _, c := range list {
		if strings.Contains(c.Body, "### gitfleet plan") {
			out = append(out, c.Body)
		}
	}
	return out
}

// lineComments returns the comments on lines of a pull request.
func (p *proposing) lineComments(number int64) []*gitea.PullReviewComment {
	p.t.Helper()
	reviews, _, err := p.forge.Client.ListPullReviews(giteaserver.User, "hub", number, gitea.ListPullReviewsOptions{})
	noError(p.t, err)
	var out []*gitea.PullReviewComment
	for _, r := range reviews {
		list, _, err := p.forge.Client.ListPullReviewComments(giteaserver.User, "hub", number, r.ID)
		noError(p.t, err)
		out = append(out, list...)
	}
	return out
}

// shown returns the statuses of a commit with the fleet's name for plan or rollout, the newest first.
func (p *proposing) shown(commit, what string) []string {
	p.t.Helper()
	list, _, err := p.forge.Client.ListStatuses(giteaserver.User, "hub", commit, gitea.ListStatusesOption{})
	noError(p.t, err)
	slices.SortFunc(list, func(a, b *gitea.Status) int { return int(b.ID - a.ID) })
	var out []string
	for _, s := range list {
		if s.Context == "gitfleet/"+p.name+"/"+what {
			out = append(out, fmt.Sprintf("%s: %s", s.State, s.Description))
		}
	}
	return out
}

// newest returns the newest commit of main.
func (p *proposing) newest() string {
	p.t.Helper()
	b, _, err := p.forge.Client.GetRepoBranch(giteaserver.User, "hub", "main")
	noError(p.t, err)
	return b.Commit.ID
}

func (p *proposing) shows(commit, what, want string) {
	p.t.Helper()
	var got []string
	p.eventually(what+" "+want, func() bool {
		got = p.shown(commit, what)
		return len(got) > 0 && strings.Contains(got[0], want)
	})
}

// A pull request gets one comment with the plan of its merge. Its status becomes stale when
// another commit is pushed first, and success again. The merge commit's status shows the
// progress of its rollout.
func TestPullRequestsArePlanned(t *testing.T) {
	t.Parallel()
	p := newProposing(t)
	p.args = append(p.args, "--set", "pullRequests.plans=true", "--set", "pullRequests.dryRun=true", "--set", "pullRequests.rolloutStatus=true")
	const old, place = "apps/old.yaml", "place.yaml"
	p.write("main", old, yamlNamespace(p.name+"-old"), "add a namespace")
	p.write("main", "place-old.yaml", yamlPlacement("old", p.name+"-old", pickAll), "place it")
	p.start()
	p.eventually("image", func() bool { got, _ := p.web(p.members[2]); return got == "registry.example/app:1" })
	p.shows(p.newest(), "rollout", "success: 3 of 3 clusters")

	p.write("topic", place, yamlPlacement("all", p.name, "  policy: {placementType: PickN, numberOfClusters: 2}\n  strategy: {rollingUpdate: {maxUnavailable: 100%}}\n"), "two clusters")
	p.write("topic", old, "", "no namespace")
	p.write("topic", "apps/theirs.yaml", yamlConfigMap(p.name, "theirs", "ours"), "what is there already")
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Data: map[string]string{"key": "value-of-theirs"}}
	for _, m := range p.members {
		_, err := p.clients[m].CoreV1().ConfigMaps(p.name).Create(t.Context(), theirs, metav1.CreateOptions{})
		noError(t, err)
	}
	p.write("topic", "apps/web.yaml", strings.Replace(strings.Replace(yamlDeployment(p.name, "web", 2), "\nspec:", "\n  annotations: {gitfleet.dev/available: \"true\"}\nspec:", 1), "app:1", "app:2", 1), "an image")
	pr, _, err := p.forge.Client.CreatePullRequest(giteaserver.User, "hub", gitea.CreatePullRequestOption{Head: "topic", Base: "main", Title: "Three changes"})
	noError(t, err)
	head := pr.Head.Sha
	p.shows(head, "plan", "success: ")
	p.eventually("the members have answered", func() bool {
		all := p.plans(pr.Index) // the status is written before it
		return len(all) > 0 && strings.Contains(all[0], " 0 refused, 2 taken over")
	})
	comment := p.plans(pr.Index)[0]
	for _, want := range []string{
		"`crp/all`: its policy changes from `PickAll` to `PickN 2`; leaves 1 cluster",
		"Gitfleet-Allow-Delete: crp/old\n", "- Namespace/" + p.name + "-old (crp/old), blocked\n",
		"\n-      - image: registry.example/app:1\n+      - image: registry.example/app:2\n",
		"`ConfigMap/" + p.name + "/theirs` of `crp/all` on ", ": it exists already and is taken over, with other values: ",
	} {
		if !strings.Contains(comment, want) {
			t.Errorf("the comment does not say %q:\n%s", want, comment)
		}
	}
	if strings.Contains(comment, "value-of-theirs") {
		t.Errorf("the comment has what is on the members:\n%s", comment)
	}
	for _, m := range p.members {
		if got, err := p.clients[m].CoreV1().ConfigMaps(p.name).Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil || got.Labels[api.ManagedByLabel] != "" || got.Data["key"] != "value-of-theirs" {
			t.Errorf("on %s the plan has made of it %v, %v", m, got, err)
		}
	}
	if said, code := p.cli("plan", "--pr", fmt.Sprint(pr.Index)); code != 1 || !strings.Contains(said, "On the members, by a dry run: ") || !strings.Contains(said, "- Namespace/"+p.name+"-old  (crp/old), blocked") {
		t.Errorf("plan --pr has exit code %d:\n%s", code, said)
	}
	p.write("main", "apps/other.yaml", yamlNamespace(p.name+"-other"), "another commit lands first")
	p.eventually("stale, and planned again", func() bool {
		got := p.shown(head, "plan")
		return len(got) == 5 && strings.HasPrefix(got[2], "pending: stale: ") && strings.Contains(got[1], "; asking members") && strings.HasPrefix(got[0], "success: ")
	})
	p.eventually("the comment edited in place", func() bool {
		all := p.plans(pr.Index) // the status is written before it
		return len(all) == 1 && all[0] != comment
	})

	for _, m := range p.members { // objects of others in a namespace hold its deletion
		noError(t, p.clients[m].CoreV1().ConfigMaps(p.name).Delete(t.Context(), "theirs", metav1.DeleteOptions{}))
	}
	p.forge.Merge("hub", pr.Index)
	p.shows(p.newest(), "rollout", "; 3 deletions blocked")
}
