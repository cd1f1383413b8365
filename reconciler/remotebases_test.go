package reconciler

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
)

// A basedSource has a commit with a remote base, in an overlay or in the hub.
type basedSource struct {
	crashingSource
	files fstest.MapFS
}

func (s *basedSource) Files(context.Context, string) (fs.FS, error) { return s.files, nil }

// A commit waits until its remote bases and charts are fetched, which happens beside, and is loaded again with them. While their server
// is down, only what overlays build of them fails, and a commit whose hub needs them stays refused.
func TestRemoteBasesAreFetchedBeside(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	const cluster = "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: east}}\n"
	const base = "resources: ['https://example.com/org/bases?ref=" + commit + "']\n"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	overlay := fstest.MapFS{
		"fleet/east.yaml": file(cluster), "apps/east/kustomization.yaml": file(base),
		"fleet/o.yaml": file("{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterOverlay, metadata: {name: o}, spec: {path: 'apps/${cluster.name}'}}\n"),
	}
	const base1, chart1, digest = "https://example.com/org/bases", "oci://example.com/charts/web:^1", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	chart := fstest.MapFS{
		"fleet/east.yaml": file(cluster), "gitfleet.lock.yaml": file("charts: [{repository: 'oci://example.com/charts', name: web, version: ^1, resolved: 1.2.0, digest: '" + digest + "'}]\n"),
		"fleet/c.yaml": file("{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterHelmChart, metadata: {name: c}, spec: {namespace: web, chart: {repository: 'oci://example.com/charts', name: web, version: ^1}}}\n"),
	}
	for name, test := range map[string]struct {
		files    fstest.MapFS
		failures int           // of the server, before it responds
		hangs    time.Duration // the server, before each response
		// after are what is known after the first attempt
		after string
		waits string
	}{
		"the server responds":                    {overlay, 0, 0, "in force", base1},
		"the server is down, and an overlay":     {overlay, 3, 0, "in force, and fails", base1},
		"the server is down, and a loose object": {fstest.MapFS{"fleet/east.yaml": file(cluster), "app/kustomization.yaml": file(base)}, 3, 0, "refused", base1},
		"a chart":                                {chart, 0, 0, "in force", chart1},
		"the registry is down, and a chart":      {chart, 3, 0, "in force, and fails", chart1},
		"the registry does not answer":           {chart, 1, 2 * time.Minute, "in force, and fails", chart1},
		"the registry is slow":                   {chart, 0, 5 * time.Second, "in force", chart1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fetched, attempts := false, 0
				options := hub.Options{Bases: func(string, string) (fs.FS, error) {
					if fetched {
						return fstest.MapFS{"kustomization.yaml": file("resources: [ns.yaml]\n"), "ns.yaml": file("{apiVersion: v1, kind: Namespace, metadata: {name: web}}\n")}, nil
					}
					return nil, errors.New("not here")
				}}
				options.Charts = func(lockfile.Chart) (fs.FS, error) {
					if fetched {
						return fstest.MapFS{"Chart.yaml": file("{apiVersion: v2, name: web, version: 1.2.0}\n"), "templates/ns.yaml": file("{apiVersion: v1, kind: Namespace, metadata: {name: web}}\n")}, nil
					}
					return nil, errors.New("not here")
				}
				c := newHistoryScene(t)
				c.commits.loader.guard = &crashguard.Guard{}
				c.cfg.Source, c.cfg.Loader = &basedSource{crashingSource{t, []string{"c1"}}, test.files}, hub.NewLoader(options)
				c.cfg.FetchBase = func(_ context.Context, url, hash string) error {
					if url != "https://example.com/org/bases" || hash != commit {
						t.Errorf("fetches %s %s", url, hash)
					}
					if attempts++; attempts <= test.failures {
						return errors.New("down")
					}
					fetched = true
					return nil
				}
				c.cfg.FetchChart = func(_ context.Context, chart hub.RemoteChart) error {
					if chart.Resolved != "1.2.0" || chart.Digest != digest {
						t.Errorf("fetches %+v", chart)
					}
					time.Sleep(test.hangs)
					if attempts++; attempts <= test.failures {
						return errors.New("down")
					}
					fetched = true
					return nil
				}
				state := func() string {
					for _, l := range c.inbox.drain().commits {
						c.commits.putInForce(l, c.ledger, time.Now())
						if waits := strings.Contains(strings.Join(c.commits.source.Fetches, ", "), test.waits); waits != l.waiting {
							t.Errorf("waiting is %t: %s", l.waiting, c.commits.source.Fetches)
						}
						if c.commits.source.LoadError != "" {
							t.Errorf("a commit that waits is refused: %s", c.commits.source.LoadError)
						}
					}
					switch {
					case len(c.commits.source.Problems.Errors()) > 0:
						return "refused"
					case c.commits.inForce == nil || c.commits.inForce.Commit.Hash != "c1":
						return "nothing"
					case len(c.commits.inForce.Warnings) > 0:
						return "in force, and fails"
					}
					return "in force"
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- c.commits.loader.followSource(ctx) }()
				synctest.Wait()
				if test.hangs > 0 {
					if got := state(); got != "nothing" {
						t.Errorf("at first: %s", got)
					}
					time.Sleep(longestFetchWait + time.Second)
					synctest.Wait()
				}
				if got := state(); got != test.after {
					t.Errorf("after the first attempt: %s, want %s", got, test.after)
				}
				time.Sleep(20 * time.Minute)
				synctest.Wait()
				if got := state(); got != "in force" {
					t.Errorf("at last: %s", got)
				}
				if attempts != test.failures+1 {
					t.Errorf("%d attempts", attempts)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
