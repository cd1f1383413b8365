package plan

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// The decisions are those on selected clusters, and one more for each missing cluster.
func TestShortDecisions(t *testing.T) {
	for name, test := range map[string]struct {
		selected, others, wanted, want int
	}{
		"none is missing":  {2, 5, 2, 2},
		"one is missing":   {2, 5, 3, 3},
		"many are missing": {2, 5, 10, 7},
		"all are selected": {3, 0, 3, 3},
		"no clusters":      {0, 0, 3, 0},
		"none is selected": {0, 4, 1, 1},
		"more than wanted": {3, 2, 1, 3},
	} {
		o := placement.Outcome{Wanted: test.wanted, Found: test.selected}
		for i := range test.selected + test.others {
			o.Decisions = append(o.Decisions, placement.Decision{Selected: i < test.selected})
		}
		if got := len(shortDecisions(o)); got != test.want {
			t.Errorf("%s: %d decisions, want %d", name, got, test.want)
		}
	}
}

// Bindings that were rebuilt after the ledger was lost are assigned to the current policy, up to
// the number of clusters that it requests, those with the larger names first.
func TestKeepRebuilt(t *testing.T) {
	two := int32(2)
	pickN := &api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: &two}
	for name, test := range map[string]struct {
		policy   *api.PlacementPolicy
		bindings string // NAME=rebuilt, bound or leaving
		want     string // the adopted ones
	}{
		"no policy":              {nil, "a=rebuilt b=rebuilt", "a b"},
		"as many as wanted":      {pickN, "a=rebuilt b=rebuilt", "a b"},
		"more than wanted":       {pickN, "a=rebuilt b=rebuilt c=rebuilt", "b c"},
		"some are bound already": {pickN, "a=rebuilt b=bound c=rebuilt", "c"},
		"one is unscheduled":     {pickN, "a=rebuilt b=leaving c=rebuilt", "a c"},
		"all are bound already":  {pickN, "a=bound b=bound c=rebuilt", ""},
		"PickFixed":              {&api.PlacementPolicy{PlacementType: api.PickFixed}, "a=rebuilt", ""},
		"only unscheduled":       {nil, "a=leaving", ""},
		"no bindings":            {pickN, "", ""},
	} {
		var bs []placement.Binding
		for word := range strings.FieldsSeq(test.bindings) {
			name, what, _ := strings.Cut(word, "=")
			b := placement.Binding{Cluster: name, Unscheduled: what == "leaving"}
			if what == "bound" {
				b.Policy = "earlier"
			}
			bs = append(bs, b)
		}
		var adopted []string
		for _, b := range keepRebuilt(test.policy, bs) {
			if b.Policy == placement.PolicyHash(test.policy) {
				adopted = append(adopted, b.Cluster)
			}
		}
		if got := strings.Join(adopted, " "); got != test.want {
			t.Errorf("%s: adopted %q, want %q", name, got, test.want)
		}
	}
}

