package placement

import (
	"fmt"
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
	var hard, soft []constraint
	for _, t := range all {
		c := constraint{key: t.TopologyKey, maxSkew: maxSkew(t), hard: t.WhenUnsatisfiable != api.ScheduleAnyway}
		if c.hard {
			hard = append(hard, c)
		} else {
			soft = append(soft, c)
		}
	}
	return append(hard, soft...)
}

// violation returns the reason if a hard constraint is violated.
func (c constraint) violation() string {
	return `violated doNotSchedule topology spread constraint "` + c.key + `" (max skew ` + strconv.Itoa(int(c.maxSkew)) + `)`
}

// domains are the values of one label in the whole fleet, with the number of chosen clusters
// for each. As in KubeFleet, a domain counts even if none of its clusters is eligible, and then
// limits the others.
type domains struct {
	of    []int32 // by cluster; -1 if it has no such label
	names []string
	count []int32 // by domain
	// hist is the number of domains with each count. low and high are the smallest and the
	// largest count. low2 is the second smallest, which equals low if two domains have that
	// count.
	hist            []int32
	low, low2, high int32
}

func newDomains(key string, fleet []*Cluster) *domains {
	d := &domains{of: make([]int32, len(fleet))}
	index := map[string]int32{}
	for i, c := range fleet {
		value, ok := c.Labels[key]
		if !ok {
			d.of[i] = -1
			continue
		}
		id, seen := index[value]
		if !seen {
			id = int32(len(d.names))
			index[value] = id
			d.names = append(d.names, value)
		}
		d.of[i] = id
	}
	d.count = make([]int32, len(d.names))
	d.hist = []int32{int32(len(d.names))}
	d.updateLow()
	return d
}

// add counts one more chosen cluster.
func (d *domains) add(cluster int) {
	id := d.of[cluster]
	if id < 0 {
		return
	}
	n := d.count[id]
	d.count[id]++
	d.hist[n]--
	if int(n)+1 == len(d.hist) {
		d.hist = append(d.hist, 0)
	}
	d.hist[n+1]++
	d.high = max(d.high, n+1)
	d.updateLow()
}

// updateLow finds low and low2 again. Counts only grow, so low never falls, and no search is
// longer than the largest count.
func (d *domains) updateLow() {
	if len(d.names) == 0 {
		return
	}
	for d.hist[d.low] == 0 {
		d.low++
	}
	if d.hist[d.low] > 1 || len(d.names) == 1 {
		d.low2 = d.low
		return
	}
	d.low2 = d.low + 1
	for d.hist[d.low2] == 0 {
		d.low2++
	}
}

// effect returns how one more cluster in a domain would change the skew, and whether that
// exceeds maxSkew.
func (d *domains) effect(domain, maxSkew int32) (delta int32, violated bool) {
	n, skew := d.count[domain], d.high-d.low
	switch {
	case d.high == d.low:
		delta = 1
	case n == d.low && d.low != d.low2:
		delta = -1
	case n == d.high:
		delta = 1
	}
	return delta, skew+delta > maxSkew
}

// penalty is the score of a violated soft constraint.
const penalty = 1000

// A spread keeps the domains of all constraints.
type spread struct {
	constraints   []constraint
	perConstraint []*domains
}

func newSpread(constraints []constraint, fleet []*Cluster) *spread {
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

// emptyDomains returns the values of a constraint's label that have the smallest count and no
// eligible cluster.
func (c *cycle) emptyDomains(i int) []string {
	d := c.spreading.perConstraint[i]
	usable := make([]bool, len(d.names))
	for j := range c.members {
		if id := d.of[j]; id >= 0 && (c.members[j].candidate() || c.members[j].selected()) {
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

// noteEmpty adds a note about domains without an eligible cluster, if the placement does not
// get all its clusters because of them.
func (c *cycle) noteEmpty() {
	for i, k := range c.spreading.constraints {
		forbids := slices.ContainsFunc(c.members, func(m clusterState) bool { return m.candidate() && m.forbidden == i })
		if empty := c.emptyDomains(i); forbids && len(empty) > 0 {
			c.addNote(fmt.Sprintf("topology spread constraint %q: nothing can be chosen in %s, which counts nevertheless and keeps all others at most %d ahead", k.key, firstFew(empty), k.maxSkew))
		}
	}
}
