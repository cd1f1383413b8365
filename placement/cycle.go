package placement

import (
	"slices"
	"strings"
)

// A class is the state of a placement on a cluster at the start of a scheduling cycle; scaleDown
// changes that of the surplus.
type class int

const (
	free         class = iota // without a binding
	unscheduled               // its content is being removed
	reconsidered              // selected by an earlier policy
	bound                     // selected by the current policy
)

// A clusterState is one cluster in one scheduling cycle.
type clusterState struct {
	*Cluster
	index int
	class class
	old   *Binding // the binding at the start; nil if there was none
	// current is the binding at the end: old if it did not change, nil if there is none.
	current *Binding

	objection string // why a filter refuses it; not evaluated for bound clusters
	affinity  int32
	spread    int32
	forbidden int  // index of the violated spread constraint, or -1
	chosen    bool // in this cycle
	// reason replaces the reason of the binding, or is the reason of a cluster without one.
	reason string
}

// candidate reports whether the cluster may be chosen in this cycle.
func (m *clusterState) candidate() bool { return m.class != bound && m.objection == "" }

func (m *clusterState) selected() bool { return m.current != nil && !m.current.Unscheduled }

// A cycle is one scheduling cycle of one placement.
type cycle struct {
	rules     *rules
	members   []*clusterState // by name
	gone      []Binding       // on clusters that have left the fleet
	spreading *spread
	// lastBound is the bound cluster that was chosen last, if PickN needs no more; nil otherwise.
	lastBound *clusterState
	explainer *explainer        // nil if no explanation is needed
	texts     map[string]string // reasons shared by clusters

	frozen    string // why nothing is chosen or unscheduled; empty otherwise
	fulfilled bool
	wanted    int
}

func newCycle(r Request) *cycle {
	c := &cycle{rules: compile(r), members: make([]*clusterState, len(r.Clusters)), texts: map[string]string{}}
	states := make([]clusterState, len(r.Clusters))
	for i := range states {
		states[i] = clusterState{Cluster: &r.Clusters[i], forbidden: -1}
		c.members[i] = &states[i]
	}
	slices.SortFunc(c.members, func(a, b *clusterState) int { return strings.Compare(a.Name, b.Name) })
	for i, m := range c.members {
		m.index = i
	}
	for i := range r.Bindings {
		c.classify(&r.Bindings[i])
	}
	for i := range c.rules.preferred {
		c.rules.preferred[i].observe(c.members)
	}
	c.noteProperties()
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
	b.Reason = withNote(pickedReason(m.Name, score), c.unreadable(m.Cluster))
	m.current, m.chosen = &b, true
}

func (c *cycle) withdraw(m *clusterState) {
	b := *m.old
	b.Unscheduled = true
	m.current = &b
}

func (c *cycle) selectedCount() int {
	return len(c.where((*clusterState).selected))
}

func (c *cycle) outcome() Outcome {
	return Outcome{
		Policy:    c.rules.hash,
		Decisions: c.decisions(),
		Bindings:  c.bindings(),
		Fulfilled: c.fulfilled,
		Found:     c.selectedCount(),
		Wanted:    c.wanted,
		Absent:    c.absent(),
		Notes:     c.rules.notes,

		WithoutNamespace: c.withoutNamespace(),
	}
}

func (c *cycle) bindings() []Binding {
	var all []Binding
	for _, m := range c.members {
		if m.current != nil {
			all = append(all, *m.current)
		}
	}
	all = append(all, c.gone...)
	slices.SortFunc(all, func(a, b Binding) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all
}
