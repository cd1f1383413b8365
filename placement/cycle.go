package placement

import (
	"slices"
	"strings"
)

// A cycle is one scheduling cycle of one placement.
type cycle struct {
	rules     *rules
	members   []*clusterState // by name
	gone      []Binding       // on clusters that have left the fleet
	spreading *spread
	// lastBound is the bound cluster that was chosen last, if PickN needs no more; nil otherwise.
	lastBound *clusterState
	picks     *pickRecord       // nil if no explanation is needed
	texts     map[string]string // reasons shared by clusters

	frozen    string // why nothing is chosen or unscheduled; empty otherwise
	fulfilled bool
	wanted    int
}

func newCycle(rules *rules, clusters []Cluster, bindings []Binding) *cycle {
	c := &cycle{rules: rules, members: make([]*clusterState, len(clusters)), texts: map[string]string{}}
	states := make([]clusterState, len(clusters))
	for i := range states {
		states[i] = clusterState{Cluster: &clusters[i], forbidden: -1}
		c.members[i] = &states[i]
	}
	slices.SortFunc(c.members, func(a, b *clusterState) int { return strings.Compare(a.Name, b.Name) })
	for i, m := range c.members {
		m.index = i
	}
	for i := range bindings {
		c.classify(&bindings[i])
	}
	for i := range rules.preferred {
		for _, m := range c.members {
			rules.preferred[i].observe(m.Cluster)
		}
	}
	rules.noteProperties(c.members)
	return c
}

// find returns a cluster by name; nil if there is none.
func (c *cycle) find(name string) *clusterState {
	i, found := slices.BinarySearchFunc(c.members, name, func(m *clusterState, name string) int { return strings.Compare(m.Name, name) })
	if !found {
		return nil
	}
	return c.members[i]
}

// where returns the clusters for which a condition holds, by name.
func (c *cycle) where(holds func(*clusterState) bool) []*clusterState {
	var all []*clusterState
	for _, m := range c.members {
		if holds(m) {
			all = append(all, m)
		}
	}
	return all
}

func (c *cycle) classify(b *Binding) {
	m := c.find(b.Cluster)
	if m == nil {
		left := *b
		left.Unscheduled = true
		c.gone = append(c.gone, left)
		return
	}
	m.old, m.current = b, b
	switch {
	case b.Unscheduled:
		m.class = unscheduled
	case b.Policy != c.rules.hash:
		m.class = reconsidered
	default:
		m.class = bound
	}
}

// choose binds a cluster under the current policy. What the rollout recorded stays: existing
// content need not be released again.
func (c *cycle) choose(m *clusterState, score *Score, order int) {
	var b Binding
	if m.old != nil {
		b = *m.old
	}
	b.Cluster, b.Policy, b.Unscheduled = m.Name, c.rules.hash, false
	b.Score, b.Order = score, order
	b.Reason = withNote(pickedReason(m.Name, score), c.rules.unreadable(m.Cluster))
	m.current, m.chosen = &b, true
}

func (c *cycle) unschedule(m *clusterState) {
	b := *m.old
	b.Unscheduled = true
	m.current = &b
}

func (c *cycle) selectedCount() int {
	return len(c.where((*clusterState).selected))
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

// filter runs the filters for every cluster that is not bound.
func (c *cycle) filter() {
	for _, m := range c.members {
		if m.class != bound {
			m.objection = c.rules.objection(m.Cluster)
		}
	}
}

// freeze keeps all bindings as they are.
func (c *cycle) freeze(why string) {
	c.frozen = why
	for _, m := range c.where((*clusterState).selected) {
		m.reason = "Cluster " + quote(m.Name) + " keeps what it has: " + why
	}
}

// noteMisplaced adds notes about bound clusters that would not be selected now because of other
// placements.
func (c *cycle) noteMisplaced() {
	for _, m := range c.members {
		if m.class != bound {
			continue
		}
		if why := c.rules.affinityViolation(m.Cluster); why != "" {
			c.rules.addNote("cluster " + quote(m.Name) + " is kept, although " + why)
		}
	}
}
