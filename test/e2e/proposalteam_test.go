package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/giteaserver"
	"github.com/gitfleet/gitfleet/test/golden"
)

// setting changes the ConfigMap of a team's world on a member.
func (p *proposing) setting(member, value string) {
	p.t.Helper()
	_, err := p.clients[member].CoreV1().ConfigMaps(p.name).Patch(p.t.Context(), "settings", types.MergePatchType,
		[]byte(`{"data":{"value":"`+value+`"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	noError(p.t, err)
}

// becomes waits until a pull request has a title and texts in its body. Gitea changes them one after the other.
func (p *proposing) becomes(number int64, title string, texts ...string) *gitea.PullRequest {
	p.t.Helper()
	pr := &gitea.PullRequest{}
	p.patiently(fmt.Sprintf("%s with %q", title, texts), func() bool {
		var err error
		pr, _, err = p.forge.Client.GetPullRequest(giteaserver.User, "hub", number)
		noError(p.t, err)
		return pr.Title == title && !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(pr.Body, want) })
	})
	return pr
}

// patiently is eventually for what gitfleet does after a minute.
func (p *proposing) patiently(what string, ok func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(p.timeout); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if ok() {
			return
		}
	}
	p.t.Fatalf("not %s", what)
}

// answers returns gitfleet's answers to commands on a pull request.
func (p *proposing) answers(number int64) []string {
	p.t.Helper()
	return slices.DeleteFunc(p.comments(number), func(c string) bool { return !strings.Contains(c, "<!-- gitfleet: answers ") })
}

var (
	hashes   = regexp.MustCompile(`\b[0-9a-f]{8,64}\b`)
	instants = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
)

// asShown returns a text of the forge without what is different in each run.
func (p *proposing) asShown(text string) string {
	text = strings.NewReplacer(p.name, "shop", p.forge.URL, "https://git.example.com", "\r\n", "\n").Replace(text)
	return hashes.ReplaceAllString(instants.ReplaceAllString(text, "2027-01-15T12:00:00Z"), "0123abcd")
}

// The drift of a placement is one pull request, which changes join and leave. Its reviews are requested of the configured users,
// and by the forge of the owners of its files. Commands are executed if their author may write to the repository. Merging it
// adopts all of it without a write. What people see of it, and of the plan of one of theirs, is in testdata and in the pictures
// of the documentation.
func TestATeamDecidesAboutDrift(t *testing.T) {
	t.Parallel()
	p := newProposingWith(t, func(namespace string) map[string]string {
		return map[string]string{"apps/settings.yaml": yamlConfigMap(namespace, "settings", "1"), ".gitea/CODEOWNERS": "apps/.*\\.yaml @grace\n"}
	}, "--set", "drift.group=placement", "--set", "drift.reviewers=ada", "--set", "pullRequests.plans=true")
	ada, guest := p.forge.AddUser("ada"), p.forge.AddUser("guest")
	p.forge.AddUser("grace")
	write := gitea.AccessModeWrite
	_, err := p.forge.Client.AddCollaborator(giteaserver.User, "hub", "ada", gitea.AddCollaboratorOption{Permission: &write})
	noError(t, err)
	p.start()
	const before, after = "registry.example/app:1", "registry.example/app:2"
	p.settled(before)

	const askedForReviews = "<!-- gitfleet asked for reviews: fdee430d40bd -->" // by the hash of ada
	one := p.members[0]
	p.image(one, after)
	alone := "Drift: Deployment " + p.name + "/web: image changed on 1 of 3 clusters"
	pr := p.becomes(p.opened(1).Index, alone, askedForReviews)
	var reviewers []string
	p.eventually("reviews are requested", func() bool {
		reviewers = nil
		reviews, _, err := p.forge.Client.ListPullReviews(giteaserver.User, "hub", pr.Index, gitea.ListPullReviewsOptions{})
		noError(t, err)
		for _, r := range reviews {
			if r.State == gitea.ReviewStateRequestReview && r.Reviewer != nil {
				reviewers = append(reviewers, r.Reviewer.UserName)
			}
		}
		slices.Sort(reviewers)
		return slices.Equal(reviewers, []string{"ada", "grace"})
	})
	p.until("the pull request is reported", func(r *status.Report) bool { return held(r, one) })
	golden.File(t, "testdata/drift-pull-request.md", p.asShown(pr.Title+"\n\n"+pr.Body))

	p.write("bigger", "apps/web.yaml", strings.Replace(p.contentOf("main", "apps/web.yaml"), "replicas: 2", "replicas: 3", 1), "three replicas")
	theirs, _, err := ada.CreatePullRequest(giteaserver.User, "hub", gitea.CreatePullRequestOption{Head: "bigger", Base: "main", Title: "Three replicas"})
	noError(t, err)
	p.eventually("planned", func() bool { return len(p.plans(theirs.Index)) > 0 })
	p.shows(theirs.Head.Sha, "plan", "success: ")
	golden.File(t, "testdata/plan-pull-request.md", p.asShown(theirs.Title+"\n\n"+p.plans(theirs.Index)[0]))

	p.setting(one, "2")
	both, web := "Drift: crp/all: 2 changes on 1 cluster", "### `Deployment "+p.name+"/web`: image changed on 1 of 3 clusters"
	settings := "### `ConfigMap " + p.name + "/settings`: value changed on 1 of 3 clusters"
	p.becomes(pr.Index, both, web, settings, "- \"1\"\n+ \"2\"\n")
	p.setting(one, "1") // by hand
	p.becomes(pr.Index, alone, "`Deployment "+p.name+"/web` was changed on 1 of 3 clusters")
	p.setting(one, "3")
	p.becomes(pr.Index, both, web, settings, "- \"1\"\n+ \"3\"\n")

	say := func(c *gitea.Client, text string) {
		t.Helper()
		_, _, err := c.CreateIssueComment(giteaserver.User, "hub", pr.Index, gitea.CreateIssueCommentOption{Body: text})
		noError(t, err)
	}
	say(guest, "/gitfleet revert")
	for i, command := range []string{"hold", "unhold"} {
		say(ada, "/gitfleet "+command)
		p.eventually(command+" is answered", func() bool { return len(p.answers(pr.Index)) == i+1 })
		labels, _, err := p.forge.Client.GetIssueLabels(giteaserver.User, "hub", pr.Index, gitea.ListLabelsOptions{})
		noError(t, err)
		if has := slices.ContainsFunc(labels, func(l *gitea.Label) bool { return l.Name == "gitfleet/hold" }); has != (command == "hold") {
			t.Errorf("after %s the pull request has the label: %t", command, has)
		}
	}
	if log, err := os.ReadFile(p.log.Name()); err != nil || !strings.Contains(string(log), "its author may not write to the repository") {
		t.Errorf("the log does not say whose command was left alone: %v", err)
	}

	_, version := p.web(one)
	p.forge.Merge("hub", pr.Index)
	p.until("in Git and on the members", func(r *status.Report) bool {
		return len(notApplied(r)) == 0 && !slices.ContainsFunc(r.Drifts, func(d status.Drift) bool { return d.State != api.DriftEnded && d.State != api.DriftRepaired })
	})
	if image, now := p.web(one); image != after || now != version || p.configMap(one, "settings")["value"] != "3" {
		t.Errorf("after the merge %s has %s, version %s, was %s, and the setting %v", one, image, now, version, p.configMap(one, "settings"))
	}
	if image, _ := p.web(p.members[1]); image != before || p.configMap(p.members[1], "settings")["value"] != "1" {
		t.Errorf("the merge changes %s", p.members[1])
	}
	if all := p.pulls(); len(all) != 2 {
		t.Errorf("%d pull requests", len(all))
	}
}

// With a token that may do less than it should, drift stays held, each reason names the missing scope, few requests are sent, and
// what is possible is done. Once the token may do it, the rest follows.
func TestTokensThatMayDoLess(t *testing.T) {
	t.Parallel()
	token := t.TempDir() + "/token"
	p := newProposingWith(t, func(string) map[string]string { return nil }, "--set", "forge.tokenEnv=", "--set", "forge.tokenFile="+token)
	allow := func(scopes string) {
		t.Helper()
		noError(t, os.WriteFile(token, []byte(p.forge.TokenFor(giteaserver.User, scopes)), 0o600))
	}
	allow("read:repository,read:issue,read:user")
	p.start()
	const before, after = "registry.example/app:1", "registry.example/app:2"
	p.settled(before)
	one, three := p.members[0], p.members[2]
	p.image(one, after)
	says := func(kind string, wants ...string) {
		t.Helper()
		p.until(fmt.Sprint(kind, " says ", wants), func(r *status.Report) bool {
			return slices.ContainsFunc(r.Drifts, func(d status.Drift) bool {
				return d.Kind == kind && d.State == api.DriftHeld && !slices.ContainsFunc(wants, func(w string) bool { return !strings.Contains(d.Message, w) })
			})
		})
	}
	says("Deployment", "left as it is; not offered as a pull request since ", "403 Forbidden: Forbidden (the token must be allowed to write to the repository)")

	allow("write:repository,read:user") // no scope for issues, of which labels are a part
	pr := p.opened(1)
	says("Deployment", "offered as "+pr.HTMLURL)
	if len(pr.Labels) > 0 {
		t.Errorf("labels: %v", pr.Labels)
	}
	p.password(three, "canary-on-member")
	says("Secret", "left as it is; not offered as an issue since ", "required=[read:issue]")
	requests := strings.Count(p.forge.Log(), "/issues?")
	p.image(one, before) // by hand, so that the pull request is to be closed
	p.until("over", func(r *status.Report) bool {
		return !slices.ContainsFunc(r.Drifts, func(d status.Drift) bool { return d.Kind == "Deployment" && d.State == api.DriftHeld })
	})
	p.image(one, "registry.example/app:3")
	says("Deployment", "offered as ", "/pulls/2")
	p.patiently("the first pull request is closed", func() bool { return p.pulls()[0].State == gitea.StateClosed })

	allow("write:repository,write:issue,read:user")
	says("Secret", "offered as ", "/issues/")
	if n := strings.Count(p.forge.Log(), "/issues?") - requests; n > 60 {
		t.Errorf("issues were asked for %d times", n)
	}
	if log, err := os.ReadFile(p.log.Name()); err != nil || !strings.Contains(string(log), "labels of a pull request not set") {
		t.Errorf("the log does not say that labels are missing: %v", err)
	}
}
