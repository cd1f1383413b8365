package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/giteaserver"
)

// A proposing daemon follows a repository on a Gitea, and opens pull requests for drift there.
type proposing struct {
	*daemon
	forge *giteaserver.Server
}

func newProposing(t *testing.T) *proposing {
	t.Helper()
	return newProposingWith(t, func(string) map[string]string { return nil })
}

// newProposingWith is newProposing with more files in the repository, and more arguments.
func newProposingWith(t *testing.T, more func(namespace string) map[string]string, args ...string) *proposing {
	t.Helper()
	args = append([]string{"--set", "drift.mode=propose", "--set", "drift.minAge=1s", "--set", "forge.type=gitea", "--set", "forge.interval=1s", "--set", "forge.tokenEnv=FORGE_TOKEN"}, args...)
	p := &proposing{newDaemon(t, args...), giteaserver.Start(t)}
	files := map[string]string{
		"namespace.yaml": yamlNamespace(p.name),
		"apps/web.yaml":  "# The shop.\n" + strings.Replace(yamlDeployment(p.name, "web", 2), "\nspec:", "\n  annotations: {gitfleet.dev/available: \"true\"}\nspec:", 1),
		"secret.yaml":    "{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: " + p.name + "}, stringData: {password: canary-in-git}}\n",
		"place.yaml":     yamlPlacement("all", p.name, pickAll+"  strategy: {rollingUpdate: {maxUnavailable: 100%}}\n"),
	}
	for _, name := range p.members {
		files["clusters/"+name+".yaml"] = memberCluster(name)
	}
	maps.Copy(files, more(p.name))
	repository := p.forge.Repository("hub", files)
	p.args = append(p.args, "--url", p.forge.URL+"/"+repository+".git")
	p.env = []string{"FORGE_TOKEN=" + p.forge.Token}
	p.timeout = 5 * time.Minute
	return p
}

func (p *proposing) image(member, image string) {
	p.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image)
	_, err := p.clients[member].AppsV1().Deployments(p.name).Patch(context.Background(), "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	noError(p.t, err)
}

// web returns the image of the Deployment on a member, and its resource version.
func (p *proposing) web(member string) (image, version string) {
	d, err := p.clients[member].AppsV1().Deployments(p.name).Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		return "", ""
	}
	return d.Spec.Template.Spec.Containers[0].Image, d.ResourceVersion
}

func (p *proposing) waitForAll(image string, members ...string) {
	p.t.Helper()
	p.eventually("image "+image, func() bool {
		return !slices.ContainsFunc(members, func(m string) bool { got, _ := p.web(m); return got != image })
	})
}

// settled waits until all members have an image, and until the inventories say so: an earlier
// change may be overwritten by an apply that was interrupted.
func (p *proposing) settled(image string) {
	p.t.Helper()
	p.waitForAll(image, p.members...)
	p.until("applied", func(r *status.Report) bool { return len(r.Placements) == 1 && len(notApplied(r)) == 0 })
}

// pulls returns all pull requests, the oldest first.
func (p *proposing) pulls() []*gitea.PullRequest {
	p.t.Helper()
	list, _, err := p.forge.Client.ListRepoPullRequests(giteaserver.User, "hub", gitea.ListPullRequestsOptions{State: gitea.StateAll, Sort: "oldest"})
	noError(p.t, err)
	return list
}

// opened waits for the nth pull request.
func (p *proposing) opened(n int) *gitea.PullRequest {
	p.t.Helper()
	var all []*gitea.PullRequest
	p.eventually(fmt.Sprintf("pull request %d opened", n), func() bool { all = p.pulls(); return len(all) >= n })
	if len(all) > n {
		p.t.Fatalf("%d pull requests, want %d", len(all), n)
	}
	return all[n-1]
}

// waitForIssue waits for the nth issue.
func (p *proposing) waitForIssue(n int) *gitea.Issue {
	p.t.Helper()
	var all []*gitea.Issue
	p.eventually(fmt.Sprintf("issue %d opened", n), func() bool {
		var err error
		all, _, err = p.forge.Client.ListRepoIssues(giteaserver.User, "hub", gitea.ListIssueOption{Type: gitea.IssueTypeIssue, State: gitea.StateAll})
		noError(p.t, err)
		return len(all) >= n
	})
	if len(all) > n {
		p.t.Fatalf("%d issues, want %d", len(all), n)
	}
	return all[0] // the newest
}

func (p *proposing) closeIssue(i *gitea.Issue) {
	p.t.Helper()
	closed := gitea.StateClosed
	_, _, err := p.forge.Client.EditIssue(giteaserver.User, "hub", i.Index, gitea.EditIssueOption{State: &closed})
	noError(p.t, err)
}

