package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
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
  minAge: 2s    # how long it has to last before; the default is 2m
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
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	for {
		list, _, err := d.forge.Client.ListRepoPullRequests(giteaserver.User, strings.TrimSuffix(repositoryName, ".git"), gitea.ListPullRequestsOptions{State: gitea.StateOpen})
		if err == nil && len(list) > 0 {
			d.forge.pull = list[0].HTMLURL
			return d.forge.pull, nil
		}
		select {
		case <-d.daemon.Ended():
			return "", d.daemon.failure(fmt.Sprintf("gitfleet ended: %v", d.daemon.Err()))
		case <-ctx.Done():
			return "", d.daemon.failure("it takes too long")
		case <-time.After(100 * time.Millisecond):
		}
	}
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
