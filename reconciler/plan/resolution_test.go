package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A report about one cluster does not replace the works of any, even if placements claim the same objects there.
func TestAReportReplacesNoWorksOfClaimants(t *testing.T) {
	s := newScene(t)
	s.commit("v1", nil, []byte("clusters east west\nnamespace web\nconfigmap web/one a\nplace one of web\nplace two of web\n"))
	s.do([]string{"seen", "east", "west"})
	s.do([]string{"plan"})
	s.do([]string{"done"})
	for range 3 {
		s.resolve()
	}
	before := s.resolve() // nothing is left to record
	o := report("east", before.Works["east"][0], s.in.Now)
	o.Untrackable = 1
	s.in.Ledger.Fold(o)
	now := s.resolve()
	one, two := now.Placements.At(0), now.Placements.At(1)
	if len(two.Warnings) != 1 || len(two.On("west").Unusual().Yielded) == 0 {
		t.Fatalf("the placements have no conflict:\n%s", describe(now))
	}
	if one == before.Placements.At(0) {
		t.Error("the placement of the report is not planned again")
	}
	for _, cluster := range []string{"east", "west"} {
		if !ledger.Identical(now.Works[cluster], before.Works[cluster]) {
			t.Errorf("the works of %s are replaced", cluster)
		}
	}
}

// The warnings about a conflict list the clusters that it is on now, also if only the conflicts
// of other clusters were resolved again.
func TestConflictWarningsListTheClustersOfTheConflict(t *testing.T) {
	s := newScene(t)
	const objects = "namespace web\nconfigmap web/one a\n"
	for i, test := range []struct{ text, want string }{
		{"clusters east west\n" + objects + "place one of web\nplace two of web on east\n", " on east"},
		{"clusters east west\n" + objects + "place one of web\nplace two of web\n", " on east and 1 more cluster"},
		{"clusters east west\n" + objects + "place one of web on west\nplace two of web\n", " on west"},
		{"clusters east west\n" + objects + "place two of web\n", ""},
	} {
		s.commit("v"+string(rune('1'+i)), nil, []byte(test.text))
		s.do([]string{"seen", "east", "west"})
		for range 5 {
			s.do([]string{"plan"})
			s.do([]string{"done"})
		}
		got := describe(s.resolve())
		if test.want != "" && !strings.Contains(got, test.want+":") && !strings.Contains(got, test.want+",") || test.want == "" && len(s.last.Placements.At(0).Warnings) > 0 {
			t.Errorf("%d: %s, want a conflict%s", i, got, test.want)
		}
	}
}

// The overlap has the objects that are in the contents of several placements or were claimed, and
// the placements that have any of them.
func TestFindOverlap(t *testing.T) {
	contents := func(text string, key api.PlacementKey) []*prepared {
		m := NewMemo()
		m.setInForce(snapshot(t, text))
		return []*prepared{m.prepare(m.inForce.Snapshot, key)}
	}
	const objects = "clusters east\nnamespace red\nnamespace blue\nnamespace green\n"
	of := func(name, namespaces string, claimed ...string) *result {
		key := api.PlacementKey{Name: name}
		r := &result{placement: &Placement{Key: key}, contentsInUse: contents(objects+"place "+name+" of "+namespaces+"\n", key)}
		for _, to := range claimed {
			claims := ledger.Deviation{Yields: []ledger.Yield{{ID: api.ID{Kind: "Namespace", Name: "green"}, To: api.PlacementKey{Name: to}}}}
			r.placement.Clusters = append(r.placement.Clusters, &OnCluster{Binding: &placement.Binding{}, Circumstances: &Circumstances{Deviation: claims}})
		}
		return r
	}
	for name, test := range map[string]struct {
		results   []*result
		shared    string
		claimants string
	}{
		"none":                       {[]*result{of("a", "red"), of("b", "blue")}, "", ""},
		"one of several":             {[]*result{of("a", "red,blue"), of("b", "blue"), of("c", "green")}, "blue", "a b"},
		"one of three placements":    {[]*result{of("a", "red,blue"), of("b", "blue"), of("c", "green,blue")}, "blue", "a b c"},
		"claimed by an owner":        {[]*result{of("a", "red", "b"), of("b", "blue")}, "green", "a b"},
		"claimed and in a content":   {[]*result{of("a", "red", "b"), of("b", "blue"), of("c", "green")}, "green", "a b c"},
		"the owner no longer exists": {[]*result{of("a", "red", "gone")}, "green", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			o := findOverlap(resultsOf(test.results...))
			var shared, claimants []string
			for _, id := range slices.SortedFunc(maps.Keys(o.shared), api.ID.Compare) {
				shared = append(shared, id.Name)
			}
			for _, key := range o.claimants {
				claimants = append(claimants, key.Name)
			}
			if got := fmt.Sprint(strings.Join(shared, " "), "; ", strings.Join(claimants, " ")); got != test.shared+"; "+test.claimants {
				t.Errorf("%s, want %s; %s", got, test.shared, test.claimants)
			}
		})
	}
}

