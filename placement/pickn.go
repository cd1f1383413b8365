package placement

import (
	"cmp"
	"fmt"
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
		i, score := c.spreading.next(candidates)
		if i < 0 {
			break
		}
		last = candidates[i]
		candidates = slices.Delete(candidates, i, i+1)
		if c.picks != nil {
			c.picks.record(last, score, c.spreading, candidates)
		}
		c.choose(last, &Score{Affinity: last.affinity, Spread: score}, order)
		order++
	}
	c.scoreRemaining()
	c.unscheduleUnchosen()
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

// scaleDown unschedules what an earlier policy selected and the surplus. It scores the rest as
// at the last pick, so that scheduling again gives the same decisions.
func (c *cycle) scaleDown(held []*clusterState) {
	c.unscheduleUnchosen()
	surplus := slices.Clone(held)
	slices.SortFunc(surplus, worstFirst)
	for _, m := range surplus[:len(held)-c.rules.n] {
		c.unschedule(m)
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

func compareScores(a, b *Score) int {
	if a == nil || b == nil {
		return 0
	}
	return cmp.Or(cmp.Compare(a.Spread, b.Spread), cmp.Compare(a.Affinity, b.Affinity))
}

// scoreRemaining gives each remaining candidate the spread score it would have as the next pick.
func (c *cycle) scoreRemaining() {
	for _, m := range c.members {
		if m.candidate() && !m.chosen {
			m.spread, m.forbidden = c.spreading.score(m.index)
		}
	}
}

// unscheduleUnchosen unschedules what an earlier policy selected and this one does not.
func (c *cycle) unscheduleUnchosen() {
	for _, m := range c.members {
		if m.class == reconsidered && !m.chosen {
			c.unschedule(m)
		}
	}
}

// noteEmpty adds a note about domains without an eligible cluster, if the placement does not
// get all its clusters because of them.
func (c *cycle) noteEmpty() {
	for i, k := range c.spreading.constraints {
		forbids := slices.ContainsFunc(c.members, func(m *clusterState) bool { return m.candidate() && m.forbidden == i })
		if empty := c.spreading.emptyDomains(i, c.members); forbids && len(empty) > 0 {
			c.rules.addNote(fmt.Sprintf("topology spread constraint %q: nothing can be chosen in %s, which counts nevertheless and keeps all others at most %d ahead", k.key, firstFew(empty), k.maxSkew))
		}
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

func (n pickN) explain(c *cycle, e *Explanation, m *clusterState) {
	n.pickAll.explain(c, e, m)
	for i := range c.rules.preferred {
		e.Preferred = append(e.Preferred, c.rules.preferred[i].explain(m.Cluster))
	}
	e.Tie = c.picks.ties[m]
	switch {
	case c.picks.spread[m] != nil:
		e.Spread = c.picks.spread[m]
	case !e.Selected:
		e.Spread = c.spreading.verdicts(m.index)
		e.Tie = n.lostTie(c, m)
	}
}

// lostTie says to which cluster of the same score the cluster lost; empty if it did not.
func (n pickN) lostTie(c *cycle, m *clusterState) string {
	if !n.scored(c, m) {
		return ""
	}
	scores := Score{Affinity: m.affinity, Spread: m.spread}
	switch {
	case c.picks.last != nil && *c.picks.last.current.Score == scores:
		return tie(c.picks.last, m)
	case c.lastBound != nil && c.lastBound.current.Score != nil && *c.lastBound.current.Score == scores:
		return fmt.Sprintf("%s has the same scores and was chosen: of equals one that was held goes first, then the largest name", c.lastBound.Name)
	}
	return ""
}

func (n pickN) advise(c *cycle, m *clusterState) []string {
	needs := n.pickAll.advise(c, m)
	switch {
	case m.forbidden >= 0:
		needs = append(needs, c.spreadChange(m))
	case n.scored(c, m):
		needs = append(needs, c.scoreChange())
	}
	return needs
}

// spreadChange says what a hard spread constraint requires.
func (c *cycle) spreadChange(m *clusterState) string {
	i := m.forbidden
	d, k := c.spreading.perConstraint[i], c.spreading.constraints[i]
	delta, _ := d.effect(d.of[m.index], k.maxSkew)
	need := fmt.Sprintf("the maxSkew of %q must be at least %d, or a cluster be chosen where there are fewer", k.key, d.high-d.low+delta)
	if empty := c.spreading.emptyDomains(i, c.members); len(empty) > 0 {
		need += fmt.Sprintf("; nothing can be chosen in %s, which counts nevertheless", list(empty))
	}
	return need
}

// scoreChange says what a cluster whose score is too low requires.
func (c *cycle) scoreChange() string {
	last := c.picks.last
	if last == nil {
		return fmt.Sprintf("numberOfClusters must be larger than %d, or a selected cluster leave the fleet: nothing is moved while the policy has what it asks for", c.rules.n)
	}
	s := last.current.Score
	return fmt.Sprintf("its score must be better than that of %s%s, or numberOfClusters larger than %d", last.Name, scores(s), c.rules.n)
}