// password changes the Secret on a member.
func (p *proposing) password(member, password string) {
	p.t.Helper()
	_, err := p.clients[member].CoreV1().Secrets(p.name).Patch(context.Background(), "token", types.MergePatchType,
		[]byte(`{"stringData":{"password":"`+password+`"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	noError(p.t, err)
}

func held(r *status.Report, clusters ...string) bool {
	return !slices.ContainsFunc(clusters, func(c string) bool {
		return !slices.ContainsFunc(r.Drifts, func(d status.Drift) bool {
			return d.Cluster == c && d.State == api.DriftHeld && strings.Contains(d.Message, "/pulls/")
		})
	})
}

// The same change on two of three members is one pull request: when it is merged, nothing but
// inventories is written to them; when it is closed, the next change is reverted on both.
func TestPullRequestIsOpenedForDrift(t *testing.T) {
	t.Parallel()
	p := newProposing(t)
	p.start()
	const before, after = "registry.example/app:1", "registry.example/app:2"
	p.settled(before)
	one, two, three := p.members[0], p.members[1], p.members[2]
	p.password(three, "canary-on-member")
	issue := p.waitForIssue(1)
	if !strings.Contains(issue.Body, diff.Mask) || !strings.Contains(issue.Body, "`"+three+"`") || !strings.Contains(issue.Body, "gitfleet does not know values of Secrets") {
		t.Errorf("the issue is\n%s", issue.Body)
	}
	p.until("a Secret is held", func(r *status.Report) bool {
		return slices.ContainsFunc(r.Drifts, func(d status.Drift) bool {
			return d.Cluster == three && d.State == api.DriftHeld && strings.Contains(d.Message, "offered as "+issue.HTMLURL)
		})
	})
	p.closeIssue(issue)
	p.until("the Secret is put back", func(r *status.Report) bool {
		return slices.ContainsFunc(r.Drifts, func(d status.Drift) bool {
			return d.Cluster == three && d.State == api.DriftRepaired && strings.Contains(d.Message, issue.HTMLURL+" was closed")
		})
	})
	p.image(one, after)
	p.image(two, after)
	pr := p.opened(1)
	p.until("the pull request is reported", func(r *status.Report) bool { return held(r, one, two) })
	p.waitForAll(after, one, two)
	p.waitForAll(before, three)
	edit, _, err := p.forge.Client.GetPullRequestDiff(giteaserver.User, "hub", pr.Index, gitea.PullRequestDiffOptions{})
	noError(t, err)
	var changed []string
	for _, line := range strings.Split(string(edit), "\n") {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			changed = append(changed, line)
		}
	}
	for _, want := range []string{"+++ b/apps/override-web-", "+                      - " + one + "\n+                      - " + two + "\n", "+            path: /spec/template/spec/containers/0/image\n+            value: " + after} {
		if got := strings.Join(changed, "\n"); !strings.Contains(got, want) || strings.Contains(got, three) {
			t.Errorf("the diff is\n%s\nwant in it\n%s", got, want)
		}
	}
	p.eventually("both clusters are named", func() bool {
		body := pr.Body
		return strings.Contains(body, "`"+one+"`, `"+two+"`") && strings.Contains(body, "kubectl-edit (Update)")
	})

	_, versionOne := p.web(one)
	_, versionTwo := p.web(two)
	p.forge.Merge("hub", pr.Index)
	p.until("in Git and on the members", func(r *status.Report) bool {
		return len(notApplied(r)) == 0 && !slices.ContainsFunc(r.Drifts, func(d status.Drift) bool { return d.Kind == "Deployment" && d.State != api.DriftEnded })
	})
	for member, was := range map[string]string{one: versionOne, two: versionTwo} {
		if image, version := p.web(member); image != after || version != was {
			t.Errorf("%s: the Deployment was written: %s, version %s, was %s", member, image, version, was)
		}
	}

	p.waitForAll(before, three)

	p.image(one, "registry.example/app:3")
	p.image(two, "registry.example/app:3")
	second := p.opened(2)
	p.until("held on both", func(r *status.Report) bool { return held(r, one, two) })
	p.forge.Close("hub", second.Index)
	p.waitForAll(after, one, two)
	r := p.until("restored", func(r *status.Report) bool {
		return !slices.ContainsFunc(r.Drifts, func(d status.Drift) bool { return d.State != api.DriftRepaired })
	})
	for _, d := range r.Drifts {
		if d.Kind == "Deployment" && d.Cluster != three && !strings.Contains(d.Message, "was closed without merging") {
			t.Errorf("the drift on %s says %q", d.Cluster, d.Message)
		}
	}
	p.image(one, "registry.example/app:3") // the same change again
	p.waitForAll(after, one)
	all := p.pulls()
	if len(all) != 2 || strings.Contains(all[0].Body+all[1].Body+issue.Body, "canary") {
		t.Errorf("%d pull requests: %s", len(all), all[0].Body)
	}
	if log, err := os.ReadFile(p.log.Name()); err != nil || strings.Contains(string(log), p.forge.Token) {
		t.Errorf("the log has the token: %v", err)
	}
}

// Killed between any two steps, gitfleet opens exactly one pull request or issue.
func TestProposalsSurviveACrash(t *testing.T) {
	t.Parallel()
	p := newProposing(t)
	p.program = faulty
	p.start()
	p.settled("registry.example/app:1")
	p.stop()
	one := p.members[0]
	for i, place := range []string{"before branch:1", "after branch:1", "after pull request:1"} {
		env := p.env
		p.env = append(slices.Clone(env), "GITFLEET_CRASH_AT="+place)
		p.start()
		p.image(one, fmt.Sprint("registry.example/app:new-", i))
		p.waitForCrash(place)
		p.env = env
		p.start()
		p.until("the pull request is reported", func(r *status.Report) bool { return held(r, one) })
		pr := p.opened(i + 1)
		p.forge.Close("hub", pr.Index)
		p.waitForAll("registry.example/app:1", one)
		p.stop()
	}
	env := p.env
	p.env = append(slices.Clone(env), "GITFLEET_CRASH_AT=after issue:1")
	p.start()
	p.password(one, "changed")
	p.waitForCrash("after issue:1")
	p.env = env
	p.start()
	p.until("offered", func(r *status.Report) bool {
		return slices.ContainsFunc(r.Drifts, func(d status.Drift) bool {
			return d.State == api.DriftHeld && strings.Contains(d.Message, "/issues/")
		})
	})
	p.waitForIssue(1)
}
