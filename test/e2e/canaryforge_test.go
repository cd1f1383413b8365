package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/giteaserver"
)

// Nothing that gitfleet writes to a forge contains the value of a Secret: of one that drifts,
// of one in a file that is edited for another object, of one that a pull request changes, and
// of one that a pull request breaks. An annotation of the Secret has the same value.
func TestPullRequestsContainNoSecret(t *testing.T) {
	t.Parallel()
	noted := func(password, note string) string {
		return strings.Replace(strings.Replace(yamlSecret("NAMESPACE", "s"), canaryInGit, password, 1), "metadata: {", "metadata: {annotations: {note: "+note+"}, ", 1)
	}
	var namespace string
	p := newProposingWith(t, func(name string) map[string]string {
		namespace = name
		return map[string]string{
			"mixed.yaml": strings.ReplaceAll(noted(canaryInGit, canaryInGit), "NAMESPACE", name) + "---\n" + yamlConfigMap(name, "beside", "1"),
		}
	}, "--set", "pullRequests.plans=true", "--set", "pullRequests.rolloutStatus=true", "--log-level", "debug")
	p.start()
	p.settled("registry.example/app:1")
	one, ctx := p.members[0], context.Background()

	patch := `{"stringData":{"password":"` + canaryOnMember + `","extra":"` + canaryOnMember + `"},"metadata":{"annotations":{"note":"` + canaryOnMember + `"}}}`
	_, err := p.clients[one].CoreV1().Secrets(namespace).Patch(ctx, "s", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	noError(t, err)
	for _, m := range p.members {
		_, err = p.clients[m].CoreV1().ConfigMaps(namespace).Patch(ctx, "beside", types.MergePatchType, []byte(`{"data":{"value":"2"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		noError(t, err)
	}
	drift := p.opened(1)
	p.until("the Secret is held", func(r *status.Report) bool {
		return slices.ContainsFunc(r.Drifts, func(d status.Drift) bool {
			return d.Kind == "Secret" && d.State == api.DriftHeld && strings.Contains(d.Message, "/issues/")
		})
	})
	issue := p.waitForIssue(1)

	planned := func(branch, text, want string) *gitea.PullRequest {
		t.Helper()
		p.write(branch, "mixed.yaml", strings.ReplaceAll(text, "NAMESPACE", namespace)+"---\n"+yamlConfigMap(namespace, "beside", "1"), "change the Secret")
		pr, _, err := p.forge.Client.CreatePullRequest(giteaserver.User, "hub", gitea.CreatePullRequestOption{Head: branch, Base: "main", Title: "Change the Secret"})
		noError(t, err)
		p.eventually("a plan that says "+want, func() bool {
			plans := p.plans(pr.Index)
			return len(plans) > 0 && strings.Contains(plans[0], want)
		})
		return pr
	}
	changed := planned("changed", noted(canaryEncoded, canaryEncoded), diff.Mask)
	broken := planned("broken", strings.Replace(noted(canaryEncoded, canaryEncoded), "{password: "+canaryEncoded+"}", "[password, "+canaryEncoded+", "+canaryNumber+"]", 1), "mixed.yaml:4")
	p.shows(changed.Head.Sha, "plan", "success: ")
	p.shows(broken.Head.Sha, "plan", "failure: ")
	p.eventually("the problem on its line", func() bool {
		return slices.ContainsFunc(p.lineComments(broken.Index), func(c *gitea.PullReviewComment) bool { return c.Path == "mixed.yaml" && c.LineNum == 4 })
	})
	p.shows(drift.Head.Sha, "plan", "success: ")
	p.shows(p.newest(), "rollout", "")

	texts := map[string]string{"the issue": issue.Title + "\n" + issue.Body}
	for _, pr := range p.pulls() {
		name := fmt.Sprint("pull request ", pr.Index)
		texts[name] = pr.Title + "\n" + pr.Body
		texts["the comments on "+name] = strings.Join(p.comments(pr.Index), "\n")
		texts["the statuses of "+name] = strings.Join(slices.Concat(p.shown(pr.Head.Sha, "plan"), p.shown(pr.Head.Sha, "rollout")), "\n")
		for _, c := range p.lineComments(pr.Index) {
			texts["a comment on a line of "+name] += c.Body
		}
		texts["the plan of "+name], _ = p.cli("plan", "--pr", fmt.Sprint(pr.Index))
	}
	texts["the statuses of main"] = strings.Join(p.shown(p.newest(), "rollout"), "\n")
	commit, _, err := p.forge.Client.GetSingleCommit(giteaserver.User, "hub", p.branchHead(drift.Head.Ref))
	noError(t, err)
	texts["the commit of the drift"] = commit.RepoCommit.Message
	edit, _, err := p.forge.Client.GetPullRequestDiff(giteaserver.User, "hub", drift.Index, gitea.PullRequestDiffOptions{})
	noError(t, err)
	for line := range strings.Lines(string(edit)) {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			texts["the edit of the drift"] += line
		}
	}
	log, err := os.ReadFile(p.log.Name())
	noError(t, err)
	texts["the log"], texts["the log of Gitea"] = string(log), p.forge.Log()
	for name, text := range texts {
		if text == "" && name != fmt.Sprint("the comments on pull request ", drift.Index) {
			t.Errorf("%s: empty", name)
		}
		for _, canary := range leakedCanaries(text) {
			t.Errorf("%s contains %s", name, canary)
		}
		if strings.Contains(text, p.forge.Token) {
			t.Errorf("%s contains the token", name)
		}
	}
	if branches, _, err := p.forge.Client.ListRepoBranches(giteaserver.User, "hub", gitea.ListRepoBranchesOptions{}); err != nil || len(branches) != 4 {
		t.Errorf("%d branches, want main, two of people and one of a drift: %v", len(branches), err)
	}
}
