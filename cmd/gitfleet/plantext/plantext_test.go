package plantext

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/review"
)

func configMap(name, placement string) forecast.Object {
	return forecast.Object{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: name, Placement: placement}
}

// deletionsOn returns deletions of an object on clusters with names of one letter.
func deletionsOn(clusters, name string) (all []forecast.Deletion) {
	for _, c := range clusters {
		all = append(all, deletion(string(c), name, "crp/web", "too many"))
	}
	return all
}

func deletion(cluster, name, placement, held string) forecast.Deletion {
	return forecast.Deletion{Cluster: cluster, Object: configMap(name, placement), Blocked: held}
}

func decision(cluster string, selected bool, reason string) forecast.Decision {
	return forecast.Decision{Cluster: cluster, Selected: selected, Reason: reason, Picked: reason == picked(cluster)}
}

// picked is why a scheduler selects a cluster.
func picked(cluster string) string {
	return fmt.Sprintf("Successfully scheduled resources for placement in %q: picked by scheduling policy", cluster)
}

// valued is a ConfigMap with a value.
func valued(value string) *work.Manifest {
	content := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": value}}
	return &work.Manifest{Object: &api.Object{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, Content: &unstructured.Unstructured{Object: content}}}
}

// text is a text of a test, whose first line is empty.
func text(s string) string { return strings.TrimPrefix(s, "\n") }

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != text(want) {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

// What changes is said of each placement and each cluster, once.
func TestChanges(t *testing.T) {
	compared := func(placements []forecast.PlacementChange, clusters ...forecast.ClusterChange) forecast.Changes {
		return forecast.Changes{Compared: true, ContentsKnown: true, Placements: placements, Clusters: clusters}
	}
	placements := func(all ...forecast.PlacementChange) []forecast.PlacementChange { return all }
	for name, test := range map[string]struct {
		changes   forecast.Changes
		deletions []forecast.Deletion
		want      string
	}{
		"nothing was compared": {forecast.Changes{}, nil, ""},
		"nothing changes":      {compared(nil), nil, "Nothing changes: the same clusters get the same objects.\n\n"},
		"only contents change": {forecast.Changes{Compared: true, ContentsKnown: true, Contents: []forecast.ContentChange{{
			Placement: api.PlacementKey{Name: "web"}, Before: valued("a"), After: valued("b"), Clusters: []string{"ams", "ber"},
		}, {
			Placement: api.PlacementKey{Name: "web"}, Before: valued("a"), After: valued("a"), Clusters: []string{"chi"},
		}}}, nil, `
Changed objects:
  ~ ConfigMap/web/one  (crp/web) on ams, ber
    @@ -1,4 +1,4 @@
     apiVersion: v1
     data:
    -  value: a
    +  value: b
     kind: ConfigMap
  ~ ConfigMap/web/one  (crp/web) on chi
    only what gitfleet does not compare, such as its own annotations

`},
		"only names are known": {forecast.Changes{Compared: true}, nil, "No cluster gains or loses an object. Only the names of the earlier objects are known, so what they contain is not compared: compare two commits, as REPO@FROM..TO.\n\n"},
		"a new placement": {compared(placements(forecast.PlacementChange{Placement: "crp/web", New: true, Gained: []string{"east", "west"}})), nil, `
Changes:
  crp/web is new: gains east, west

`},
		"a placement that is gone": {compared(placements(forecast.PlacementChange{Placement: "crp/web", Gone: true, Lost: []string{"east"}})), nil, `
Changes:
  crp/web is gone: leaves east

`},
		"one that moves": {compared(placements(forecast.PlacementChange{Placement: "crp/web", Gained: []string{"east"}, Lost: []string{"west"}})), nil, `
Changes:
  crp/web: gains east; leaves west

`},
		"one that is only renamed": {compared(placements(forecast.PlacementChange{Placement: "crp/new", RenamedFrom: "crp/old"})), nil, `
Changes:
  crp/old is renamed to crp/new; its clusters and rollout carry over

`},
		"one that is renamed and moves": {compared(placements(forecast.PlacementChange{Placement: "crp/new", RenamedFrom: "crp/old", Gained: []string{"east"}})), nil, `
Changes:
  crp/old is renamed to crp/new; its clusters and rollout carry over
  crp/new: gains east

`},
		"a policy and settings": {compared(placements(forecast.PlacementChange{
			Placement: "crp/web", PolicyFrom: "PickAll", PolicyTo: "PickN 2", Settings: []forecast.SettingChange{{Field: "strategy.type", To: `"External"`}},
		})), nil, `
Changes:
  crp/web
    policy: PickAll → PickN 2
    strategy.type: <none> → "External"

`},
		"clusters": {compared(nil,
			forecast.ClusterChange{Cluster: "ams", Gone: true, Lost: []forecast.Object{configMap("one", "crp/web"), configMap("two", "crp/web")}},
			forecast.ClusterChange{Cluster: "ber", New: true, Gained: []forecast.Object{configMap("one", "crp/web")}},
			forecast.ClusterChange{
				Cluster: "chi", Deleted: []forecast.Deletion{deletion("chi", "one", "crp/web", ""), deletion("chi", "two", "crp/web", "too many")},
				Released: []forecast.Object{configMap("three", "crp/web")},
				Passed:   []forecast.PassedObject{{Object: configMap("four", "crp/new"), From: "crp/old"}},
			},
		), nil, `
Changes:
  ams leaves the fleet; it had 2 objects, which stay there and are no longer managed
  ber is a new member
    + ConfigMap/web/one  (crp/web)
  chi
    - ConfigMap/web/one  (crp/web)
    - ConfigMap/web/two  (crp/web), blocked
    o ConfigMap/web/three  (crp/web), which stays and is released
    = ConfigMap/web/four  (crp/new, before crp/old)

`},
		"held deletions on many clusters that differ": {
			compared(nil, forecast.ClusterChange{Cluster: "a"}), append(deletionsOn("abcdef", "one"), deletionsOn("abcdeg", "two")...), `
Changes:
  a

2 objects on 7 clusters would be deleted; 2 would be blocked until the message of a commit has the trailer
  Gitfleet-Allow-Delete: crp/web
Blocked deletions:
  crp/web on a, b, c, d, e and 1 more: too many
    ConfigMap/web/one
  crp/web on a, b, c, d, e and 1 more: too many
    ConfigMap/web/two

`},
		"held deletions, together where they are the same": {
			compared(nil, forecast.ClusterChange{Cluster: "chi"}),
			[]forecast.Deletion{
				deletion("ams", "one", "crp/web", "too many"), deletion("ams", "two", "crp/web", "too many"), deletion("ams", "three", "crp/web", ""),
				deletion("ber", "one", "crp/web", "too many"), deletion("ber", "two", "crp/web", "too many"), deletion("ber", "four", "crp/web", "a Namespace"),
				deletion("chi", "five", "crp/web", "too many"),
			}, `
Changes:
  chi

5 objects on 3 clusters would be deleted; 4 would be blocked until the message of a commit has the trailer
  Gitfleet-Allow-Delete: crp/web
Blocked deletions:
  crp/web on ams, ber: too many
    ConfigMap/web/one
    ConfigMap/web/two
  crp/web on ber: a Namespace
    ConfigMap/web/four
  crp/web on chi: too many
    ConfigMap/web/five

`},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			Changes(&b, test.changes, test.deletions)
			expect(t, b.String(), test.want)
		})
	}
}

