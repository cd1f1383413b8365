package rollback

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
	"github.com/gitfleet/gitfleet/test/world"
)

const fleet = "clusters east/region=eu west/region=eu\nnamespace web\nnamespace docs\nplace web\nplace docs\n"

// Only the files that have made the content are undone, whatever else the same commits have changed.
func TestFind(t *testing.T) {
	tests := map[string]struct {
		// good and head are the files before and now. Of those that differ, kept are not undone.
		good, head string
		kept       []string
		conflicts  []string
		want       string
	}{
		"a manifest among other files": {
			good: fleet + "configmap web/one 1\nconfigmap docs/one 1\nconfigmap web/two 1",
			head: fleet + "clusters north/region=eu\nconfigmap web/one 2\nconfigmap docs/one 2\nconfigmap web/two 1\nnamespace more\nconfigmap more/one 1",
			want: "configmap-web-one.yaml",
		},
		"two of many": {
			good: fleet + "configmap web/one 1\nconfigmap docs/one 1\nconfigmap docs/two 1\nconfigmap docs/three 1",
			head: fleet + "configmap web/new 2\nconfigmap docs/one 2\nconfigmap docs/two 2\nconfigmap docs/three 2",
			want: "configmap-web-new.yaml configmap-web-one.yaml",
		},
		"an override": {
			good: fleet + "configmap web/one 1",
			head: fleet + "configmap web/one 1\noverride web/one to 2 on eu\nconfigmap docs/new 1",
			want: "override-web-one.yaml",
		},
		"what an overlay builds": {
			good: fleet + "overlay web/shop eu one\nconfigmap docs/one 1",
			head: fleet + "overlay web/shop eu two\nconfigmap docs/one 2",
			want: "shop/eu/one.yaml",
		},
		"something needs what would be undone with it": {
			good: fleet + "configmap web/one 1",
			head: strings.Replace(fleet, "place web", "place web external staged slow", 1) + "configmap web/one 2\nstrategy slow all/region=eu",
			kept: []string{"placement-web.yaml"},
			want: "configmap-web-one.yaml",
		},
		"other content": {
			good: fleet + "configmap docs/one 1",
			head: fleet + "configmap docs/one 2",
			want: "undoing the commits does not change the content of the placement",
		},
		"the same lines": {
			good: fleet + "configmap web/one 1\nconfigmap web/two 1", head: fleet + "configmap web/one 2\nconfigmap web/two 2",
			kept: []string{"configmap-web-one.yaml"}, conflicts: []string{"configmap-web-one.yaml"},
			want: "later commits have changed the same lines of configmap-web-one.yaml",
		},
		"the same lines of an overlay": {
			good: fleet + "overlay web/shop eu one\nconfigmap web/two 1", head: fleet + "overlay web/shop eu two\nconfigmap web/two 2",
			kept: []string{"shop/eu/one.yaml"}, conflicts: []string{"shop/eu/one.yaml"},
			want: "later commits have changed the same lines of shop/eu/one.yaml",
		},
		"the same lines of another file": {
			good: fleet + "configmap web/one 1\nconfigmap docs/one 1", head: fleet + "configmap web/one 2\nconfigmap docs/one 2",
			kept: []string{"configmap-docs-one.yaml"}, conflicts: []string{"configmap-docs-one.yaml"},
			want: "configmap-web-one.yaml",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			good, head := world.Files(t, test.good), world.Files(t, test.head)
			undone := map[string][]byte{}
			for path, file := range good {
				if now := head[path]; now == nil || string(now.Data) != string(file.Data) {
					undone[path] = file.Data
				}
			}
			for path := range head {
				if good[path] == nil {
					undone[path] = nil
				}
			}
			for _, path := range test.kept {
				delete(undone, path)
			}
			loader := hub.NewLoader(hub.Options{})
			load := func(files fs.FS) (*hub.Snapshot, error) { return loader.Load(hub.Commit{}, files) }
			now, err := load(head)
			if err != nil {
				t.Fatal(err)
			}
			tree := &Tree{Files: head, Load: load, Head: now, Placement: api.PlacementKey{Name: "web"}}
			paths, err := tree.Find(undone, test.conflicts)
			got := strings.Join(paths, " ")
			if impossible, ok := errors.AsType[*ImpossibleError](err); ok {
				got = impossible.Error()
			} else if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The texts say what has failed where, and nothing in them can end the block of code. They are as short as forges want them.
func TestTexts(t *testing.T) {
	o := &Offer{
		Placement: api.PlacementKey{Name: "web"}, Paths: []string{"web.yaml"},
		Failed: updaterun.FailedContent{
			Run: "web-2b2b2b2b", Commit: strings.Repeat("2b", 20), Back: "web-1a1a1a1a", BackCommit: strings.Repeat("1a", 20), At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
			Reason: "the update failed on paris in stage canary: @all ``` <b> image\nsecond " + strings.Repeat("x", 5000),
		},
	}
	body := o.Body()
	for _, want := range []string{"on paris in stage canary", "came with commit 2b2b2b2b2b failed", "`web.yaml`", "2026-03-01T12:00:00Z", "`gitfleet resume crp/web --failed-content"} {
		if !strings.Contains(body, want) {
			t.Errorf("the body has no %q:\n%s", want, body)
		}
	}
	if len(body) > 3000 || !strings.Contains(body, "````") {
		t.Errorf("the body has more than the reason, or the reason can end its block:\n%s", body)
	}
	if title := o.Title(); title != "Failed content: undo 2b2b2b2b2b in crp/web" {
		t.Errorf("the title is %q", title)
	}
	if message := o.Message("Marker: 1"); !strings.HasSuffix(message, "\n\nMarker: 1\n") || !strings.HasPrefix(message, "crp/web: undo content that failed\n\n") {
		t.Errorf("the message is %q", message)
	}
	o.Reason = Impossible(errors.New("later commits have changed the same lines"))
	if body := o.Body(); !strings.Contains(body, "**Why this is not a pull request:**") || strings.Contains(body, "**Merging**") {
		t.Errorf("the issue says\n%s", body)
	}
	if labels := o.Labels(); !slices.Equal(labels, []string{Label, "placement/web"}) {
		t.Errorf("the labels are %v", labels)
	}
}
