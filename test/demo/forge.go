package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/test/giteaserver"
)

// forgeAddress is the address of Gitea, unless it is in use.
const forgeAddress = "127.0.0.1:8087"

// forgePassword is the password of the Gitea user; Gitea listens on the loopback interface
// only.
const forgePassword = "gitfleet-demo"

// A forge is a running Gitea that serves the repository.
type forge struct {
	*giteaserver.Instance
	pull string // the URL of the pull request for the drift
	plan string // the URL of the pull request with a plan
}

// startForge runs a Gitea with an empty repository.
func (d *demo) startForge(ctx context.Context, r *repository) error {
	address, err := free(forgeAddress)
	if err != nil {
		return err
	}
	instance, err := giteaserver.Launch(ctx, d.file("gitea"), address, forgePassword)
	if err != nil {
		return err
	}
	d.forge = &forge{Instance: instance}
	if err := os.WriteFile(d.file("forge-token"), []byte(instance.Token), 0o600); err != nil {
		return err
	}
	name := strings.TrimSuffix(repositoryName, ".git")
	if _, resp, err := instance.Client.GetRepo(giteaserver.User, name); err != nil {
		if resp == nil || resp.StatusCode != http.StatusNotFound {
			return fmt.Errorf("look for the repository: %w", err)
		}
		if _, _, err := instance.Client.CreateRepo(gitea.CreateRepoOption{Name: name, DefaultBranch: branch}); err != nil {
			return fmt.Errorf("create the repository: %w", err)
		}
	}
	path := "/" + giteaserver.User + "/" + repositoryName
	r.url = instance.URL + path
	r.origin = strings.Replace(instance.URL, "://", "://"+giteaserver.User+":"+instance.Token+"@", 1) + path
	return nil
}

// forgeSettings returns the part of the daemon's configuration for the forge.
func (d *demo) forgeSettings() string {
	if d.forge == nil {
		return ""
	}
	return fmt.Sprintf(`drift:
  mode: propose # what others change is left as it is, and offered as a pull request
  additions: propose # and so is what they add
  minAge: 2s    # how long it has to last before; the default is 2m
pullRequests:
  plans: true   # what merging a pull request would change, as a comment on it
forge:
  type: gitea
  tokenFile: %s
  interval: 2s  # between two looks at the pull requests; the default is 30s
`, quote(d.file("forge-token")))
}

// changed is the object that the demo changes on a cluster.
var changed = victim{"member-2", "platform", "fleet-info"}

const change = `{"data":{"log-level":"debug"}}`

// offerDrift changes an object on a cluster, and waits for the pull request.
func (d *demo) offerDrift(ctx context.Context) (string, error) {
	m, err := openMember(changed.Cluster, d.kubeconfigs())
	if err != nil {
		return "", err
	}
	defer m.client.CloseIdleConnections()
	body, err := m.ask(ctx, http.MethodPatch, changed.path()+"?fieldManager=somebody", "application/merge-patch+json", change)
	if err != nil {
		return "", err
	}
	body.Close()
	name := strings.TrimSuffix(repositoryName, ".git")
	err = d.awaitForge(ctx, func(ctx context.Context) bool {
		list, _, err := d.forge.Client.ListRepoPullRequests(giteaserver.User, name, gitea.ListPullRequestsOptions{State: gitea.StateOpen})
		i := slices.IndexFunc(list, func(pr *gitea.PullRequest) bool {
			return pr.Head != nil && strings.HasPrefix(pr.Head.Name, "gitfleet/drift/") && strings.Contains(pr.Title, changed.Namespace+"/"+changed.Name)
		})
		if err != nil || i < 0 {
			return false
		}
		d.forge.pull = list[i].HTMLURL
		status, err := d.gitfleet(ctx, "status") // which is printed next
		return err == nil && strings.Contains(status, d.forge.pull)
	})
	return d.forge.pull, err
}

// The pull request of a person that the demo opens, and the file that it adds.
const (
	planBranch = "motd"
	planFile   = "platform/motd.yaml"
	planned    = `apiVersion: v1
kind: ConfigMap
metadata:
  name: motd
  namespace: platform
data:
  text: Hello from a pull request
`
)

// showPlan opens a pull request, and waits for its plan.
func (d *demo) showPlan(ctx context.Context) (string, error) {
	name := strings.TrimSuffix(repositoryName, ".git")
	pr, _, err := d.forge.Client.GetPullRequestByBaseHead(giteaserver.User, name, branch, planBranch)
	if err != nil { // it is not there from an earlier demo
		_, _, err := d.forge.Client.CreateFile(giteaserver.User, name, planFile, gitea.CreateFileOptions{
			FileOptions: gitea.FileOptions{Message: "Add a message of the day", BranchName: branch, NewBranchName: planBranch},
			Content:     base64.StdEncoding.EncodeToString([]byte(planned)),
		})
		if err != nil {
			return "", fmt.Errorf("push a branch: %w", err)
		}
		pr, _, err = d.forge.Client.CreatePullRequest(giteaserver.User, name, gitea.CreatePullRequestOption{Head: planBranch, Base: branch, Title: "Add a message of the day"})
		if err != nil {
			return "", fmt.Errorf("open a pull request: %w", err)
		}
	}
	d.forge.plan = pr.HTMLURL
	return d.forge.plan, d.awaitForge(ctx, func(context.Context) bool {
		list, _, err := d.forge.Client.ListIssueComments(giteaserver.User, name, pr.Index, gitea.ListIssueCommentOptions{})
		return err == nil && len(list) > 0
	})
}

// awaitForge waits until done returns true.
func (d *demo) awaitForge(ctx context.Context, done func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	for !done(ctx) {
		select {
		case <-d.daemon.Ended():
			return d.daemon.failure(fmt.Sprintf("gitfleet ended: %v", d.daemon.Err()))
		case <-ctx.Done():
			return d.daemon.failure("it takes too long")
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// forgeTour explains what to look at on the forge.
func (d *demo) forgeTour() []string {
	kubectl := fmt.Sprintf("kubectl --kubeconfig %s --context %s -n %s", shell(d.short(d.kubeconfig())), changed.Cluster, changed.Namespace)
	return []string{
		"", d.paint(bold, "A drift is a pull request."),
		fmt.Sprintf("Somebody set log-level of %s to debug. gitfleet left it as it is, and opened a pull request:", changed), "",
		"    " + d.forge.pull, "",
		fmt.Sprintf("Sign in as %s with the password %s. Merge it, and Git has the change;", giteaserver.User, forgePassword),
		"close it, and the change is put back. To see both, and to make another change:", "",
		"    " + d.command() + " drift list",
		"    " + kubectl + " get configmap " + changed.Name + " -o yaml",
		"    " + kubectl + " patch configmap " + changed.Name + ` --type=merge --patch='{"data":{"contact":"somebody@example.com"}}'`,
		"", d.paint(bold, "A pull request has a plan."),
		"Somebody wants to add a ConfigMap. gitfleet has commented what merging that would change:", "",
		"    " + d.forge.plan,
	}
}

// stop stops the Gitea.
func (f *forge) stop() error {
	select {
	case <-f.Ended():
		return nil
	default:
		return f.Stop()
	}
}
