package plan

import (
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Content is recorded as proven once it is available on every cluster, with the first commit that had
// it, unless it is empty, only compared, or deletions are held.
func TestRecordProven(t *testing.T) {
	key := api.PlacementKey{Name: "web"}
	m := NewMemo()
	m.setInForce(snapshot(t, "clusters east\nnamespace web\nplace web\nplace empty of none\n"))
	content := m.prepare(m.inForce.Snapshot, key)
	current := placement.Revision{Commit: "head", Hash: content.fingerprintOf()}
	settled := rollout.Plan{Settled: true}
	held := protocol.WorkSeen{At: noon, WorkState: protocol.WorkState{Revision: revisionTwo, Done: true, Incidents: &protocol.Incidents{BlockedDeletions: []protocol.BlockedDeletion{{ID: configMap("a")}}}}}
	for name, test := range map[string]struct {
		change func(*placementPlanner, *Placement)
		want   placement.Revision
	}{
		"available":     {nil, current},
		"not available": {func(_ *placementPlanner, p *Placement) { p.Rollout.Settled = false }, revisionOne},
		"on no cluster": {func(_ *placementPlanner, p *Placement) { p.Assigned = 0 }, revisionOne},
		"ReportDiff": {func(_ *placementPlanner, p *Placement) {
			p.Spec.Spec.Strategy.ApplyStrategy = &api.ApplyStrategy{Type: api.ReportDiff}
		}, revisionOne},
		"empty": {func(pl *placementPlanner, _ *Placement) {
			pl.current.prepared = m.prepare(m.inForce.Snapshot, api.PlacementKey{Name: "empty"})
		}, revisionOne},
		"held deletions": {func(_ *placementPlanner, p *Placement) {
			_, p.Clusters[0].Entry = ledgerWith(*p.Clusters[0].Binding, held)
		}, revisionOne},
		"recorded before": {func(_ *placementPlanner, p *Placement) {
			p.Record.Proven = placement.Revision{Commit: "v0", Hash: current.Hash}
		}, placement.Revision{Commit: "v0", Hash: current.Hash}},
	} {
		t.Run(name, func(t *testing.T) {
			pl := &placementPlanner{planner: &planner{memo: m, Input: Input{InForce: &hub.Snapshot{Commit: hub.Commit{Hash: "head"}}}}, current: &result{resultKey: resultKey{prepared: content}}}
			p := &Placement{Key: key, Spec: &hub.Placement{}, Rollout: settled, Assigned: 1, Record: ledger.Placement{Proven: revisionOne}}
			p.Clusters = []*OnCluster{{Binding: &placement.Binding{Cluster: "east", Assigned: revisionTwo}}}
			if test.change != nil {
				test.change(pl, p)
			}
			pl.recordProven(p)
			if p.Record.Proven != test.want {
				t.Errorf("%v, want %v", p.Record.Proven, test.want)
			}
		})
	}
}

// The latest revision of a cluster has the commit that first had its content, and a cluster that is
// selected again is a new binding.
func TestRevisionsAndBindingsKeepTheirOrigin(t *testing.T) {
	const objects = "clusters east west\nnamespace web\nplace web "
	s := newScene(t)
	s.commit("v1", nil, []byte(objects+"on east,west\n"))
	for _, step := range [][]string{{"seen", "east", "west"}, {"plan"}, {"done"}, {"plan"}} {
		s.do(step)
	}
	s.commit("v2", nil, []byte(objects+"on east\nnamespace other\n"))
	first := s.resolve().Placements.At(0).On("east")
	if first.Latest().Commit != "v1" || !first.UpToDate() {
		t.Errorf("the latest revision is %v", first.Latest())
	}
	left := s.last.Placements.At(0).On("west").Binding
	s.commit("v3", nil, []byte(objects+"on east\n"))
	if again := s.resolve().Placements.At(0).On("west").Binding; !again.Removing || again.Unusual().RemovedBy != "v2" || left.Unusual().RemovedBy != "v2" {
		t.Errorf("removed by %q and %q", left.Unusual().RemovedBy, again.Unusual().RemovedBy)
	}
	s.commit("v4", nil, []byte(objects+"on east,west\n"))
	s.in.Now = s.in.Now.Add(1)
	if again := s.resolve().Placements.At(0).On("west").Binding; again.Removing || !again.BoundAt.Equal(s.in.Now) {
		t.Errorf("selected again at %s, want %s", again.BoundAt, s.in.Now)
	}
}

// The namespaces of clusters matter only to ResourcePlacements.
func TestNamespacesOfClusters(t *testing.T) {
	crp, rp := api.PlacementKey{Name: "web"}, api.PlacementKey{Namespace: "shop", Name: "web"}
	head := &hub.Snapshot{Placements: []*hub.Placement{{Key: crp}, {Key: rp}}}
	pl := newPlanner(Input{InForce: head, Ledger: ledger.New(), Memo: NewMemo(), Now: noon})
	of := func(key api.PlacementKey) resultKey { return pl.keyOf(key, nil, nil) }
	was := map[api.PlacementKey]resultKey{crp: of(crp), rp: of(rp)}
	pl.memo.members.NamespacesVersion++
	if of(crp) != was[crp] {
		t.Error("a ClusterResourcePlacement is planned again")
	}
	if of(rp) == was[rp] || of(rp).scheduling() == was[rp].scheduling() {
		t.Error("a ResourcePlacement is not scheduled again")
	}
}

// Observed properties matter only to placements whose policies use them, as a requirement or an
// order.
func TestPropertiesInPolicies(t *testing.T) {
	selector := api.ClusterSelectorTerm{PropertySelector: &api.PropertySelector{MatchExpressions: []api.PropertySelectorRequirement{{Name: "node-count"}}}}
	sorter := api.ClusterSelectorTerm{PropertySorter: &api.PropertySorter{Name: "node-count"}}
	affinity := func(a api.ClusterAffinity) *api.PlacementPolicy {
		return &api.PlacementPolicy{Affinity: &api.Affinity{ClusterAffinity: &a}}
	}
	required := func(terms ...api.ClusterSelectorTerm) *api.PlacementPolicy {
		return affinity(api.ClusterAffinity{Required: &api.ClusterSelector{ClusterSelectorTerms: terms}})
	}
	for name, test := range map[string]struct {
		policy *api.PlacementPolicy
		want   bool
	}{
		"no policy":        {nil, false},
		"no affinity":      {&api.PlacementPolicy{}, false},
		"other placements": {affinityTo("web"), false},
		"labels":           {required(api.ClusterSelectorTerm{}), false},
		"a requirement":    {required(api.ClusterSelectorTerm{}, selector), true},
		"an order":         {affinity(api.ClusterAffinity{Preferred: []api.PreferredClusterSelector{{Preference: sorter}}}), true},
		"preferred labels": {affinity(api.ClusterAffinity{Preferred: []api.PreferredClusterSelector{{}}}), false},
	} {
		head := &hub.Snapshot{Placements: []*hub.Placement{{Key: api.PlacementKey{Name: "web"}, Spec: api.PlacementSpec{Policy: test.policy}}}}
		pl := newPlanner(Input{InForce: head, Ledger: ledger.New(), Memo: NewMemo(), Now: noon})
		pl.memo.members.PropertiesVersion = 7
		if got := pl.keyOf(api.PlacementKey{Name: "web"}, nil, nil).propertiesVersion == 7; got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
