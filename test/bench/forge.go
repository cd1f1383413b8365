package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/gitfleet/gitfleet/test/giteaserver"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/process"
)

// forgeScene measures the built binary with a Gitea: the time from a manual change on one of
// four members to its branch, and the requests to Gitea while pull requests are open and
// nothing happens.
func forgeScene(ctx context.Context, b *runner) (_ map[string]float64, err error) {
	const (
		times  = 9 // fewer than drift.maxOpen
		minAge = time.Second
		// settling is how long statuses and bodies may still be written; idle is the period
		// without changes that follows, a few times the interval between two lists.
		settling, idle = 100 * time.Second, 2 * time.Minute
	)
	f, err := b.clusters(ctx, true)
	if err != nil {
		return nil, err
	}
	namespace, members := fresh("forge"), f.Members()
	list := mix(namespace, 2*times)
	d, err := b.newDaemon(ctx, f.KubeconfigDir(), namespace, files(namespace, names(members), list))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	g, err := newCountedGitea(ctx, d.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	const repository = giteaserver.User + "/hub.git"
	if _, _, err := g.gitea.Client.CreateRepo(gitea.CreateRepoOption{Name: "hub", DefaultBranch: "main"}); err != nil {
		return nil, err
	}
	origin := strings.Replace(g.gitea.URL, "://", "://"+giteaserver.User+":"+g.gitea.Token+"@", 1) + "/" + repository
	if _, err := githttp.Git(d.repo.Dir, "push", "--quiet", origin, "main"); err != nil {
		return nil, err
	}
	proxied := strings.Replace(g.url, "://", "://"+giteaserver.User+":"+g.gitea.Token+"@", 1) + "/" + repository
	token := filepath.Join(d.dir, "forge-token")
	if err := os.WriteFile(token, []byte(g.gitea.Token), 0o600); err != nil {
		return nil, err
	}
	d.argv = append(d.argv, "--url", g.url+"/"+repository,
		"--set", "drift.mode=propose", "--set", "drift.minAge="+minAge.String(), "--set", "forge.type=gitea", "--set", "forge.tokenFile="+token,
		"--set", "pullRequests.plans=true", "--set", "pullRequests.rolloutStatus=true")
	if err := errors.Join(d.start(), d.applied(ctx, d.head)); err != nil {
		return nil, err
	}
	person, err := newBare(members[0].Config)
	if err != nil {
		return nil, err
	}
	var own, took, bare []float64
	for i, o := range slices.DeleteFunc(list, func(o object) bool { return o.kind != "ConfigMap" })[:times] {
		if err := person.send(ctx, http.MethodPatch, o.path, "application/merge-patch+json", []byte(`{"data":{"version":"tampered"}}`)); err != nil {
			return nil, err
		}
		at := time.Now()
		select {
		case p := <-g.pushes:
			own = append(own, max(0, milliseconds(p.received.Sub(at)-minAge)))
			took = append(took, max(0, milliseconds(p.answered.Sub(at)-minAge)))
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Minute):
			return nil, d.failure(o.name + " was not offered")
		}
		if err := wait(ctx, time.Second); err != nil { // until it has its pull request
			return nil, err
		}
		ms, err := barePush(d.repo, proxied, fmt.Sprintf("bare-%d", i), o)
		if err != nil {
			return nil, err
		}
		<-g.pushes
		bare = append(bare, ms)
	}
	if err := wait(ctx, settling); err != nil {
		return nil, err
	}
	before := g.requests.Load()
	if err := wait(ctx, idle); err != nil {
		return nil, err
	}
	return map[string]float64{
		"drift to push ms":   median(own),
		"drift to branch ms": median(took), "bare push ms": median(bare), "idle requests per minute": float64(g.requests.Load()-before) / idle.Minutes(),
	}, nil
}

// barePush returns how long git takes to push a branch with one commit that changes the file of an object, as the branches of
// gitfleet do, in milliseconds. The commit is there already. Both push through the proxy: a push without a commit, and past the
// proxy, would be less than what is compared with it.
func barePush(repo *githttp.Repo, url, branch string, o object) (float64, error) {
	if _, err := repo.Git("branch", branch, "main"); err != nil {
		return 0, err
	}
	if _, err := repo.Change(branch, githttp.Change{Files: map[string]string{o.file: strings.Replace(o.yaml, "first", "tampered", 1)}}); err != nil {
		return 0, err
	}
	began := time.Now()
	_, err := githttp.Git(repo.Dir, "push", "--quiet", url, branch)
	return milliseconds(time.Since(began)), err
}

// A countedGitea is a Gitea behind a proxy that counts the requests to its API.
type countedGitea struct {
	gitea *giteaserver.Instance
	proxy *http.Server
	// url is the address of the proxy.
	url      string
	requests atomic.Int64
	// pushes receives each push once it is answered.
	pushes chan push
}

// A push has the times at which Gitea received and answered it.
type push struct{ received, answered time.Time }

func newCountedGitea(ctx context.Context, dir string) (*countedGitea, error) {
	address, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	g := &countedGitea{pushes: make(chan push, 100)}
	if g.gitea, err = giteaserver.Launch(ctx, filepath.Join(dir, "gitea"), address, "of-a-bench"); err != nil {
		return nil, err
	}
	target, err := url.Parse(g.gitea.URL)
	if err != nil {
		return nil, errors.Join(err, g.gitea.Stop())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, g.gitea.Stop())
	}
	next := httputil.NewSingleHostReverseProxy(target)
	g.url = fmt.Sprintf("http://%s", listener.Addr())
	g.proxy = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			g.requests.Add(1)
		}
		received := time.Now()
		next.ServeHTTP(w, r)
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			g.pushes <- push{received, time.Now()}
		}
	})}
	go func() { _ = g.proxy.Serve(listener) }() // ends with close
	return g, nil
}

func (g *countedGitea) close() error { return errors.Join(g.proxy.Close(), g.gitea.Stop()) }