// Deletions are counted, and a trailer allows those that are held, of all their placements.
func TestDeletions(t *testing.T) {
	for name, test := range map[string]struct {
		all  []forecast.Deletion
		want string
	}{
		"none is held": {[]forecast.Deletion{deletion("ams", "one", "crp/web", "")}, "1 object on 1 cluster would be deleted; none of that would be blocked."},
		"of two placements": {
			[]forecast.Deletion{
				deletion("ams", "one", "crp/web", "why"), deletion("ams", "two", "crp/free", ""), deletion("ber", "one", "crp/web", "why"), deletion("ber", "two", "crp/api", "why"),
			},
			"2 objects on 2 clusters would be deleted; 2 would be blocked until the message of a commit has the trailer\n  Gitfleet-Allow-Delete: crp/api, crp/web",
		},
	} {
		t.Run(name, func(t *testing.T) { expect(t, Deletions(test.all), test.want) })
	}
}

// A plan says where each placement goes and what each cluster has, clusters with the same together.
func TestPlan(t *testing.T) {
	one, two := configMap("one", "crp/web"), configMap("longer", "rp/web/api")
	resources := func(n int) []forecast.Resource {
		var out []forecast.Resource
		for i := range n {
			out = append(out, forecast.Resource{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprintf("cm-%02d", i)})
		}
		return out
	}
	refused := func(n int) (out []forecast.Decision) {
		for i := range n {
			out = append(out, decision(fmt.Sprintf("c%02d", i), false, "no"))
		}
		return out
	}
	placement := func(p forecast.Placement) forecast.Document {
		p.Kind, p.Name = "ClusterResourcePlacement", "web"
		return forecast.Document{Placements: []forecast.Placement{p}, Clusters: []forecast.Cluster{{Name: "ams"}}}
	}
	scored := decision("ams", true, picked("ams"))
	scored.AffinityScore, scored.TopologySpreadScore = new(int32(20)), new(int32(0))
	zero := scored
	zero.AffinityScore = new(int32(0))
	for name, test := range map[string]struct {
		document forecast.Document
		changes  forecast.Changes
		want     string
	}{
		"no cluster": {forecast.Document{}, forecast.Changes{}, "there is no member cluster: the checkout declares none, and --clusters names none\n"},
		"clusters with the same": {
			forecast.Document{Clusters: []forecast.Cluster{
				{Name: "ams", Objects: []forecast.Object{one, two}}, {Name: "ber", Objects: []forecast.Object{one}}, {Name: "chi", Objects: []forecast.Object{one, two}}, {Name: "dal"}, {Name: "eze"},
			}}, forecast.Changes{}, `
ams, chi hold 2 objects:
  ConfigMap/web/one     crp/web
  ConfigMap/web/longer  rp/web/api
ber holds 1 object:
  ConfigMap/web/one  crp/web
dal, eze hold nothing
`},
		"decisions, with scores that decided": {
			placement(forecast.Placement{Decisions: []forecast.Decision{scored, decision("berlin", false, "no match")}, SelectedResources: resources(1)}), forecast.Changes{}, `
crp/web: 1 of 1 cluster
  + ams     affinity score 20, topology spread score 0
  - berlin  no match
  selects ConfigMap/web/cm-00

ams holds nothing
`},
		"scores that are all zero": {placement(forecast.Placement{Decisions: []forecast.Decision{zero}}), forecast.Changes{}, `
crp/web: 1 of 1 cluster
  + ams
  selects nothing

ams holds nothing
`},
		"conditions that are not met": {
			placement(forecast.Placement{Conditions: []metav1.Condition{
				{Status: metav1.ConditionTrue, Reason: "Fine", Message: "all is well"}, {Status: metav1.ConditionFalse, Reason: "Unfulfilled", Message: "one is missing"},
			}}), forecast.Changes{}, `
crp/web: 0 of 1 cluster
  Unfulfilled: one is missing
  selects nothing

ams holds nothing
`},
		"of an unclear one only where it is": {
			placement(forecast.Placement{Unclear: "it may be renamed", Decisions: []forecast.Decision{decision("ams", true, "kept"), decision("ber", false, "it may be renamed")}}), forecast.Changes{}, `
crp/web: 1 of 1 cluster
  + ams  kept

ams holds nothing
`},
		"not all of many": {placement(forecast.Placement{Decisions: refused(22), SelectedResources: resources(23)}), forecast.Changes{}, `
crp/web: 0 of 1 cluster
` + func() string {
			var b strings.Builder
			for i := range 20 {
				fmt.Fprintf(&b, "  - c%02d  no\n", i)
			}
			return b.String()
		}() + `    and 2 clusters more that are not selected; -o json has all of them
  selects ConfigMap/web/cm-00, ConfigMap/web/cm-01, ConfigMap/web/cm-02, ConfigMap/web/cm-03, ConfigMap/web/cm-04, ConfigMap/web/cm-05, ConfigMap/web/cm-06, ConfigMap/web/cm-07, ConfigMap/web/cm-08, ConfigMap/web/cm-09, ConfigMap/web/cm-10, ConfigMap/web/cm-11, ConfigMap/web/cm-12, ConfigMap/web/cm-13, ConfigMap/web/cm-14, ConfigMap/web/cm-15, ConfigMap/web/cm-16, ConfigMap/web/cm-17, ConfigMap/web/cm-18, ConfigMap/web/cm-19, 3 more

ams holds nothing
`},
		"problems": {
			forecast.Document{
				Placements: []forecast.Placement{{Name: "web", Problems: []forecast.Problem{{Path: "web.yaml", Line: 3, Field: "spec.policy", Severity: problem.Warning, Message: "selects no cluster"}}}},
				Clusters:   []forecast.Cluster{{Name: "ams"}}, Problems: []forecast.Problem{{Path: "a.yaml", Severity: problem.Warning, Message: "odd"}},
			}, forecast.Changes{}, `
crp/web: 0 of 1 cluster
  selects nothing
  warning: web.yaml:3: spec.policy: selects no cluster

ams holds nothing

warning: a.yaml: odd
`},
		"recreated objects, together where they are the same": {
			forecast.Document{Clusters: []forecast.Cluster{{Name: "ams"}}, Recreations: []forecast.Recreation{
				{Cluster: "ams", Object: one, Certain: true}, {Cluster: "ber", Object: one, Certain: true}, {Cluster: "chi", Object: one, Certain: true, Blocked: "too many"}, {Cluster: "ams", Object: two},
			}}, forecast.Changes{Compared: true, ContentsKnown: true}, `
Nothing changes: the same clusters get the same objects.

Recreated objects:
  ConfigMap/web/one  (crp/web) on ams, ber: recreated, since an immutable field changes
  ConfigMap/web/one  (crp/web) on chi: recreated, blocked: too many
  ConfigMap/web/longer  (rp/web/api) on ams: may be recreated: only the cluster knows which fields are immutable

ams holds nothing
`},
		"nothing changes": {forecast.Document{Clusters: []forecast.Cluster{{Name: "ams"}}}, forecast.Changes{Compared: true, ContentsKnown: true}, `
Nothing changes: the same clusters get the same objects.

ams holds nothing
`},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, Plan(test.document, test.changes), test.want)
		})
	}
}

// The plan of a pull request says of each rollout how it proceeds, and which clusters are first, if
// any.
func TestPreviewRollouts(t *testing.T) {
	p := Preview(&review.Preview{Result: &review.Result{Rollouts: []forecast.Rollout{
		{Placement: "crp/docks", Clusters: 2, MaxUnavailable: 1, MaxSurge: 1, First: []string{"ams"}},
		{Placement: "crp/pier", Clusters: 1},
		{Placement: "crp/web", Clusters: 3, External: true},
	}}})
	const want = `crp/docks: 2 clusters, at most 1 unavailable and 1 added at a time; first ams
crp/pier: 1 cluster, at most 0 unavailable and 0 added at a time
crp/web: 3 clusters wait: the strategy is External
`
	if !strings.HasSuffix(p.Text, "\n"+want) {
		t.Errorf("got:\n%s\nwant at the end:\n%s", p.Text, want)
	}
}
