package placement

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A constraint limits how unevenly clusters are chosen over the values of a label.
type constraint struct {
	key     string
	maxSkew int32
	hard    bool // DoNotSchedule
}

// compileSpread returns the constraints, hard ones before soft ones, because the first
// violation in that order is reported.
func compileSpread(all []api.TopologySpreadConstraint) []constraint {
	var out []constraint
	for _, t := range all {
		out = append(out, constraint{key: t.TopologyKey, maxSkew: maxSkew(t), hard: t.WhenUnsatisfiable != api.ScheduleAnyway})
	}
	slices.SortStableFunc(out, func(a, b constraint) int { return cmp.Compare(rank(b.hard), rank(a.hard)) })
	return out
}

// rank puts what does not hold before what does.
func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// violation returns the reason if a hard constraint is violated.
func (c constraint) violation() string {
	return `violated doNotSchedule topology spread constraint "` + c.key + `" (max skew ` + strconv.Itoa(int(c.maxSkew)) + `)`
}

// domains are the values of one label in the whole fleet, with the number of chosen clusters
// for each. As in KubeFleet, a domain counts even if none of its clusters is eligible, and then
// limits the others.
type domains struct {
	of        []int // by cluster; -1 if it has no such label
	names     []string
	count     []int32 // by domain
	low, high int32   // the smallest and the largest count
	lowest    int     // how many domains have the smallest count
}

func newDomains(key string, fleet []*clusterState) *domains {
	d := &domains{of: make([]int, len(fleet))}
	index := map[string]int{}
	for i, c := range fleet {
		value, ok := c.Labels[key]
		if !ok {
			d.of[i] = -1
			continue
		}
		id, seen := index[value]
		if !seen {
			id = len(d.names)
			index[value] = id
			d.names = append(d.names, value)
		}
		d.of[i] = id
	}
	d.count, d.lowest = make([]int32, len(d.names)), len(d.names)
	return d
}

// add counts one more chosen cluster.
func (d *domains) add(cluster int) {
	id := d.of[cluster]
	if id < 0 {
		return
	}
	d.count[id]++
	d.low, d.high, d.lowest = slices.Min(d.count), slices.Max(d.count), 0
	for _, n := range d.count {
		if n == d.low {
			d.lowest++
		}
	}
}

// effect returns how one more cluster in a domain would change the skew, and whether that
// exceeds maxSkew.
func (d *domains) effect(domain int, maxSkew int32) (delta int32, violated bool) {
	n, skew := d.count[domain], d.high-d.low
	switch {
	case d.high == d.low:
		delta = 1
	case n == d.low && d.lowest == 1:
		delta = -1
	case n == d.high:
		delta = 1
	}
	return delta, skew+delta > maxSkew
}

// A spread keeps the domains of all constraints.
type spread struct {
	constraints   []constraint
	perConstraint []*domains
}

func newSpread(constraints []constraint, fleet []*clusterState) *spread {
	s := &spread{constraints: constraints}
	for _, c := range constraints {
		s.perConstraint = append(s.perConstraint, newDomains(c.key, fleet))
	}
	return s
}

func (s *spread) add(cluster int) {
	for _, d := range s.perConstraint {
		d.add(cluster)
	}
}

// penalty is the score of a violated soft constraint.
const penalty = 1000

// score returns the score of choosing a cluster next, and the constraint that forbids it; -1 if
// none does.
func (s *spread) score(cluster int) (score int32, forbidden int) {
	for i, c := range s.constraints {
		d := s.perConstraint[i]
		id := d.of[cluster]
		if id < 0 {
			continue
		}
		delta, violated := d.effect(id, c.maxSkew)
		switch {
		case !violated:
			score -= delta
		case c.hard:
			return score, i
		default:
			score -= penalty
		}
	}
	return score, -1
}

// next returns which of the candidates, which are ranked, is the next pick, and its spread score;
// -1 if none can be chosen.
func (s *spread) next(candidates []*clusterState) (best int, top int32) {
	best = -1
	for i, m := range candidates {
		if score, forbidden := s.score(m.index); forbidden < 0 && (best < 0 || score > top) {
			best, top = i, score
		}
	}
	return best, top
}

// emptyDomains returns the values of a constraint's label that have the smallest count and no
// eligible cluster.
func (s *spread) emptyDomains(i int, fleet []*clusterState) []string {
	d := s.perConstraint[i]
	usable := make([]bool, len(d.names))
	for _, m := range fleet {
		if id := d.of[m.index]; id >= 0 && (m.candidate() || m.selected()) {
			usable[id] = true
		}
	}
	var all []string
	for id, name := range d.names {
		if !usable[id] && d.count[id] == d.low {
			all = append(all, quote(name))
		}
	}
	slices.Sort(all)
	return all
}
