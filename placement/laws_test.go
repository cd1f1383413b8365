package placement_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// drawFleet uses few different values, so that ties, empty domains and missing labels are
// frequent.
func drawFleet(t *rapid.T) fleet {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "m10", "m2",
	}), 0, 12, rapid.ID).Draw(t, "names")
	f := make(fleet, len(names))
	for i, name := range names {
		c := placement.Cluster{Name: name, Labels: map[string]string{}, Properties: map[string]resource.Quantity{}}
		for _, key := range []string{"zone", "env"} {
			if value := rapid.SampledFrom([]string{"x", "y", "z", ""}).Draw(t, key); value != "" {
				c.Labels[key] = value
			}
		}
		switch p := rapid.IntRange(-2, 3).Draw(t, "p"); p {
		case -1:
		case -2:
			c.Malformed = map[string]string{"p": "v1.2.3"}
		default:
			c.Properties["p"] = *resource.NewQuantity(int64(p), resource.DecimalSI)
		}
		if rapid.IntRange(0, 4).Draw(t, "ill") == 0 {
			c.Ineligible = "cluster is ill"
		}
		if rapid.IntRange(0, 4).Draw(t, "taint") == 0 {
			c.Taints = []api.Taint{{Key: "k", Value: "v", Effect: api.NoSchedule}}
		}
		f[i] = c
	}
	return f
}

func drawPolicy(t *rapid.T) *api.PlacementPolicy {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return pickAll(drawParts(t)...)
	case 1:
		p := pickFixed("")
		p.ClusterNames = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "none"}), rapid.ID).Draw(t, "clusterNames")
		return p
	default:
		return drawPickN(t)
	}
}

func drawPickN(t *rapid.T) *api.PlacementPolicy {
	parts := drawParts(t)
	for range rapid.IntRange(0, 2).Draw(t, "preferences") {
		weight := int32(rapid.IntRange(-3, 3).Draw(t, "weight"))
		parts = append(parts, rapid.SampledFrom([]part{
			prefer(weight, "env=x"), sortBy(weight, "", "p", api.Descending), sortBy(weight, "zone in (x,y)", "p", api.Ascending),
		}).Draw(t, "preference"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "constraints") {
		key := rapid.SampledFrom([]string{"zone", "env"}).Draw(t, "topologyKey")
		skew := int32(rapid.IntRange(1, 2).Draw(t, "maxSkew"))
		parts = append(parts, rapid.SampledFrom([]part{spreadHard(key, skew), spreadSoft(key, skew)}).Draw(t, "constraint"))
	}
	return pickN(int32(rapid.IntRange(0, 8).Draw(t, "n")), parts...)
}

func drawParts(t *rapid.T) []part {
	return rapid.SliceOfN(rapid.SampledFrom([]part{
		require("zone in (x,y)"), require("p Ge 1"), require("env notin (z); p Ne 2"),
		tolerate(api.Toleration{Key: "k", Operator: api.TolerationExists}),
	}), 0, 2).Draw(t, "parts")
}

// drawBindings draws bindings to some clusters, including some that have left the fleet, under
// this policy or another.
func drawBindings(t *rapid.T, f fleet, p *api.PlacementPolicy) []placement.Binding {
	var all []placement.Binding
	names := []string{"gone"}
	for _, c := range f {
		names = append(names, c.Name)
	}
	for _, name := range names {
		state := rapid.IntRange(0, 6).Draw(t, "state of "+name)
		if state > 3 {
			continue
		}
		b := placement.Binding{
			Cluster: name, Policy: placement.PolicyHash(p), Reason: "chosen before",
			Score: &placement.Score{
				Affinity: int32(rapid.IntRange(0, 1).Draw(t, "affinity")), Spread: int32(rapid.IntRange(0, 1).Draw(t, "spread")),
			},
			Order: rapid.IntRange(0, 3).Draw(t, "order"),
		}
		switch state {
		case 0:
			b.Unscheduled = true
		case 1:
			b.Policy = "earlier"
		}
		if rapid.Bool().Draw(t, "released") {
			b.Assigned = placement.Revision{Commit: "c", Hash: "h"}
		}
		all = append(all, b)
	}
	return all
}

func drawRequest(t *rapid.T) placement.Request {
	f, p := drawFleet(t), drawPolicy(t)
	return placement.Request{Key: crp, Policy: p, Clusters: f, Bindings: drawBindings(t, f, p)}
}

func selectedOf(o placement.Outcome) []string {
	var names []string
	for _, d := range o.Decisions {
		if d.Selected {
			names = append(names, d.Cluster)
		}
	}
	return names
}

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		want := placement.Schedule(r)
		r.Clusters = rapid.Permutation(r.Clusters).Draw(t, "clusters")
		r.Bindings = rapid.Permutation(r.Bindings).Draw(t, "bindings")
		if got := placement.Schedule(r); !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%+v\nwant\n%+v", got, want)
		}
	})
}

