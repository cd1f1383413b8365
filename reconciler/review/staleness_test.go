package review

import (
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
)

// A plan is outdated once the commit in force, the clusters or the clusters of a placement change.
func TestWhatMakesAPlanOutdated(t *testing.T) {
	state := func(commit, fleet string) string {
		t.Helper()
		s := newSimulatedFleet(t)
		s.commit(hash(commit), files(t, fleet))
		return fleetState(s.report.Plan(), hash(commit))
	}
	first := state("b", "clusters a b\nnamespace web\nplace web of web pick 1\n")
	for name, test := range map[string]struct {
		commit, fleet string
		same          bool
	}{
		"nothing":                {"b", "clusters a b\nnamespace web\nplace web of web pick 1\n", true},
		"a commit":               {"c", "clusters a b\nnamespace web\nplace web of web pick 1\n", false},
		"a cluster joins":        {"b", "clusters a b c\nnamespace web\nplace web of web pick 1\n", false},
		"it is on more clusters": {"b", "clusters a b\nnamespace web\nplace web of web\n", false},
		"another placement":      {"b", "clusters a b\nnamespace web\nplace other of web pick 1\n", false},
	} {
		if same := state(test.commit, test.fleet) == first; same != test.same {
			t.Errorf("%s: the same state %v, want %v", name, same, test.same)
		}
	}
}

// Objects of a renamed placement are not tried: they belong to the old name until the merge.
func TestObjectsOfARenamedPlacementAreNotTried(t *testing.T) {
	object := func(name, placement string) forecast.Object {
		return forecast.Object{Kind: "ConfigMap", Namespace: "web", Name: name, Placement: placement}
	}
	changed := func(placement string) forecast.ContentChange {
		return forecast.ContentChange{Placement: api.PlacementKey{Name: placement}, After: &work.Manifest{Object: &api.Object{ID: api.ID{Kind: "ConfigMap", Name: "one"}}}, Clusters: []string{"a", "b"}}
	}
	r := &Result{Changes: forecast.Changes{Contents: []forecast.ContentChange{changed("web"), changed("renamed")}}}
	r.Changes.Placements = []forecast.PlacementChange{{Placement: "crp/renamed", RenamedFrom: "crp/old"}}
	r.Changes.Clusters = []forecast.ClusterChange{{Cluster: "a", Gained: []forecast.Object{object("two", "crp/web"), object("three", "crp/renamed")}}}
	by, total := r.targets()
	if total != 3 || len(by["a"]) != 2 || len(by["b"]) != 1 {
		t.Errorf("%d objects are tried: %+v", total, by)
	}
	for _, target := range by["a"] {
		if target.Placement.Name != "web" {
			t.Errorf("an object of %s is tried", target.Placement)
		}
	}
}

// Only the success of this commit stays while an object is unavailable; "no cluster changes" does not,
// and a failure does not either.
func TestWhichStatusStays(t *testing.T) {
	status := func(commit string, state forge.StatusState, text string) forge.Status {
		return forge.Status{Commit: commit, State: state, Description: text}
	}
	pending := status("b", forge.StatusPending, "1 of 3 clusters")
	for name, test := range map[string]struct {
		last forge.Status
		want bool
	}{
		"success":                   {status("b", forge.StatusSuccess, "3 of 3 clusters"), true},
		"success of another commit": {status("a", forge.StatusSuccess, "3 of 3 clusters"), false},
		"no cluster was to change":  {status("b", forge.StatusSuccess, noClusterChanges), false},
		"failure":                   {status("b", forge.StatusFailure, "broken"), false},
		"still under way":           {status("b", forge.StatusPending, "0 of 3 clusters"), false},
	} {
		if got := (&rollout{inForce: test.last}).keepsSuccess(pending); got != test.want {
			t.Errorf("%s: stays %v, want %v", name, got, test.want)
		}
	}
}