// The clusters of the placements that an affinity names are those planned in this call, and
// otherwise those in the ledger, without clusters that they leave. Placements that are no longer in
// Git do not count.
func TestClustersOfOthers(t *testing.T) {
	web, other := api.PlacementKey{Name: "web"}, api.PlacementKey{Name: "other"}
	bindings := func(words string) []placement.Binding {
		var out []placement.Binding
		for word := range strings.FieldsSeq(words) {
			name, what, _ := strings.Cut(word, "=")
			out = append(out, placement.Binding{Cluster: name, Unscheduled: what == "leaving", Removing: what == "removing"})
		}
		return out
	}
	scheduled := &placement.Request{}
	for name, test := range map[string]struct {
		policy   *api.PlacementPolicy
		declared bool
		planned  *Placement
		recorded string
		want     map[string][]string
	}{
		"no affinity":               {nil, true, nil, "a", nil},
		"planned":                   {affinityTo("other"), true, &Placement{Request: scheduled, Schedule: placement.Outcome{Bindings: bindings("b c=leaving")}}, "a", map[string][]string{"other": {"b"}}},
		"planned and not scheduled": {affinityTo("other"), true, &Placement{}, "a b=leaving c=removing", map[string][]string{"other": {"a"}}},
		"not planned yet":           {affinityTo("other"), true, nil, "a", map[string][]string{"other": {"a"}}},
		"new":                       {affinityTo("other"), true, nil, "", map[string][]string{"other": {}}},
		"deleted from Git":          {affinityTo("other"), false, nil, "a", map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			l, head := ledger.New(), &hub.Snapshot{Placements: []*hub.Placement{{Key: web}}}
			if test.declared {
				head.Placements = append(head.Placements, &hub.Placement{Key: other})
			}
			if test.recorded != "" {
				l.SetPlacement(other, ledger.Placement{})
				for _, b := range bindings(test.recorded) {
					l.Bind(other, b)
				}
			}
			pl := newPlanner(Input{InForce: head, Ledger: l, Memo: NewMemo(), Now: noon})
			if test.planned != nil {
				pl.results = resultsOf(&result{placement: &Placement{Key: other, Request: test.planned.Request, Schedule: test.planned.Schedule}})
			}
			if got := pl.clustersOfOthers(&hub.Placement{Key: web, Spec: api.PlacementSpec{Policy: test.policy}}); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// After the ledger was lost, PickN requests as many clusters as have answered, until all of them have
// or the placement is on as many clusters as it wants.
func TestReducePolicyAfterLoss(t *testing.T) {
	pickN := func(n int32) *api.PlacementPolicy {
		return &api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: &n}
	}
	const rest = " not answered since and may hold the placement; selection continues when they answer or are removed from the repository, or with gitfleet resume crp/web"
	for name, test := range map[string]struct {
		policy   *api.PlacementPolicy
		answered string // of a, b and c
		foreign  string // those that another fleet holds
		bound    string // with = if by this policy
		want     int    // 0 if the policy is not reduced
		rebuilt  bool
		warning  string
	}{
		"one has not answered":         {pickN(3), "a b", "", "a", 2, true, "1 of 3 clusters are not selected yet: the ledger was lost, and 1 cluster has" + rest},
		"two have not answered":        {pickN(2), "a", "", "", 0, true, "2 of 2 clusters are not selected yet: the ledger was lost, and 2 clusters have" + rest},
		"no less than it holds":        {pickN(3), "a", "", "a b", 2, true, "1 of 3 clusters are not selected yet: the ledger was lost, and 2 clusters have" + rest},
		"one is another fleet's":       {pickN(3), "a", "a", "a b", 1, true, "2 of 3 clusters are not selected yet: the ledger was lost, and 2 clusters have" + rest},
		"it was when it was selected":  {pickN(3), "a", "a", "a= b", 2, true, "1 of 3 clusters are not selected yet: the ledger was lost, and 2 clusters have" + rest},
		"all have answered":            {pickN(3), "a b c", "", "a", 3, false, ""},
		"it is on as many as it wants": {pickN(1), "a", "", "a", 1, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledger.New()
			l.SetFleet(protocol.Fleet{Name: "fleet", ID: "ours", Source: "https://git.example.com/fleet"})
			for cluster := range strings.FieldsSeq(test.answered) {
				seen := protocol.ClusterSeen{Cluster: cluster, At: noon, Healthy: true}
				if cluster == test.foreign {
					seen.Owners = []protocol.Owner{{ID: "theirs", Source: "https://git.example.com/other"}}
				}
				l.Fold(seen)
			}
			pl := &placementPlanner{planner: newPlanner(Input{InForce: snapshot(t, "clusters a b c\n"), Ledger: l, Memo: NewMemo(), Now: noon})}
			p := &Placement{Key: api.PlacementKey{Name: "web"}, Spec: &hub.Placement{Spec: api.PlacementSpec{Policy: test.policy}}, Record: ledger.Placement{Rebuilt: true}}
			var bound []placement.Binding
			for cluster := range strings.FieldsSeq(test.bound) {
				name, current := strings.CutSuffix(cluster, "=")
				b := placement.Binding{Cluster: name}
				if current {
					b.Policy = placement.PolicyHash(test.policy)
				}
				bound = append(bound, b)
			}
			got := pl.reducePolicyAfterLoss(p, bound)
			if n := int(*got.NumberOfClusters); n != test.want || p.Record.Rebuilt != test.rebuilt {
				t.Errorf("%d clusters, rebuilt: %t", n, p.Record.Rebuilt)
			}
			warning := ""
			for _, w := range p.Warnings {
				warning += w.Message
			}
			if warning != test.warning || (p.Unanswered > 0) != test.rebuilt {
				t.Errorf("%q, %d unanswered, want %q", warning, p.Unanswered, test.warning)
			}
		})
	}
	for name, policy := range map[string]*api.PlacementPolicy{"no policy": nil, "PickAll": {PlacementType: api.PickAll}, "PickFixed": {PlacementType: api.PickFixed}} {
		pl := &placementPlanner{planner: &planner{}}
		p := &Placement{Spec: &hub.Placement{Spec: api.PlacementSpec{Policy: policy}}, Record: ledger.Placement{Rebuilt: true}}
		if got := pl.reducePolicyAfterLoss(p, nil); got != policy || len(p.Warnings) > 0 {
			t.Errorf("%s is reduced", name)
		}
	}
}

// Before anything is decided, the plan has the members and the placements of the commit, and no works.
func TestPending(t *testing.T) {
	head := snapshot(t, "clusters a b\nnamespace web\nplace web\n")
	p := Pending(head)
	if len(p.Members) != 2 || p.Placements.Len() != 1 || p.Works != nil {
		t.Fatalf("plan: %+v", p)
	}
	if pl := p.Placements.At(0); !pl.Pending || pl.Spec != head.Placements[0] || pl.Record.Index != -1 || !pl.Record.Created.Equal(noon) {
		t.Errorf("placement: %+v", pl)
	}
}