// Scheduling is idempotent: with its own result as the input, the result stays the same.
func TestAnswerIsAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		first := placement.Schedule(r)
		r.Bindings = first.Bindings
		if again := placement.Schedule(r); !reflect.DeepEqual(again, first) {
			t.Fatalf("first\n%s\n%+v\nagain\n%s\n%+v", tell(first), first, tell(again), again)
		}
	})
}

func TestEveryClusterHasOneDecisionWithAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		o := placement.Schedule(r)
		verdicts := map[string]int{}
		found := 0
		for i, d := range o.Decisions {
			verdicts[d.Cluster]++
			if d.Reason == "" {
				t.Fatalf("%s has no reason", d.Cluster)
			}
			if d.Selected {
				found++
				if i >= found {
					t.Fatalf("%s is selected and stands after one that is not", d.Cluster)
				}
			}
		}
		for _, c := range r.Clusters {
			if verdicts[c.Name] != 1 {
				t.Fatalf("%s has %d decisions", c.Name, verdicts[c.Name])
			}
		}
		if found != o.Found {
			t.Fatalf("found %d, says %d", found, o.Found)
		}
	})
}

// The resulting bindings are those of the selected clusters, and those whose content is not
// removed yet.
func TestBindingsAreTheSelectedAndTheLeaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		o := placement.Schedule(r)
		var staying, leaving []string
		for _, b := range o.Bindings {
			if b.Unscheduled {
				leaving = append(leaving, b.Cluster)
			} else {
				staying = append(staying, b.Cluster)
			}
		}
		chosen := selectedOf(o)
		slices.Sort(chosen)
		if !slices.Equal(chosen, staying) {
			t.Fatalf("selected %v, bound %v", chosen, staying)
		}
		for _, b := range r.Bindings {
			if !slices.Contains(staying, b.Cluster) && !slices.Contains(leaving, b.Cluster) {
				t.Fatalf("forgot the binding of %s", b.Cluster)
			}
		}
	})
}

func TestPickNNeverExceedsN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, p := drawFleet(t), drawPickN(t)
		o := placement.Schedule(placement.Request{Key: crp, Policy: p, Clusters: f, Bindings: drawBindings(t, f, p)})
		if n := int(*p.NumberOfClusters); o.Found > n || o.Fulfilled != (o.Found == n) {
			t.Fatalf("%d of %d selected, fulfilled: %t", o.Found, n, o.Fulfilled)
		}
	})
}

// Scaling up keeps all bindings, and scaling down only removes some.
func TestScalingMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := placement.Request{Key: crp, Policy: drawPickN(t), Clusters: drawFleet(t)}
		r.Bindings = placement.Schedule(r).Bindings
		before := r.Bindings

		n := int32(rapid.IntRange(0, 12).Draw(t, "new n"))
		scaled := *r.Policy
		scaled.NumberOfClusters = &n
		r.Policy = &scaled
		after := placement.Schedule(r).Bindings

		for _, b := range after {
			i := slices.IndexFunc(before, func(o placement.Binding) bool { return o.Cluster == b.Cluster })
			switch kept := i >= 0 && reflect.DeepEqual(before[i], b); {
			case b.Unscheduled && int(n) >= len(before):
				t.Fatalf("scaling to %d removed %s", n, b.Cluster)
			case !b.Unscheduled && !kept && int(n) <= len(before):
				t.Fatalf("scaling to %d added or changed %s", n, b.Cluster)
			case i >= 0 && !b.Unscheduled && !kept:
				t.Fatalf("scaling to %d changed %+v to %+v", n, before[i], b)
			}
		}
	})
}

func TestScheduleChangesNoInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		before := fmt.Sprintf("%+v %+v %+v", r.Policy, r.Clusters, r.Bindings)
		placement.Schedule(r)
		placement.Explain(r)
		if after := fmt.Sprintf("%+v %+v %+v", r.Policy, r.Clusters, r.Bindings); after != before {
			t.Fatalf("was\n%s\nis\n%s", before, after)
		}
	})
}

// Explain has the same decisions as Schedule, with the reason why a cluster was not selected
// and what would change that.
func TestExplainAgreesWithSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		o := placement.Schedule(r)
		explanations := placement.Explain(r)
		if len(explanations) != len(o.Decisions) {
			t.Fatalf("%d explanations of %d decisions", len(explanations), len(o.Decisions))
		}
		for i, e := range explanations {
			if !reflect.DeepEqual(e.Decision, o.Decisions[i]) {
				t.Fatalf("explains %+v, decided %+v", e.Decision, o.Decisions[i])
			}
			if e.Selected == (len(e.Change) > 0) {
				t.Fatalf("%s is selected: %t, and to change that: %v", e.Cluster, e.Selected, e.Change)
			}
			var points, score int32
			for _, p := range e.Preferred {
				points += p.Points
			}
			for _, s := range e.Spread {
				score += s.Score
			}
			if !e.Selected && e.Score != nil && (points != e.Score.Affinity || score != e.Score.Spread) {
				t.Fatalf("%s scored %+v, explained as %d and %d", e.Cluster, *e.Score, points, score)
			}
		}
	})
}
