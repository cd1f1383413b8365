package ownership

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func configMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }

// If several placements claim an object on a cluster, the one that holds it owns it, then the one
// that was assigned its revision first. An object that its owner gives up is handed over.
func TestAssign(t *testing.T) {
	shared := configMap("one")
	object := map[api.ID]*work.Manifest{shared: {}}
	// of returns the claim of a placement that was assigned its revision some minutes ago.
	of := func(name string, ago int, change func(*Claim)) *Claim {
		cl := &Claim{Claimant: api.PlacementKey{Name: name}, Since: noon.Add(-time.Duration(ago) * time.Minute), HasRevision: true, Early: map[api.ID]*work.Manifest{}}
		change(cl)
		return cl
	}
	has := func(cl *Claim) { cl.Assigned = object }
	gets := func(cl *Claim) { cl.Assigned, cl.Reassigned = object, true }
	awaits := func(cl *Claim) { cl.Upcoming = object }
	gives := func(cl *Claim) { cl.Previous, cl.Reassigned = object, true }
	givesLater := func(cl *Claim) { cl.Assigned, cl.Upcoming = object, map[api.ID]*work.Manifest{} }
	reports := func(cl *Claim) { cl.Assigned, cl.ReportOnly = object, true }
	unknown := func(cl *Claim) { cl.MaybeOwned = map[api.ID]bool{shared: true} }
	givesNothing := func(cl *Claim) { gives(cl); cl.ReportOnly = true }
	selectedAgain := func(cl *Claim) { cl.Assigned, cl.Previous, cl.WasRemoving, cl.Reassigned = object, object, true, true }
	yielding := func(cl *Claim) {
		cl.Assigned = object
		cl.Before.Yields = []ledger.Yield{{ID: shared, To: api.PlacementKey{Name: "other"}}}
	}
	leavesUnknown := func(cl *Claim) {
		yielding(cl)
		cl.Assigned, cl.MaybeOwned = nil, map[api.ID]bool{}
	}
	for name, test := range map[string]struct {
		claims    []*Claim
		want      string // who gets it early, and who leaves it to whom
		conflicts string
	}{
		"one placement":                                 {[]*Claim{of("a", 1, has)}, "", ""},
		"two holders, the earlier one owns it":          {[]*Claim{of("a", 1, has), of("b", 2, has)}, "a leaves it to b", "b without a"},
		"two holders since the same time, by name":      {[]*Claim{of("a", 1, has), of("b", 1, has)}, "b leaves it to a", "a without b"},
		"a holder before a newcomer":                    {[]*Claim{of("a", 9, gets), of("b", 1, has)}, "a leaves it to b", "b without a"},
		"a possible holder before a newcomer":           {[]*Claim{of("a", 9, gets), of("b", 1, unknown)}, "a leaves it to b", "b without a"},
		"a holder before a possible holder":             {[]*Claim{of("a", 9, unknown), of("b", 1, has)}, "", "b without a"},
		"a holder before one that yielded it":           {[]*Claim{of("a", 9, yielding), of("b", 1, has)}, "a leaves it to b", "b without a"},
		"left before, and the content is not known":     {[]*Claim{of("a", 9, leavesUnknown), of("b", 1, has)}, "a leaves it to b", ""},
		"left before, and given up by its owner":        {[]*Claim{of("a", 9, leavesUnknown), of("b", 1, gives)}, "", ""},
		"ReportDiff owns nothing":                       {[]*Claim{of("a", 9, reports), of("b", 1, gets)}, "a leaves it to b", "b without a"},
		"given up and assigned early":                   {[]*Claim{of("a", 1, gives), of("b", 1, awaits)}, "b gets it early", ""},
		"given up and not wanted":                       {[]*Claim{of("a", 1, gives), of("b", 1, func(*Claim) {})}, "", ""},
		"ReportDiff gives nothing up":                   {[]*Claim{of("a", 1, givesNothing), of("b", 1, awaits)}, "", ""},
		"a holder before one that is selected again":    {[]*Claim{of("a", 9, selectedAgain), of("b", 1, has)}, "a leaves it to b", "b without a"},
		"given up later":                                {[]*Claim{of("a", 1, givesLater), of("b", 2, gets)}, "b leaves it to a for now", ""},
		"two want it early, the first claimant gets it": {[]*Claim{of("a", 1, gives), of("c", 1, awaits), of("b", 1, awaits)}, "c gets it early", "c without b"},
	} {
		t.Run(name, func(t *testing.T) {
			found := Assign(test.claims)
			if got := outcomes(test.claims, shared); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
			var conflicts []string
			for _, c := range found {
				conflicts = append(conflicts, c.Owner.Name+" without "+c.Without.Name)
			}
			if got := strings.Join(conflicts, ", "); got != test.conflicts {
				t.Errorf("conflicts: %s; want %s", got, test.conflicts)
			}
		})
	}
}

// outcomes describes the outcome of the claims to an object.
func outcomes(claims []*Claim, id api.ID) string {
	var out []string
	for _, cl := range claims {
		if slices.Contains(cl.Outcome.Early, id) {
			out = append(out, cl.Claimant.Name+" gets it early")
		}
		for _, y := range cl.Outcome.Yields {
			text := cl.Claimant.Name + " leaves it to " + y.To.Name
			if y.Passing {
				text += " for now"
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

// The outcome of kept claims is what it was before.
func TestKeep(t *testing.T) {
	kept := ledger.Deviation{Early: []api.ID{configMap("a")}, Yields: []ledger.Yield{
		{ID: configMap("b"), To: api.PlacementKey{Name: "other"}}, {ID: configMap("c"), To: api.PlacementKey{Name: "other"}, Passing: true},
	}}
	cl := &Claim{Claimant: api.PlacementKey{Name: "web"}, Before: kept, Assigned: map[api.ID]*work.Manifest{configMap("b"): {}}}
	conflicts := Keep([]*Claim{cl})
	if !cl.Outcome.Equal(kept) || len(cl.Yielded) != 1 || len(conflicts) != 1 {
		t.Errorf("claims %+v, yielded %v, conflicts %v", cl.Outcome, cl.Yielded, conflicts)
	}
}

// If the content of a placement on a cluster is not known, the objects that others left to it there
// are assumed to be its objects. If it is being removed, they may be removed already.
func TestGuessOwned(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	other := func(to string) *Claim {
		return &Claim{Before: ledger.Deviation{Yields: []ledger.Yield{{ID: configMap("a"), To: api.PlacementKey{Name: to}}}}}
	}
	for name, test := range map[string]struct {
		cl            Claim
		to            string
		held, removed string
	}{
		"known content":             {Claim{}, "web", "", ""},
		"unknown content":           {Claim{MaybeOwned: map[api.ID]bool{configMap("b"): true}}, "web", "a b", ""},
		"left to a third placement": {Claim{MaybeOwned: map[api.ID]bool{configMap("b"): true}}, "shop", "b", ""},
		"being removed, unknown":    {Claim{RemovesUnknown: true}, "web", "", "a"},
	} {
		cl := &test.cl
		cl.Claimant = web
		cl.guessOwned([]*Claim{cl, other(test.to)})
		if held, removed := names(cl.MaybeOwned), names(cl.maybeRemoved); held != test.held || removed != test.removed {
			t.Errorf("%s: held %q, removed %q, want %q and %q", name, held, removed, test.held, test.removed)
		}
	}
}

// names lists the names of objects, sorted.
func names(objects map[api.ID]bool) string {
	var names []string
	for id := range objects {
		names = append(names, id.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