// A conflict is described by its first object, cluster-scoped ones first, and its first cluster, with
// the numbers of the others.
func TestConflictExtentText(t *testing.T) {
	namespace := api.ID{Kind: "Namespace", Name: "web"}
	for want, test := range map[string]struct {
		ids      []api.ID
		clusters []string
	}{
		"ConfigMap/web/a on east":                                      {[]api.ID{configMap("a")}, []string{"east"}},
		"ConfigMap/web/a and 1 more object on east and 1 more cluster": {[]api.ID{configMap("b"), configMap("a")}, []string{"west", "east"}},
		"Namespace/web and 2 more objects on a and 3 more clusters":    {[]api.ID{configMap("b"), configMap("a"), namespace}, []string{"d", "c", "b", "a"}},
	} {
		e := &conflictExtent{map[api.ID]bool{}, map[string]bool{}}
		for _, id := range test.ids {
			e.ids[id] = true
		}
		for _, c := range test.clusters {
			e.clusters[c] = true
		}
		if got := e.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Both placements of a conflict have a warning with the position of the other one, sorted by the
// owner.
func TestConflictWarnings(t *testing.T) {
	a, b, c := api.PlacementKey{Name: "a"}, api.PlacementKey{Name: "b"}, api.PlacementKey{Name: "c"}
	r := &resolver{planner: &planner{memo: NewMemo()}}
	r.planner.memo.setInForce(snapshot(t, "clusters east\nnamespace web\nplace a of web\nplace b of web\nplace c of web\n"))
	extent := &conflictExtent{map[api.ID]bool{configMap("one"): true}, map[string]bool{"east": true}}
	r.conflicts = map[conflict]*conflictExtent{{a, b}: extent, {b, c}: extent, {api.PlacementKey{Name: "gone"}, b}: extent}
	const (
		owns   = " selects ConfigMap/web/one on east as well; this placement has what both select, and keeps it: let one of the two select it"
		yields = " has ConfigMap/web/one on east, which this placement selects as well and leaves to it: let one of the two select it"
	)
	for key, want := range map[api.PlacementKey][]string{
		a: {"crp/b (placement-b.yaml:1)" + owns},
		b: {"crp/a (placement-a.yaml:1)" + yields, "crp/c (placement-c.yaml:1)" + owns, "crp/gone" + yields},
		c: {"crp/b (placement-b.yaml:1)" + yields},
	} {
		var got []string
		for _, w := range r.conflictWarnings(&Placement{Key: key, Spec: r.planner.memo.spec(key)}) {
			if w.Origin != r.planner.memo.spec(key).Origin || w.Field != "spec.resourceSelectors" {
				t.Errorf("%s has the warning at %v, %s", key, w.Origin, w.Field)
			}
			got = append(got, w.Message)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant:\n%s", key, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
