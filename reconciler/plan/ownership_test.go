package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// If several placements claim an object on a cluster, the one that holds it owns it, then the one
// that was assigned its revision first. An object that its owner gives up is handed over.
func TestAssignOwners(t *testing.T) {
	shared := configMap("one")
	object := map[api.ID]*work.Manifest{shared: manifestsOf("one")[0]}
	now, before := placement.Revision{Commit: "v2", Hash: "2"}, placement.Revision{Commit: "v1", Hash: "1"}
	// of returns the claim of a placement that was assigned its revision some minutes ago.
	of := func(name string, ago int, change func(*claim)) *claim {
		b := placement.Binding{Cluster: "east", Assigned: now, AssignedAt: noon.Add(-time.Duration(ago) * time.Minute)}
		cl := &claim{key: api.PlacementKey{Name: name}, early: map[api.ID]*work.Manifest{}, on: &OnCluster{Binding: &b, Entry: &ledger.Entry{Binding: b}}}
		change(cl)
		return cl
	}
	has := func(cl *claim) { cl.assigned = object }
	gets := func(cl *claim) { cl.assigned, cl.on.Entry.Binding.Assigned = object, before }
	awaits := func(cl *claim) { cl.upcoming = object }
	gives := func(cl *claim) { cl.held, cl.on.Entry.Binding.Assigned = object, before }
	givesLater := func(cl *claim) { cl.assigned, cl.upcoming = object, map[api.ID]*work.Manifest{} }
	reports := func(cl *claim) { cl.assigned, cl.reportOnly = object, true }
	unknown := func(cl *claim) { cl.maybeHeld = map[api.ID]bool{shared: true} }
	givesNothing := func(cl *claim) { gives(cl); cl.reportOnly = true }
	selectedAgain := func(cl *claim) { cl.assigned, cl.held, cl.on.Entry.Binding.Removing = object, object, true }
	yielding := func(cl *claim) {
		cl.assigned = object
		cl.on.change(func(in *Circumstances) {
			in.Deviation.Yields = []ledger.Yield{{ID: shared, To: api.PlacementKey{Name: "other"}}}
		})
	}
	leavesUnknown := func(cl *claim) {
		yielding(cl)
		cl.assigned, cl.maybeHeld = nil, map[api.ID]bool{}
	}
	for name, test := range map[string]struct {
		claims    []*claim
		want      string // who gets it early, and who leaves it to whom
		conflicts string
	}{
		"one placement":                                 {[]*claim{of("a", 1, has)}, "", ""},
		"two holders, the earlier one owns it":          {[]*claim{of("a", 1, has), of("b", 2, has)}, "a leaves it to b", "b without a"},
		"two holders since the same time, by name":      {[]*claim{of("a", 1, has), of("b", 1, has)}, "b leaves it to a", "a without b"},
		"a holder before a newcomer":                    {[]*claim{of("a", 9, gets), of("b", 1, has)}, "a leaves it to b", "b without a"},
		"a possible holder before a newcomer":           {[]*claim{of("a", 9, gets), of("b", 1, unknown)}, "a leaves it to b", "b without a"},
		"a holder before a possible holder":             {[]*claim{of("a", 9, unknown), of("b", 1, has)}, "", "b without a"},
		"a holder before one that yielded it":           {[]*claim{of("a", 9, yielding), of("b", 1, has)}, "a leaves it to b", "b without a"},
		"left before, and the content is not known":     {[]*claim{of("a", 9, leavesUnknown), of("b", 1, has)}, "a leaves it to b", ""},
		"left before, and given up by its owner":        {[]*claim{of("a", 9, leavesUnknown), of("b", 1, gives)}, "", ""},
		"ReportDiff owns nothing":                       {[]*claim{of("a", 9, reports), of("b", 1, gets)}, "a leaves it to b", "b without a"},
		"given up and assigned early":                   {[]*claim{of("a", 1, gives), of("b", 1, awaits)}, "b gets it early", ""},
		"given up and not wanted":                       {[]*claim{of("a", 1, gives), of("b", 1, func(*claim) {})}, "", ""},
		"ReportDiff gives nothing up":                   {[]*claim{of("a", 1, givesNothing), of("b", 1, awaits)}, "", ""},
		"a holder before one that is selected again":    {[]*claim{of("a", 9, selectedAgain), of("b", 1, has)}, "a leaves it to b", "b without a"},
		"given up later":                                {[]*claim{of("a", 1, givesLater), of("b", 2, gets)}, "b leaves it to a for now", ""},
		"two want it early, the first claimant gets it": {[]*claim{of("a", 1, gives), of("c", 1, awaits), of("b", 1, awaits)}, "c gets it early", "c without b"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResolver()
			r.assignOwners(test.claims)
			if got := outcomes(test.claims, shared); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
			var conflicts []string
			for c := range r.conflicts {
				conflicts = append(conflicts, c.owner.Name+" without "+c.without.Name)
			}
			if got := strings.Join(conflicts, ", "); got != test.conflicts {
				t.Errorf("conflicts: %s; want %s", got, test.conflicts)
			}
		})
	}
}

// outcomes describes the outcome of the claims to an object.
func outcomes(claims []*claim, id api.ID) string {
	var out []string
	for _, cl := range claims {
		if slices.Contains(cl.outcome.Early, id) {
			out = append(out, cl.key.Name+" gets it early")
		}
		for _, y := range cl.outcome.Yields {
			text := cl.key.Name + " leaves it to " + y.To.Name
			if y.Passing {
				text += " for now"
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

func newResolver() *resolver {
	m := NewMemo()
	m.setInForce(&hub.Snapshot{})
	return &resolver{planner: &planner{Input: Input{Now: noon}, memo: m}, sharedIn: map[**work.Manifest]map[api.ID]*work.Manifest{}, conflicts: map[conflict]*conflictExtent{}}
}

// While a cluster is paused, no claim changes.
func TestPausedClustersKeepTheirOwners(t *testing.T) {
	kept := ledger.Deviation{Early: []api.ID{configMap("a")}, Yields: []ledger.Yield{
		{ID: configMap("b"), To: api.PlacementKey{Name: "other"}}, {ID: configMap("c"), To: api.PlacementKey{Name: "other"}, Passing: true},
	}}
	cl := &claim{key: api.PlacementKey{Name: "web"}, on: &OnCluster{Binding: &placement.Binding{}, Circumstances: &Circumstances{Deviation: kept}}, assigned: map[api.ID]*work.Manifest{configMap("b"): manifestsOf("b")[0]}}
	r := newResolver()
	r.keepOwners([]*claim{cl})
	if !cl.outcome.Equal(kept) || len(cl.yielded) != 1 || len(r.conflicts) != 1 {
		t.Errorf("claims %+v, yielded %v, conflicts %v", cl.outcome, cl.yielded, r.conflicts)
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
			results := map[api.PlacementKey]*result{}
			for _, r := range test.results {
				results[r.placement.Key] = r
			}
			o := findOverlap(results)
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
