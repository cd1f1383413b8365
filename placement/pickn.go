package placement

import (
	"cmp"
	"slices"
)

// pickN selects the best N clusters that pass the filters. Bound clusters stay unless N shrinks.
type pickN struct{ pickAll }

func (pickN) decide(c *cycle) {
	if !c.rules.hasNumber {
		c.freeze("the policy has no numberOfClusters")
		return
	}
	c.filter()
	for _, m := range c.members {
		if m.candidate() {
			m.affinity = c.rules.affinity(m.Cluster)
		}
	}
	c.spreading = newSpread(c.rules.constraints, c.members)
	c.wanted = c.rules.n

	held := c.boundInOrder()
	if c.rules.n > len(held) {
		for _, m := range held {
			c.spreading.add(m.index)
		}
		c.scaleUp(c.rules.n-len(held), nextOrder(held))
	} else {
		c.scaleDown(held)
	}
	if c.fulfilled = c.selectedCount() >= c.rules.n; !c.fulfilled {
		c.noteEmpty()
	}
}

func (pickN) order(_ *cycle, selected []*clusterState) { slices.SortFunc(selected, byOrderChosen) }

func (pickN) scored(_ *cycle, m *clusterState) bool { return m.candidate() && m.forbidden < 0 }

func (n pickN) refusal(c *cycle, m *clusterState) string {
	switch {
	case m.objection != "":
		return n.pickAll.refusal(c, m)
	case m.forbidden >= 0:
		return c.unschedulable(c.spreading.constraints[m.forbidden].violation())
	}
	s := &Score{Affinity: m.affinity, Spread: m.spread}
	if c.lastBound != nil && compareScores(s, c.lastBound.current.Score) > 0 {
		return "Cluster " + quote(m.Name) + " is not needed" + scores(s) + ": nothing is moved while the policy has what it asks for"
	}
	return "Cluster " + quote(m.Name) + " does not score high enough" + scores(s)
}

// absentReason is empty once enough clusters are found.
func (n pickN) absentReason(c *cycle, m *clusterState, noneSelected bool) string {
	if c.fulfilled {
		return ""
	}
	return n.pickAll.absentReason(c, m, noneSelected)
}

func (pickN) everywhere() bool { return false }

func (n pickN) explain(x *explainer, e *Explanation, m *clusterState) {
	n.pickAll.explain(x, e, m)
	for i := range x.cycle.rules.preferred {
		e.Preferred = append(e.Preferred, x.cycle.rules.preferred[i].explain(m.Cluster))
	}
	e.Tie = x.ties[m]
	switch {
	case x.verdicts[m] != nil:
		e.Spread = x.verdicts[m]
	case !e.Selected:
		e.Spread = x.cycle.spreading.verdicts(m.index)
		e.Tie = x.lostTie(m)
	}
}

func (n pickN) advise(x *explainer, m *clusterState) []string {
	needs := n.pickAll.advise(x, m)
	switch {
	case m.forbidden >= 0:
		needs = append(needs, x.spreadChange(m))
	case x.cycle.scored(m):
		needs = append(needs, x.scoreChange(m))
	}
	return needs
}

// boundInOrder returns the bound clusters in the order they were chosen; where that is not
// recorded, by name, descending.
func (c *cycle) boundInOrder() []*clusterState {
	all := c.where(func(m *clusterState) bool { return m.class == bound })
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
	candidates := c.ranked()
	var last *clusterState
	for ; want > 0; want-- {
		if last != nil {
			c.spreading.add(last.index)
		}
		i, score := c.next(candidates)
		if i < 0 {
			break
		}
		last = candidates[i]
		candidates = slices.Delete(candidates, i, i+1)
		if c.explainer != nil {
			c.explainer.recordPick(last, score, candidates)
		}
		c.choose(last, &Score{Affinity: last.affinity, Spread: score}, order)
		order++
	}
	c.scoreRemaining()
	c.withdrawUnchosen()
}

// withdrawUnchosen unschedules what an earlier policy selected and this one does not.
func (c *cycle) withdrawUnchosen() {
	for _, m := range c.members {
		if m.class == reconsidered && !m.chosen {
			c.withdraw(m)
		}
	}
}

// ranked returns the candidates, best first as far as that does not depend on earlier
// picks.
func (c *cycle) ranked() []*clusterState {
	all := c.where((*clusterState).candidate)
	slices.SortFunc(all, func(a, b *clusterState) int {
		return cmp.Or(
			cmp.Compare(b.affinity, a.affinity),
			cmp.Compare(rank(b.class == reconsidered), rank(a.class == reconsidered)),
			cmp.Compare(b.index, a.index),
		)
	})
	return all
}

// next returns which of the candidates, which are ranked, is the next pick, and its spread score;
// -1 if none can be chosen.
func (c *cycle) next(candidates []*clusterState) (best int, top int32) {
	best = -1
	for i, m := range candidates {
		if score, forbidden := c.spreading.score(m.index); forbidden < 0 && (best < 0 || score > top) {
			best, top = i, score
		}
	}
	return best, top
}

// scoreRemaining gives each remaining candidate the spread score it would have as the next pick.
func (c *cycle) scoreRemaining() {
	for _, m := range c.members {
		if m.candidate() && !m.chosen {
			m.spread, m.forbidden = c.spreading.score(m.index)
		}
	}
}

// scaleDown unschedules what an earlier policy selected and the surplus. It scores the rest as
// at the last pick, so that scheduling again gives the same decisions.
func (c *cycle) scaleDown(held []*clusterState) {
	c.withdrawUnchosen()
	surplus := slices.Clone(held)
	slices.SortFunc(surplus, worstFirst)
	for _, m := range surplus[:len(held)-c.rules.n] {
		c.withdraw(m)
	}
	held = slices.DeleteFunc(held, func(m *clusterState) bool { return !m.selected() })
	if last := len(held) - 1; last >= 0 {
		for _, m := range held[:last] {
			c.spreading.add(m.index)
		}
		c.lastBound = held[last]
	}
	for _, m := range c.members {
		if m.class == bound && !m.selected() {
			m.class = unscheduled
			m.objection, m.affinity = c.rules.objection(m.Cluster), c.rules.affinity(m.Cluster)
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

// rank puts what does not hold before what does.
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
