package placement

import (
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Request is all that a decision depends on. Nothing in it is changed, and
// the order of its lists does not matter.
type Request struct {
	Key api.PlacementKey
	// Policy is nil for PickAll. Its defaults need not be filled in.
	Policy *api.PlacementPolicy
	// Clusters are all members of the fleet, each once. A cluster that is not
	// here has left.
	Clusters []Cluster
	// Bindings are what the last Outcome said to remember, as far as the
	// rollout has not finished removing it. Leaving one out evicts: the cluster
	// may be chosen again.
	Bindings []Binding
	// Others are the clusters that the placements named by placementAffinity
	// and placementAntiAffinity hold, by their name. A name that is missing is
	// a placement that does not exist. See [Sequence] for the order in which
	// placements that look at each other are decided.
	Others map[string][]string
}

// An Outcome is where a placement goes.
type Outcome struct {
	// Policy is the [PolicyHash] of the policy that decided.
	Policy string
	// Decisions are one for each cluster, and one for each name of PickFixed
	// that is no cluster: the selected first, in the order they were chosen
	// (PickAll: by name; PickFixed: as listed), then those that were scored and
	// not chosen, best first, then the rest by name.
	Decisions []Decision
	// Bindings are all to remember from now on, by cluster name: one for each
	// selected cluster, and the Unscheduled whose content is yet to be removed.
	Bindings []Binding
	// Fulfilled says that the policy has all that it asks for.
	Fulfilled bool
	// Found is how many clusters are selected, Wanted how many the policy asks
	// for; PickAll wants what it finds.
	Found, Wanted int
	// Notes are what the user should know and no decision says: a property
	// nobody reports, a name of nothing, a value that cannot be read.
	Notes []string
}

// Schedule decides which clusters a placement takes.
//
// It keeps what the placement holds: a cluster that was chosen under the same
// policy is not judged again, whatever became of its labels, taints or health,
// and goes only when it leaves the fleet, when N shrinks, or when the policy
// changes and it is not chosen anew. Under a changed policy clusters that are
// held win ties.
//
// An answer fed back is its own answer, so Schedule may be asked at every turn
// and needs to remember nothing but Bindings. Of KubeFleet's triggers none is
// missed by that, and none is added that could move a cluster.
func Schedule(r Request) Outcome {
	c := newCycle(r)
	c.run()
	return c.outcome()
}

func (c *cycle) run() {
	c.noteMisplaced()
	switch c.kind {
	case api.PickAll:
		c.pickAll()
	case api.PickFixed:
		c.pickFixed()
	case api.PickN:
		c.pickN()
	default:
		c.freeze("the policy has no placementType that is known")
	}
}

// noteMisplaced tells of clusters that would not be chosen now because of where
// other placements are.
func (c *cycle) noteMisplaced() {
	for i := range c.members {
		if m := &c.members[i]; m.class == present {
			if why := c.misplaced(m.Cluster); why != "" {
				c.note("cluster " + quote(m.Name) + " is kept, although " + why)
			}
		}
	}
}

// filter asks the filters about every cluster that is not present.
func (c *cycle) filter() {
	for i := range c.members {
		m := &c.members[i]
		if m.class != present {
			m.objection = c.rules.objection(m.Cluster)
		}
	}
}

// pickAll takes all that pass the filters. It lets go only of what an earlier
// policy chose and this one would not.
func (c *cycle) pickAll() {
	c.filter()
	for i := range c.members {
		m := &c.members[i]
		switch {
		case m.candidate():
			c.choose(m, &Score{}, 0)
		case m.class == obsolete:
			c.withdraw(m)
		}
	}
	c.fulfilled = true
	c.wanted = c.found()
}

// pickFixed takes the clusters that are named. Only eligibility counts, and
// only for what is not yet there: what is named and held stays.
func (c *cycle) pickFixed() {
	if len(c.names) == 0 {
		c.note("spec.policy.clusterNames is empty: nothing is placed, and what was placed before stays")
		c.freeze("the policy names no cluster")
		return
	}
	for i := range c.members {
		switch m := &c.members[i]; {
		case c.named(m):
			c.takeNamed(m)
		case m.class == obsolete:
			c.withdraw(m)
		}
	}
	c.wanted = len(c.names)
	c.fulfilled = c.found() >= c.wanted
}

func (c *cycle) takeNamed(m *member) {
	held := m.class == present || m.class == obsolete
	switch {
	case m.Ineligible == "" && m.class != present:
		c.choose(m, nil, 0)
	case m.Ineligible != "" && held:
		if m.class == obsolete {
			again := *m.old
			again.Policy = c.hash
			m.now = &again
		}
		m.reason = "Cluster " + quote(m.Name) + " keeps what it has and gets nothing new: " + m.Ineligible
		c.note(m.reason)
	}
}

// freeze leaves everything as it is.
func (c *cycle) freeze(why string) {
	c.frozen = why
	for i := range c.members {
		if m := &c.members[i]; m.selected() {
			m.reason = "Cluster " + quote(m.Name) + " keeps what it has: " + why
		}
	}
}
