package placement

import (
	"slices"
	"strings"
)

// A class is what the placement has on a cluster when a cycle begins.
type class int

const (
	free        class = iota // nothing
	unscheduled              // content that is on its way out
	obsolete                 // chosen by an earlier policy
	present                  // chosen by this policy
)

// A member is one cluster in one cycle.
type member struct {
	*Cluster
	index int
	class class
	old   *Binding // what the placement had there; nil if nothing
	// now is what it has after the cycle: old if it is untouched, nil if
	// nothing.
	now *Binding

	objection string // of the filters; not asked of present clusters
	affinity  int32
	spread    int32
	forbidden int  // the spread constraint that forbids it, or -1
	chosen    bool // in this cycle
	// reason replaces that of the binding, or stands for one that is missing.
	reason string
}

// candidate reports whether the cluster may be chosen.
func (m *member) candidate() bool { return m.class != present && m.objection == "" }

func (m *member) selected() bool { return m.now != nil && !m.now.Unscheduled }

// A cycle is one decision in the making.
type cycle struct {
	*rules
	fleet   []*Cluster // by name
	members []member   // of the same order
	gone    []Binding  // on clusters that left
	domains *spread
	last    *member           // of a PickN that has what it asks for: the last it chose
	witness *witness          // nil: nobody asks for reasons
	texts   map[string]string // reasons that clusters share

	frozen    string // why nothing is chosen or withdrawn; empty if it is
	fulfilled bool
	wanted    int
}

func newCycle(r Request) *cycle {
	c := &cycle{
		rules: compile(r), fleet: byName(r.Clusters), texts: map[string]string{},
	}
	c.members = make([]member, len(c.fleet))
	for i, m := range c.fleet {
		c.members[i] = member{Cluster: m, index: i, forbidden: -1}
	}
	for i := range r.Bindings {
		c.classify(&r.Bindings[i])
	}
	for i := range c.preferred {
		c.preferred[i].observe(c.fleet)
	}
	c.noteProperties()
	return c
}

func byName(clusters []Cluster) []*Cluster {
	fleet := make([]*Cluster, len(clusters))
	for i := range clusters {
		fleet[i] = &clusters[i]
	}
	slices.SortFunc(fleet, func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) })
	return fleet
}

// find returns the cluster of a name, or nil.
func (c *cycle) find(name string) *member {
	i, found := slices.BinarySearchFunc(c.fleet, name, func(m *Cluster, name string) int {
		return strings.Compare(m.Name, name)
	})
	if !found {
		return nil
	}
	return &c.members[i]
}

func (c *cycle) classify(b *Binding) {
	m := c.find(b.Cluster)
	if m == nil {
		left := *b
		left.Unscheduled = true
		c.gone = append(c.gone, left)
		return
	}
	m.old, m.now = b, b
	switch {
	case b.Unscheduled:
		m.class = unscheduled
	case b.Policy != c.hash:
		m.class = obsolete
	default:
		m.class = present
	}
}

// choose binds a cluster under the current policy. What the rollout knows of it
// stays: content that is there need not be released again.
func (c *cycle) choose(m *member, score *Score, order int) {
	var b Binding
	if m.old != nil {
		b = *m.old
	}
	b.Cluster, b.Policy, b.Unscheduled = m.Name, c.hash, false
	b.Score, b.Order = score, order
	b.Reason = picked(m.Name, score) + c.unreadable(m.Cluster)
	m.now, m.chosen = &b, true
}

func (c *cycle) withdraw(m *member) {
	b := *m.old
	b.Unscheduled = true
	m.now = &b
}

func (c *cycle) found() int {
	n := 0
	for i := range c.members {
		if c.members[i].selected() {
			n++
		}
	}
	return n
}

func (c *cycle) outcome() Outcome {
	return Outcome{
		Policy:    c.hash,
		Decisions: c.decisions(),
		Bindings:  c.bindings(),
		Fulfilled: c.fulfilled,
		Found:     c.found(),
		Wanted:    c.wanted,
		Notes:     c.notes,
	}
}

func (c *cycle) bindings() []Binding {
	var all []Binding
	for i := range c.members {
		if b := c.members[i].now; b != nil {
			all = append(all, *b)
		}
	}
	all = append(all, c.gone...)
	slices.SortFunc(all, func(a, b Binding) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all
}
