package placement_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A literalScheduler implements spread constraints literally: before every pick it counts
// everything again, scores all candidates, and takes the best. The fast one is compared with
// it.
type literalScheduler struct {
	fleet      fleet
	chosen     map[string]bool
	candidates map[string]int32 // affinity by name
	kept       map[string]bool
	policy     *api.PlacementPolicy
}

// counts returns the chosen clusters per value of a label.
func (s *literalScheduler) counts(key string) map[string]int32 {
	all := map[string]int32{}
	for _, c := range s.fleet {
		if value, ok := c.Labels[key]; ok {
			all[value] += 0
			if s.chosen[c.Name] {
				all[value]++
			}
		}
	}
	return all
}

// judge returns the topology score of a cluster, or that it is forbidden.
func (s *literalScheduler) judge(c placement.Cluster) (score int32, forbidden bool) {
	for _, t := range s.policy.TopologySpreadConstraints {
		value, labeled := c.Labels[t.TopologyKey]
		if !labeled {
			continue
		}
		delta, violated := s.effect(t, value)
		switch {
		case !violated:
			score -= delta
		case t.WhenUnsatisfiable == api.ScheduleAnyway:
			score -= 1000
		default:
			return 0, true
		}
	}
	return score, false
}

func (s *literalScheduler) effect(t api.TopologySpreadConstraint, value string) (delta int32, violated bool) {
	counts := s.counts(t.TopologyKey)
	var list []int32
	for _, n := range counts {
		list = append(list, n)
	}
	slices.Sort(list)
	low, second, high := list[0], list[0], list[len(list)-1]
	if len(list) > 1 {
		second = list[1]
	}
	skew, n := high-low, counts[value]
	switch {
	case high == low:
		return 1, skew+1 > *t.MaxSkew
	case n == low && low != second:
		return -1, skew-1 > *t.MaxSkew
	case n == high:
		return 1, skew+1 > *t.MaxSkew
	}
	return 0, skew > *t.MaxSkew
}

// pick returns the next cluster and its topology score.
func (s *literalScheduler) pick() (name string, score int32) {
	kept := map[bool]int{true: 1}
	for _, c := range s.fleet {
		if _, ok := s.candidates[c.Name]; !ok || s.chosen[c.Name] {
			continue
		}
		this, forbidden := s.judge(c)
		if forbidden {
			continue
		}
		better := cmp.Or(
			cmp.Compare(this, score),
			cmp.Compare(s.candidates[c.Name], s.candidates[name]),
			cmp.Compare(kept[s.kept[c.Name]], kept[s.kept[name]]),
			strings.Compare(c.Name, name),
		)
		if name == "" || better > 0 {
			name, score = c.Name, this
		}
	}
	return name, score
}

// The fast scheduler picks the same clusters as the slow one. So a new pick never violates a
// DoNotSchedule constraint, and the best candidate always comes first.
func TestSpreadPicksByTheLetterOfTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, p := drawFleet(t), drawPickN(t)
		r := placement.Request{Key: crp, Policy: p, Clusters: f, Bindings: drawBindings(t, f, p)}
		o := placement.Schedule(r)

		s := &literalScheduler{fleet: f, policy: p, chosen: map[string]bool{}, candidates: map[string]int32{}, kept: map[string]bool{}}
		present := map[string]bool{}
		for _, b := range r.Bindings {
			switch inFleet := slices.ContainsFunc(f, func(c placement.Cluster) bool { return c.Name == b.Cluster }); {
			case !inFleet || b.Unscheduled:
			case b.Policy == o.Policy:
				present[b.Cluster] = true
			default:
				s.kept[b.Cluster] = true
			}
		}
		n := int(*p.NumberOfClusters)
		if len(present) >= n {
			t.Skip("nothing to pick")
		}
		for name := range present {
			s.chosen[name] = true
		}
		s.candidates = affinities(f, p, present)

		for _, d := range o.Decisions {
			if !d.Selected || present[d.Cluster] {
				continue
			}
			want, score := s.pick()
			if d.Cluster != want || d.Score.Spread != score || d.Score.Affinity != s.candidates[want] {
				t.Fatalf("picked %s %+v, want %s T%d A%d\n%s", d.Cluster, *d.Score, want, score, s.candidates[want], tell(o))
			}
			s.chosen[want] = true
		}
		if left, _ := s.pick(); left != "" && !o.Fulfilled {
			t.Fatalf("stopped at %d of %d, %s is left", o.Found, o.Wanted, left)
		}
	})
}

// affinities returns the affinity scores of the clusters that pass the filters, which are those
// of the same policy without spread that selects all of them.
func affinities(f fleet, p *api.PlacementPolicy, present map[string]bool) map[string]int32 {
	everyone := *p
	everyone.TopologySpreadConstraints = nil
	n := int32(len(f))
	everyone.NumberOfClusters = &n
	all := map[string]int32{}
	for _, d := range placement.Schedule(placement.Request{Key: crp, Policy: &everyone, Clusters: f}).Decisions {
		if d.Selected && !present[d.Cluster] {
			all[d.Cluster] = d.Score.Affinity
		}
	}
	return all
}
