package build

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/cache"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// A build that never ends makes others wait, but their kustomizations are not blamed for it.
func TestABuildThatNeverEnds(t *testing.T) {
	kustomizing <- struct{}{}
	defer func() { <-kustomizing }()
	files := fstest.MapFS{"app/kustomization.yaml": {Data: []byte("namePrefix: a-\nresources: [ns.yaml]\n")}, "app/ns.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n")}}
	limits := limit.Limits{BuildTime: time.Millisecond}.WithDefaults()
	g, err := Read(tree.New(files, 1<<20, cache.New[tree.Key, *tree.Listing]()), []string{"app"}, NewCache(), limits)
	if err != nil || len(g.Problems()) > 0 {
		t.Fatal(err, g.Problems())
	}
	if result, err := g.Target("app").Build(&limit.Budget{Limit: 1 << 20}, func(*document.Report, any) {}); err == nil {
		t.Errorf("built, with %v, want an error that is no problem of the commit", result.Problems)
	}
}
