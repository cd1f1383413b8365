package plan

import (
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A warning about an override has the position of its field, or else of the override, and names its kind.
func TestOverrideWarning(t *testing.T) {
	cluster, namespaced := api.Origin{Path: "cro.yaml", Line: 1}, api.Origin{Path: "ro.yaml", Line: 2}
	cro, ro := &api.ClusterResourceOverride{}, &api.ResourceOverride{}
	cro.Name, ro.Name, ro.Namespace = "image", "image", "web"
	at := newCommitCache(&hub.Snapshot{
		ClusterOverrides: []*hub.ClusterOverride{{ClusterResourceOverride: cro, Origin: cluster, Lines: hub.Lines{"spec": 4, "spec.policy": 6}}},
		Overrides:        []*hub.Override{{ResourceOverride: ro, Origin: namespaced}},
	})
	for name, test := range map[string]struct {
		of   api.NamespacedName
		want problem.Problem
	}{
		"of a cluster":     {api.NamespacedName{Name: "image"}, problem.Problem{Origin: api.Origin{Path: "cro.yaml", Line: 4}, Field: "spec", Severity: problem.Warning, Message: `ClusterResourceOverride "image" is idle`}},
		"of a namespace":   {api.NamespacedName{Namespace: "web", Name: "image"}, problem.Problem{Origin: namespaced, Field: "spec", Severity: problem.Warning, Message: `ResourceOverride "web/image" is idle`}},
		"of another place": {api.NamespacedName{Namespace: "shop", Name: "image"}, problem.Problem{Field: "spec", Severity: problem.Warning, Message: `ResourceOverride "shop/image" is idle`}},
	} {
		if got := at.overrideWarning(test.of, "spec", "is idle"); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// A warning about a placement has the position of its field, or else of the placement.
func TestWarningsAreAtTheLinesOfFields(t *testing.T) {
	p := &Placement{Spec: &hub.Placement{Origin: api.Origin{Path: "web.yaml", Line: 2}, Lines: hub.Lines{"spec.policy": 9}}}
	p.warn("spec.policy", "a", "b")
	p.warn("", "c")
	var got []string
	for _, w := range p.Warnings {
		got = append(got, w.Error())
	}
	if want := []string{"web.yaml:9: spec.policy: a", "web.yaml:9: spec.policy: b", "web.yaml:2: c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whether an override selects anything is known only if all placements have valid selectors.
func TestUnusedOverrides(t *testing.T) {
	const objects = "clusters east/region=eu\nnamespace web\nconfigmap web/one a\nnamespace other\nconfigmap other/two a\nwidget other/one\n"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"used":                 {"place web\noverride web/one to b on eu\n", nil},
		"its object is unused": {"place web\noverride other/two to b on eu\n", []string{`ResourceOverride "other/two" selects nothing that any placement holds`}},
		"invalid selectors":    {"place web\nplace other of web broken\noverride other/two to b on eu\n", nil},
		"no placements":        {"override other/two to b on eu\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := Resolve(Input{InForce: snapshot(t, objects+test.text), Ledger: ledger.New(), Memo: NewMemo(), Now: noon})
			var got []string
			for _, w := range p.Warnings {
				got = append(got, w.Message)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A failed update stays a stop with the content that its cluster would get now: with its present
// labels, or with those at the time of the update if it is no longer declared.
func TestStopsHaveTheLatestContent(t *testing.T) {
	head := snapshot(t, "clusters east/region=eu west/region=us\nnamespace web\nconfigmap web/one a\nplace web\noverride web/one to b on eu\n")
	key := api.PlacementKey{Name: "web"}
	pl := &placementPlanner{planner: newPlanner(Input{InForce: head, Ledger: ledger.New(), Memo: NewMemo(), Now: noon})}
	pl.current = &result{resultKey: resultKey{prepared: pl.planner.memo.prepare(head, key)}}
	p := &Placement{Record: ledger.Placement{Stops: []placement.Stop{
		{Cluster: "east"}, {Cluster: "west"}, {Cluster: "gone", Failed: placement.Revision{Hash: "1", Labels: "region=eu"}}, {Cluster: "gone-too", Failed: placement.Revision{Hash: "1", Labels: "region=us"}},
	}}}
	stops := pl.stops(p)
	if len(stops) != 4 {
		t.Fatalf("%d stops", len(stops))
	}
	overridden, base := stops[0].Latest, stops[1].Latest
	if overridden == base || stops[2].Latest != overridden || stops[3].Latest != base {
		t.Errorf("stops %+v", stops)
	}
	if stops[2].Failed.Labels != "region=eu" || stops[2].Cluster != "gone" {
		t.Errorf("the recorded stop has changed: %+v", stops[2])
	}
}
