package placement

import (
	"cmp"
	"slices"
	"strconv"
)

// pickN selects N clusters. Bound clusters stay unless N shrinks.
func (c *cycle) pickN() {
	if !c.hasNumber {
		c.freeze("the policy has no numberOfClusters")
		return
	}
	c.filter()
	for i := range c.members {
		if m := &c.members[i]; m.candidate() {
			m.affinity = c.rules.affinity(m.Cluster)
		}
	}
	c.spreading = newSpread(c.rules.constraints, c.fleet)
	c.wanted = c.n

	held := c.boundInOrder()
	if c.n > len(held) {
		for _, m := range held {
			c.spreading.add(m.index)
		}
		c.scaleUp(c.n-len(held), nextOrder(held))
	} else {
		c.scaleDown(held)
	}
	if c.fulfilled = c.selectedCount() >= c.n; !c.fulfilled {
		c.noteEmpty()
	}
}

// boundInOrder returns the bound clusters in the order they were chosen; where that is not
// recorded, by name, descending.
func (c *cycle) boundInOrder() []*clusterState {
	var all []*clusterState
	for i := range c.members {
		if m := &c.members[i]; m.class == bound {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, byOrderChosen)
	return all
}

func byOrderChosen(a, b *clusterState) int {
	return cmp.Or(cmp.Compare(a.current.Order, b.current.Order), cmp.Compare(b.index, a.index))
}

func nextOrder(held []*clusterState) int {
	next := 1
	for _, m := range held {
		next = max(next, m.old.Order+1)
	}
	return next
}

// scaleUp selects up to want clusters, one at a time, and unschedules those that an earlier
// policy selected and this one does not. Clusters that the placement holds under an earlier policy
// win ties in every pick, because moving a placement unnecessarily would be an outage.
//
// Clusters that are not chosen keep their score at the last pick.
func (c *cycle) scaleUp(want, order int) {
	groups := c.groups(c.ranked())
	for {
		best, score := c.best(groups)
		if best == nil || want == 1 {
			c.scoreRemaining()
		}
		if best == nil {
			break
		}
		m := best.pop()
		if c.explainer != nil {
			c.explainer.recordPick(m, score, groups)
		}
		c.choose(m, &Score{Affinity: m.affinity, Spread: score}, order)
		if want--; want == 0 {
			break
		}
		order++
		c.spreading.add(m.index)
	}
	c.withdrawUnchosen()
}

// withdrawUnchosen unschedules what an earlier policy selected and this one does not.
func (c *cycle) withdrawUnchosen() {
	for i := range c.members {
		if m := &c.members[i]; m.class == reconsidered && !m.chosen {
			c.withdraw(m)
		}
	}
}

// ranked returns the candidates, best first as far as that does not depend on earlier
// picks.
func (c *cycle) ranked() []*clusterState {
	var all []*clusterState
	for i := range c.members {
		if m := &c.members[i]; m.candidate() {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *clusterState) int {
		return cmp.Or(
			cmp.Compare(b.affinity, a.affinity),
			cmp.Compare(keepFirst(b), keepFirst(a)),
			cmp.Compare(b.index, a.index),
		)
	})
	return all
}

// keepFirst breaks ties in favour of a cluster that the placement has under an earlier policy.
func keepFirst(m *clusterState) int {
	if m.class == reconsidered {
		return 1
	}
	return 0
}

// A group has the candidates of the same domains, best first. At any time all of them have the
// same spread score. So only the first one of each group can be the next pick, and a pick
// compares one candidate per group.
type group struct {
	members []*clusterState
	ranks   []int // ranks of the members among all candidates
}

func (g *group) pop() *clusterState {
	m := g.members[0]
	g.members, g.ranks = g.members[1:], g.ranks[1:]
	return m
}

func (c *cycle) groups(ranked []*clusterState) []*group {
	var all []*group
	index := map[string]*group{}
	var key []byte
	for rank, m := range ranked {
		key = key[:0]
		for _, d := range c.spreading.perConstraint {
			key = strconv.AppendInt(key, int64(d.of[m.index]), 36)
			key = append(key, ' ')
		}
		g := index[string(key)]
		if g == nil {
			g = &group{}
			index[string(key)] = g
			all = append(all, g)
		}
		g.members = append(g.members, m)
		g.ranks = append(g.ranks, rank)
	}
	return all
}

// best returns the group whose first cluster is the next pick, and its spread score; nil if
// there is none.
func (c *cycle) best(groups []*group) (*group, int32) {
	var best *group
	var top int32
	for _, g := range groups {
		if len(g.members) == 0 {
			continue
		}
		score, forbidden := c.spreading.score(g.members[0].index)
		if forbidden >= 0 {
			continue
		}
		if best == nil || score > top || score == top && g.ranks[0] < best.ranks[0] {
			best, top = g, score
		}
	}
	return best, top
}

// scoreRemaining gives each remaining candidate the spread score it would have as the next pick.
func (c *cycle) scoreRemaining() {
	for i := range c.members {
		if m := &c.members[i]; m.candidate() && !m.chosen {
			m.spread, m.forbidden = c.spreading.score(i)
		}
	}
}

// scaleDown unschedules what an earlier policy selected and the surplus. It scores the rest as
// at the last pick, so that scheduling again gives the same decisions.
func (c *cycle) scaleDown(held []*clusterState) {
	c.withdrawUnchosen()
	surplus := slices.Clone(held)
	slices.SortFunc(surplus, worstFirst)
	for _, m := range surplus[:len(held)-c.n] {
		c.withdraw(m)
	}
	held = slices.DeleteFunc(held, func(m *clusterState) bool { return !m.selected() })
	if last := len(held) - 1; last >= 0 {
		for _, m := range held[:last] {
			c.spreading.add(m.index)
		}
		c.lastBound = held[last]
	}
	for i := range c.members {
		m := &c.members[i]
		if m.class == bound && !m.selected() {
			m.class = unscheduled
			m.objection = c.rules.objection(m.Cluster)
			m.affinity = c.rules.affinity(m.Cluster)
		}
	}
	c.scoreRemaining()
}

// worstFirst orders clusters for removal: those without content first, then those never scored,
// then lower scores at the time of choice, then the smaller name.
func worstFirst(a, b *clusterState) int {
	return cmp.Or(
		cmp.Compare(rank(a.old.HasRevision()), rank(b.old.HasRevision())),
		cmp.Compare(rank(a.old.Score != nil), rank(b.old.Score != nil)),
		compareScores(a.old.Score, b.old.Score),
		cmp.Compare(a.index, b.index),
	)
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareScores(a, b *Score) int {
	if a == nil || b == nil {
		return 0
	}
	return cmp.Or(cmp.Compare(a.Spread, b.Spread), cmp.Compare(a.Affinity, b.Affinity))
}
