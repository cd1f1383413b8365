package plan

import (
	"maps"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// resultsOf returns some results, in this order.
func resultsOf(all ...*result) results {
	o := &order{at: map[api.PlacementKey]int{}}
	for i, r := range all {
		o.planned, o.at[r.placement.Key] = append(o.planned, r.placement.Key), i
	}
	return results{o, all}
}

// A cluster is paused while a commit is loaded that one of its placements is assigned to. The first
// of several commits is the reason.
func TestClustersLoading(t *testing.T) {
	of := func(name, cluster, commit string, loading bool) *result {
		b := placement.Binding{Cluster: cluster, Assigned: placement.Revision{Commit: commit, Hash: commit}}
		c := &OnCluster{Binding: &b, Entry: &ledger.Entry{Binding: b}}
		r := &result{placement: &Placement{Key: api.PlacementKey{Name: name}, Clusters: []*OnCluster{c}}}
		if loading {
			c.Circumstances = &Circumstances{loading: commit}
			r.missing = map[string]commitState{commit: commitLoading}
		}
		return r
	}
	pl := &planner{results: resultsOf(of("a", "east", "v3", true), of("b", "east", "v2", true), of("c", "east", "v4", true), of("d", "north", "v1", true), of("e", "west", "v1", false))}
	if got, want := pl.clustersLoading(), map[string]string{"east": "v2", "north": "v1"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// On a paused cluster, an assignment waits that would change, unless the placement is already being
// removed.
func TestIsPaused(t *testing.T) {
	for name, test := range map[string]struct {
		b       placement.Binding
		cluster string
		want    bool
	}{
		"a new revision":     {placement.Binding{Assigned: revisionOne}, "east", true},
		"up to date":         {placement.Binding{Assigned: revisionTwo}, "east", false},
		"no longer selected": {placement.Binding{Assigned: revisionTwo, Unscheduled: true}, "east", true},
		"being removed":      {placement.Binding{Assigned: revisionOne, Unscheduled: true, Removing: true}, "east", false},
		"another cluster":    {placement.Binding{Assigned: revisionOne}, "west", false},
	} {
		test.b.Cluster = "east"
		pl := &planner{paused: map[string]string{test.cluster: "v1"}}
		if got := pl.isPaused(&OnCluster{Binding: &test.b, latest: &revisionTwo}); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
