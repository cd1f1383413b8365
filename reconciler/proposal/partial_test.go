package proposal

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// If no override can express a change of some clusters, it is offered as an issue once it has
// lasted long enough: until then the other clusters may report the same change, so that a pull
// request for all is possible.
func TestAChangeOfSomeClustersWaitsForTheOthers(t *testing.T) {
	files := world.Files(t, smallFleet)
	gone := func(d *protocol.Drift) { d.Deleted = true }
	withoutOverrides := func(tree fs.FS) (*hub.Snapshot, error) {
		if found, _ := fs.Glob(tree, "override-*"); len(found) > 0 {
			return nil, &hub.LoadError{Problems: problem.List{{Severity: problem.Error, Message: "no overrides here"}}}
		}
		return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, tree)
	}
	held := func(p *proposing, d time.Duration, clusters ...string) {
		t.Helper()
		p.report = reporting(t, files, gone, clusters...)
		p.group(t.Context())
		p.after(t, d, p.follower.known.offers...)
	}
	begin := func() *proposing {
		p := newProposing(10)
		p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) { return files, nil }
		p.collector.load = withoutOverrides
		held(p, time.Minute, "east")
		p.says(t, "east", "held: left as it is; offered as an issue once it has lasted for 2m0s; no edit of the files makes the change: no override can delete it on these clusters only")
		return p
	}

	p := begin()
	held(p, 70*time.Second, "east")
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/issues/1; no edit of the files makes the change: no override can delete it on these clusters only")

	// once all clusters have the change, it is offered as a pull request
	held(p, time.Minute, "east", "west")
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
	if i := p.forge.Issues[0]; i.State != forge.Closed || !endedByGitfleet(i.Body) {
		t.Errorf("the issue is %+v", i)
	}

	// without issues it is reverted, but not before the other clusters may have reported it
	p = newProposing(10)
	p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) { return files, nil }
	p.collector.load = withoutOverrides
	p.forge.refuseIssues = forge.ErrIssuesDisabled
	held(p, time.Minute, "east")
	p.says(t, "east", "held: left as it is until it has lasted for 2m0s, in case other clusters have the same change: no override can delete it on these clusters only")
	held(p, 70*time.Second, "east")
	p.says(t, "east", "put back: put back, since it cannot be offered as a pull request: no override can delete it on these clusters only; nor as an issue, since issues are disabled in the repository")

	p = begin()
	held(p, 70*time.Second, "east", "west")
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1")
	if n := len(p.forge.Pulls); n != 1 {
		t.Errorf("%d pull requests", n)
	}

	// the label keeps the object as it is, also once no edit can make the change any more
	p.forge.Pulls[0].Labels = append(p.forge.Pulls[0].Labels, holdLabel)
	held(p, time.Minute, "east", "west")
	held(p, time.Minute, "east")
	held(p, time.Hour, "east")
	p.says(t, "east", "held: left as it is; offered as https://git.example.com/pulls/1; the pull request is not kept up to date, since no edit of the files makes the change any more")
	p.forge.Pulls[0].State = forge.Closed
	held(p, time.Hour, "east")
	p.says(t, "east", "held: left as it is; https://git.example.com/pulls/1 has the label gitfleet/hold; the pull request is not kept up to date, since no edit of the files makes the change any more")

	// if a file cannot be read, a change of some clusters is not offered for all of them
	p = newProposing(10)
	p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) { return files, nil }
	p.collector.load = func(tree fs.FS) (*hub.Snapshot, error) {
		if found, _ := fs.Glob(tree, "override-*"); len(found) > 0 {
			return nil, errors.New("interrupted")
		}
		return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, tree)
	}
	p.report = reporting(t, files, valued("x"), "east")
	p.group(t.Context())
	p.after(t, time.Hour)
	if got := p.decided("east"); !strings.Contains(got, "cannot be read") || len(p.forge.Pulls) > 0 {
		t.Errorf("decided %q, %d pull requests", got, len(p.forge.Pulls))
	}

	// without issues, a change that cannot be offered for any clusters is not delayed
	p = newProposing(10)
	p.forge.refuseIssues = forge.ErrIssuesDisabled
	p.follower.tracker.cfg.Files = func(context.Context, string) (fs.FS, error) { return files, nil }
	p.collector.load = withoutOverrides
	p.report = reporting(t, files, func(d *protocol.Drift) {
		d.Paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/value", ValueInHub: "another", ValueInMember: "x"}}}
	}, "east")
	p.group(t.Context())
	p.after(t, 10*time.Second, p.follower.known.offers...)
	if got := p.decided("east"); !strings.HasPrefix(got, "put back: put back, since it cannot be offered") {
		t.Errorf("decided %q", got)
	}
}
