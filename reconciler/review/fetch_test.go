package review

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
)

const lockedChart = `charts:
- {repository: "oci://r.example/charts", name: web, version: ^1, resolved: 1.0.0, digest: "sha256:` + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + `"}
`

const chartOfRegistry = `apiVersion: gitfleet.dev/v1alpha1
kind: ClusterHelmChart
metadata: {name: web}
spec: {chart: {repository: "oci://r.example/charts", name: web, version: ^1}, namespace: web}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: chart}
spec:
  resourceSelectors: [{group: gitfleet.dev, version: v1alpha1, kind: ClusterHelmChart, name: web}]
  policy: {placementType: PickAll}
`

// What a pull request locks newly is fetched for its plan. For one from a fork nothing is fetched, and the comment says so, as it does
// when fetching fails.
func TestWhatAPullRequestLocksIsFetched(t *testing.T) {
	for name, test := range map[string]struct {
		fork    bool
		fails   error
		fetches int
		want    string
	}{
		"fetched":     {false, nil, 1, "+ ConfigMap/web/rendered (crp/chart)"},
		"from a fork": {true, nil, 0, "- `chart oci://r.example/charts/web:^1`\n\nNothing is fetched for a pull request from a fork."},
		"refused":     {false, errors.New("https://token@r.example: denied"), 1, "- `chart oci://r.example/charts/web:^1`\n\nIt could not be fetched; the log of gitfleet says why."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulatedFleet(t)
			s.commit(hash("b"), files(t, small))
			pr := pullRequest(1, hash("1"))
			pr.Fork = test.fork
			merged := files(t, small)
			merged["gitfleet.lock.yaml"] = &fstest.MapFile{Data: []byte(lockedChart)}
			merged["chart.yaml"] = &fstest.MapFile{Data: []byte(chartOfRegistry)}
			f := newForge(pr)
			v := newReviewer(f, fakeSource{merged: map[string]fs.FS{hash("1"): merged}})
			there, fetches := false, 0
			v.cfg.Loader = hub.NewLoader(hub.Options{Charts: func(lockfile.Chart) (fs.FS, error) {
				if !there {
					return nil, fs.ErrNotExist
				}
				return fstest.MapFS{
					"Chart.yaml":       {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
					"templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rendered, namespace: web}\n")},
				}, nil
			}})
			v.cfg.FetchBase = func(context.Context, string, string) error { return nil }
			v.cfg.FetchChart = func(context.Context, hub.RemoteChart) error {
				fetches++
				there = test.fails == nil
				return test.fails
			}
			v.cfg.ForksLabel = "plan"
			s.step(v)
			if test.fork {
				f.Pulls[0].Labels = []string{"plan"}
				s.step(v)
			}
			if len(f.Comments[1]) != 1 || !strings.Contains(f.Comments[1][0].Body, test.want) || strings.Contains(f.Comments[1][0].Body, "token") || fetches != test.fetches {
				t.Errorf("%d fetches, and the comments are %v", fetches, f.Comments[1])
			}
		})
	}
}
