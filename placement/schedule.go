package placement

import (
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Request is the input of Schedule. Nothing in it is changed, and the order of its lists does
// not matter.
type Request struct {
	Key api.PlacementKey
	// Policy is nil for PickAll. Its defaults need not be filled in.
	Policy *api.PlacementPolicy
	// Clusters are all members of the fleet, each once. A cluster that is missing has left the
	// fleet.
	Clusters []Cluster
	// Bindings are those of the last Outcome, without those whose removal the rollout has
	// finished. Leaving one out evicts the placement: the cluster may be selected again.
	Bindings []Binding
	// Others are the clusters held by the placements that placementAffinity and
	// placementAntiAffinity name, by placement name. A missing name is a placement that does
	// not exist. See [Sequence] for the order in which placements that name each other are
	// scheduled.
	Others map[string][]string
}

// An Outcome is the result of scheduling a placement.
type Outcome struct {
	// Policy is the [PolicyHash] of the policy that decided.
	Policy string
	// Decisions has one decision for each cluster, and one for each name of PickFixed that is
	// not the name of a cluster. The selected ones come first, in the order in which they were
	// chosen (PickAll: by name; PickFixed: as listed), then those that were scored and not
	// selected, best first, then the rest by name.
	Decisions []Decision
	// Bindings are all bindings from now on, by cluster name: one for each selected cluster,
	// and the Unscheduled ones whose content is not yet removed.
	Bindings []Binding
	// Fulfilled says that as many clusters are selected as the policy requests.
	Fulfilled bool
	// Found is how many clusters are selected, and Wanted how many the policy requests; for
	// PickAll they are equal.
	Found, Wanted int
	// Absent are the clusters that would be chosen if they could be used, sorted by name. If a
	// placement has no clusters and none is absent, its policy asks for none.
	Absent []Absence
	// WithoutNamespace are the clusters that PickAll would choose if they had the namespace of the ResourcePlacement, sorted by name.
	WithoutNamespace []string
	// Notes are remarks for the user that belong to no decision: a property that no cluster
	// reports, a name that does not exist, an invalid value.
	Notes []string
}

// An Absence is a cluster that would be chosen, or might be, if it could be used, with the reason why it
// cannot be: for PickAll each one that matches, for PickFixed each one that is named, for PickN each one
// that matches while too few are found. A property or namespace that is not known of an unusable
// cluster counts as a match. If no cluster with the namespace of a ResourcePlacement is selected, the
// clusters that match and lack it are absent, too.
type Absence struct{ Cluster, Reason string }

// Schedule selects the clusters of a placement.
//
// It keeps bound clusters: a cluster that was selected under the same policy is not evaluated
// again, whatever its labels, taints or health are now. It is unscheduled only when it leaves
// the fleet, when N shrinks, or when the policy changes and does not select it again. Under a
// changed policy clusters that the placement holds under an earlier one win ties.
//
// Scheduling again with the resulting bindings gives the same result, so that Schedule may be
// called in every turn and needs no other state. It covers all of KubeFleet's scheduling
// triggers and adds none that could move a cluster.
func Schedule(r Request) Outcome {
	c := newCycle(r)
	c.run()
	return c.outcome()
}

func (c *cycle) run() {
	c.noteMisplaced()
	c.rules.kind.decide(c)
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
