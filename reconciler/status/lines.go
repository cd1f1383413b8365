package status

import (
	"iter"
	"slices"

	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// A lineBuilder makes the lines of a builder.
type lineBuilder struct{ b *builder }

// lines returns the lines of the clusters of the plan. At first they have the facts; if the plan for a cluster is the same as in the
// earlier report, it is the line of that report.
func (l lineBuilder) lines() *sharedlist.Editor[line] {
	if l.b.lines != nil {
		return l.b.lines
	}
	var earlier sharedlist.List[line]
	if l.b.earlier != nil {
		earlier = l.b.earlier.lines
	}
	l.b.lines = earlier.Edit(len(l.b.p.Clusters))
	for i, c := range l.b.p.Clusters {
		if i >= earlier.Len() || l.b.earlier.of.Clusters[i] != c {
			l.b.lines.Set(i, line{facts: factsOf(l.b.p, c)})
		}
	}
	return l.b.lines
}

// clear removes from a line what it says beside the facts.
func (l lineBuilder) clear(i int) {
	l.lines().Set(i, line{facts: l.lines().At(i).facts})
}

// clustersWith returns the clusters with any of some facts.
func (l lineBuilder) clustersWith(any facts) (out []*plan.OnCluster) {
	for i, one := range l.lines().All() {
		if one.facts&any != 0 {
			out = append(out, l.b.p.Clusters[i])
		}
	}
	return out
}

// tally counts the selected clusters by the status of their condition of a type in summedUp.
func (l lineBuilder) tally(typ string) conditions.Counts {
	shift := 2 * slices.Index(summedUp, typ)
	var n [4]int
	for _, one := range l.lines().All() {
		n[one.statuses>>shift&3]++ // lines of clusters that are not selected have no statuses
	}
	return conditions.Counts{True: n[isTrue], False: n[isFalse], Unknown: n[isUnknown]}
}

func count(all iter.Seq2[int, line], are func(line) bool) (n int) {
	for _, one := range all {
		if are(one) {
			n++
		}
	}
	return n
}

// factsOf returns the facts about a cluster of a placement.
func factsOf(p *plan.Placement, c *plan.OnCluster) (out facts) {
	if !c.Binding.Unscheduled && !c.Binding.Removing && p.Lag(c).Commits == 0 {
		out |= isUpdated
	}
	if len(drifts(p, c)) > 0 {
		out |= isDrifted
	}
	if blocked, pending := c.BlockedDeletions(); len(blocked) > 0 && !pending {
		out |= isBlocked
	}
	if c.Seen() == nil {
		out |= isSilent
	}
	return out
}
