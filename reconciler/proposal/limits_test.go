package proposal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// An override has at most 20 operations in a rule, and 20 rules. A change that needs more is made for all
// clusters, as is one of clusters that get the object through different placements.
func TestLimitsOfOverrides(t *testing.T) {
	const fleet = "clusters east west\nnamespace web\nplace web of web on east\nplace other of web on west\n"
	data := func(keys int) string {
		var b strings.Builder
		b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: web}\ndata:\n")
		for i := range keys {
			fmt.Fprintf(&b, "  key-%03d: plain\n", i)
		}
		return b.String()
	}
	id := api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}
	holder := func(cluster, placement string) status.Holder {
		return status.Holder{Cluster: cluster, Placement: api.PlacementKey{Name: placement}}
	}
	override := func(rules int) string {
		var b strings.Builder
		b.WriteString("apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceOverride\nmetadata: {name: one, namespace: web}\nspec:\n  resourceSelectors: [{group: \"\", version: v1, kind: ConfigMap, name: one}]\n  policy:\n    overrideRules:\n")
		for i := range rules {
			fmt.Fprintf(&b, "      - clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {n: \"%d\"}}}]}\n        jsonPatchOverrides: [{op: add, path: /data/n, value: \"%d\"}]\n", i, i)
		}
		return b.String()
	}
	for name, test := range map[string]struct {
		fleet           string
		fields, rules   int
		changed, others []status.Holder
		want            string // the override, or the file that changes
		loads           int    // how often the tree is loaded
	}{
		"20 fields":      {webFleet, 20, 0, []status.Holder{holder("east", "web")}, []status.Holder{holder("west", "web")}, "ResourceOverride one-", 1},
		"21 fields":      {webFleet, 21, 0, []status.Holder{holder("east", "web")}, []status.Holder{holder("west", "web")}, "ResourceOverride one-", 1},
		"401 fields":     {webFleet, 401, 0, []status.Holder{holder("east", "web")}, []status.Holder{holder("west", "web")}, "one.yaml", 2},
		"the 20th rule":  {webFleet, 1, 19, []status.Holder{holder("east", "web")}, []status.Holder{holder("west", "web")}, "ResourceOverride one", 1},
		"the 21st rule":  {webFleet, 1, 20, []status.Holder{holder("east", "web")}, []status.Holder{holder("west", "web")}, "one.yaml", 3},
		"two placements": {fleet, 1, 0, []status.Holder{holder("east", "web"), holder("west", "other")}, []status.Holder{holder("north", "web")}, "one.yaml", 1},
	} {
		t.Run(name, func(t *testing.T) {
			files := world.Files(t, test.fleet)
			files["one.yaml"] = &fstest.MapFile{Data: []byte(data(test.fields))}
			if test.rules > 0 {
				files["override.yaml"] = &fstest.MapFile{Data: []byte(override(test.rules))}
			}
			loads := 0
			load := func(files fs.FS) (*hub.Snapshot, error) {
				loads++
				return hub.NewLoader(hub.Options{}).Load(hub.Commit{}, files)
			}
			head, err := load(files)
			if err != nil {
				t.Fatal(err)
			}
			target := edit.Target{ID: id, Changed: test.changed, Others: test.others}
			for i := range test.fields {
				target.Drift = append(target.Drift, api.Difference{
					PatchDetail: api.PatchDetail{Path: fmt.Sprintf("/data/key-%03d", i), ValueInHub: "plain", ValueInMember: "x"}, MemberJSON: []byte(`"x"`),
				})
			}
			loads = 0
			edit, err := (&edit.Editor{Load: load, Files: files, Head: head}).Edit(target)
			if err != nil {
				t.Fatal(err)
			}
			got := edit.Override
			if got == "" {
				got = edit.Files[0].Path
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("the edit is in %s, want %s", got, test.want)
			}
			if loads != test.loads {
				t.Errorf("the tree is loaded %d times, want %d", loads, test.loads)
			}
		})
	}
}

const webFleet = "clusters east west\nnamespace web\nplace web of web\n"

// At the limit, a change says how many proposals are open, and how many others are retried if these count.
func TestTheLimitOfOpenRequests(t *testing.T) {
	for name, test := range map[string]struct {
		open, retried int
		asked         bool
		want          string // empty if the change may be offered
	}{
		"below":              {1, 0, false, ""},
		"at the limit":       {2, 0, false, "pull requests of drift: 2 open; drift.maxOpen allows 2"},
		"above":              {3, 0, false, "pull requests of drift: 3 open; drift.maxOpen allows 2"},
		"with retried":       {1, 1, false, "pull requests of drift: 1 open, 1 not opened because of errors and retried; drift.maxOpen allows 2"},
		"without the others": {2, 1, false, "pull requests of drift: 2 open; drift.maxOpen allows 2"},
		"on request":         {2, 1, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &follower{open: map[string]thread{}, states: map[string]*offerState{}}
			f.tracker.cfg.MaxOpen = 2
			for i := range test.open {
				f.open[fmt.Sprint(branchPrefix, i)] = thread{}
			}
			for i := range test.retried {
				s := &offerState{}
				s.retry.Fail(errors.New("refused"), time.Now())
				f.states[fmt.Sprint(i)] = s
			}
			s := &offerState{asked: test.asked}
			if limited := f.atLimit(s); limited != (test.want != "") || s.waits != test.want {
				t.Errorf("%t, %q, want %q", limited, s.waits, test.want)
			}
		})
	}
}
