package placement

import "github.com/gitfleet/gitfleet/placement/api"

// A placementType is what differs between the types of placement policies when clusters are scheduled. A new type is a file with
// these methods and a line in typeOf, and is known in other packages, too, such as those that check manifests: the section "Where a
// change goes" of docs/architecture.md lists them. While a cycle is frozen, only decide, order and unmet are called.
type placementType interface {
	// decide chooses and unschedules clusters, and sets how many are wanted and whether they were found.
	decide(c *cycle)
	// order sorts the selected clusters, which are given by name, in the order in which they were chosen.
	order(c *cycle, selected []*clusterState)
	// scored reports whether a cluster that is not selected was ranked among the candidates.
	scored(c *cycle, m *clusterState) bool
	// unmet are the clusters that the policy names and that are not selected, and the decisions about names of no cluster, both as listed.
	unmet(c *cycle) (clusters []*clusterState, missing []Decision)
	// refusal is the reason why a cluster is not selected.
	refusal(c *cycle, m *clusterState) string
	// absentReason is why a cluster that the policy asks for cannot be chosen; empty if the policy does not ask for it, or did not
	// choose it. noneSelected says that no cluster is selected.
	absentReason(c *cycle, m *clusterState, noneSelected bool) string
	// everywhere reports whether the policy asks for every cluster that passes the filters.
	everywhere() bool
	// explain adds to an explanation what was evaluated for a cluster.
	explain(c *cycle, e *Explanation, m *clusterState)
	// advise says what would have to change for a cluster to be selected; each item is necessary by itself.
	advise(c *cycle, m *clusterState) []string
}

// typeOf returns the type of a policy, which may be nil.
func typeOf(p *api.PlacementPolicy) placementType {
	switch p.Type() {
	case api.PickAll:
		return pickAll{}
	case api.PickFixed:
		return pickFixed{}
	case api.PickN:
		return pickN{}
	}
	return unknownType{}
}

// An unknownType is the type of a policy that says none of those above. It freezes every cycle.
type unknownType struct{ pickAll }

func (unknownType) decide(c *cycle) { c.freeze("the policy has no placementType that is known") }
