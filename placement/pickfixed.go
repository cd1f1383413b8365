package placement

import (
	"cmp"
	"slices"
)

// pickFixed selects the clusters that the policy names. Only eligibility is checked, and only for new clusters: a named
// cluster that is bound stays.
type pickFixed struct{}

func (pickFixed) decide(c *cycle) {
	if len(c.rules.names) == 0 {
		c.rules.addNote("spec.policy.clusterNames is empty: nothing is placed, and what was placed before stays")
		c.freeze("the policy names no cluster")
		return
	}
	for _, m := range c.members {
		switch {
		case c.rules.listed[m.Name]:
			c.chooseNamed(m)
		case m.class == reconsidered:
			c.unschedule(m)
		}
	}
	c.wanted = len(c.rules.names)
	c.fulfilled = c.selectedCount() >= c.wanted
}

func (c *cycle) chooseNamed(m *clusterState) {
	held := m.class == bound || m.class == reconsidered
	switch {
	case m.Ineligible == "" && m.class != bound:
		c.choose(m, nil, 0)
	case m.Ineligible != "" && held:
		if m.class == reconsidered {
			again := *m.old
			again.Policy = c.rules.hash
			m.current = &again
		}
		m.reason = "Cluster " + quote(m.Name) + " keeps what it has and gets nothing new: " + m.Ineligible
		c.rules.addNote(m.reason)
	}
}

// order sorts the clusters as they are listed.
func (pickFixed) order(c *cycle, selected []*clusterState) {
	at := map[string]int{}
	for i, name := range c.rules.names {
		at[name] = i - len(c.rules.names)
	}
	slices.SortStableFunc(selected, func(a, b *clusterState) int { return cmp.Compare(at[a.Name], at[b.Name]) })
}

func (pickFixed) scored(*cycle, *clusterState) bool { return false }

func (pickFixed) unmet(c *cycle) (clusters []*clusterState, missing []Decision) {
	for _, name := range c.rules.names {
		switch m := c.find(name); {
		case m == nil:
			missing = append(missing, Decision{Cluster: name, Reason: "Specified cluster " + quote(name) + " is not found"})
		case !m.selected():
			clusters = append(clusters, m)
		}
	}
	return clusters, missing
}

func (pickFixed) refusal(c *cycle, m *clusterState) string {
	if c.rules.listed[m.Name] {
		return "Cluster " + quote(m.Name) + " is not eligible for resource placement yet: " + m.Ineligible
	}
	return "Cluster " + quote(m.Name) + " is not named by the placement policy"
}

func (pickFixed) absentReason(c *cycle, m *clusterState, _ bool) string {
	if c.rules.listed[m.Name] {
		return m.absence()
	}
	return ""
}

func (pickFixed) everywhere() bool { return false }

// explain adds nothing: there are no filters.
func (pickFixed) explain(*cycle, *Explanation, *clusterState) {}

func (pickFixed) advise(c *cycle, m *clusterState) []string {
	if c.rules.listed[m.Name] {
		return []string{"it must be eligible: " + m.Ineligible}
	}
	return []string{"spec.policy.clusterNames must name " + quote(m.Name)}
}
