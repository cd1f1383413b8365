package placement

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gitfleet/gitfleet/placement/api"
)

// ScheduledMessage is the message of a placement's condition Scheduled.
func ScheduledMessage(fulfilled bool, found int) string {
	n := strconv.Itoa(found)
	if fulfilled {
		return "found all cluster needed as specified by the scheduling policy, found " + n + " cluster(s)"
	}
	return "could not find all clusters needed as specified by the scheduling policy, found " + n + " cluster(s) instead"
}

// ScheduledReason is the reason of a placement's condition Scheduled.
func ScheduledReason(fulfilled bool) string {
	if fulfilled {
		return api.SchedulingPolicyFulfilled
	}
	return api.SchedulingPolicyUnfulfilled
}

func quote(s string) string { return `"` + s + `"` }

// pickedReason is the reason of a selected cluster; without a score it was named by the policy.
func pickedReason(cluster string, s *Score) string {
	text := "Successfully scheduled resources for placement in " + quote(cluster)
	if s != nil {
		text += scores(s)
	}
	return text + ": picked by scheduling policy"
}

func scores(s *Score) string {
	return " (affinity score: " + strconv.Itoa(int(s.Affinity)) + ", topology spread score: " + strconv.Itoa(int(s.Spread)) + ")"
}

// decisions puts the decisions in order: first the selected clusters; then what the policy names and that was not
// selected; then those that were scored, best first; then all others, by name. Callers rely on the first Wanted - Found
// decisions about clusters that are not selected: they stand for the missing clusters.
func (c *cycle) decisions() []Decision {
	all := make([]Decision, 0, len(c.members))
	add := func(members []*clusterState) {
		for _, m := range members {
			all = append(all, c.decision(m))
		}
	}
	selected := c.where((*clusterState).selected)
	c.rules.kind.order(c, selected)
	add(selected)
	add(c.notChosen())
	unmet, named := c.rules.kind.unmet(c), map[string]bool{}
	for _, d := range unmet {
		named[d.Cluster] = true
	}
	all = append(all, unmet...)
	add(c.where(func(m *clusterState) bool { return !m.selected() && !c.scored(m) && !named[m.Name] }))
	return all
}

// scored reports whether a cluster that is not selected was ranked among the candidates.
func (c *cycle) scored(m *clusterState) bool { return c.frozen == "" && c.rules.kind.scored(c, m) }

// notChosen are the clusters that were scored and not chosen, best first.
func (c *cycle) notChosen() []*clusterState {
	all := c.where(func(m *clusterState) bool { return !m.selected() && c.scored(m) })
	slices.SortFunc(all, func(a, b *clusterState) int {
		return cmp.Or(cmp.Compare(b.spread, a.spread), cmp.Compare(b.affinity, a.affinity), cmp.Compare(b.index, a.index))
	})
	return all
}

func (c *cycle) decision(m *clusterState) Decision {
	d := Decision{Cluster: m.Name, Selected: m.selected()}
	if d.Selected {
		d.Score, d.Note = m.current.Score, c.unreadable(m.Cluster)
		picked := withNote(pickedReason(m.Name, d.Score), d.Note)
		d.Reason = cmp.Or(m.reason, m.current.Reason, picked)
		d.Picked = d.Reason == picked
		return d
	}
	if c.scored(m) {
		d.Score = &Score{Affinity: m.affinity, Spread: m.spread}
	}
	d.Reason = withNote(c.notSelectedReason(m), c.unreadable(m.Cluster))
	return d
}

// withNote adds a note, which may be empty, to a reason.
func withNote(reason, note string) string {
	if note == "" {
		return reason
	}
	return reason + "; " + note
}

// unschedulable is the reason of a filtered cluster. The text is shared, since there are many
// clusters and few objections.
func (c *cycle) unschedulable(objection string) string {
	text, known := c.texts[objection]
	if !known {
		text = "ClusterUnschedulable, " + objection
		c.texts[objection] = text
	}
	return text
}

// notSelectedReason is why a cluster is not selected.
func (c *cycle) notSelectedReason(m *clusterState) string {
	if c.frozen != "" {
		return "Cluster " + quote(m.Name) + " is not selected: " + c.frozen
	}
	return c.rules.kind.refusal(c, m)
}
