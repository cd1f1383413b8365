package plan

import (
	"fmt"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// After the ledger was lost, a placement may be on clusters that have not answered since. PickN selects no others in
// their place, since it would have to remove them as soon as those clusters answer. This ends for a placement once all
// declared clusters have answered, once it is found on as many clusters as it wants, or once a user resumes it.

// unansweredClusters counts the declared clusters that have not answered since the ledger was lost.
func (pl *planner) unansweredClusters() int {
	n := 0
	for _, c := range pl.InForce.Clusters {
		if seen := pl.Ledger.Cluster(c.Name); seen == nil || seen.Joined.IsZero() {
			n++
		}
	}
	return n
}

// reducePolicyAfterLoss returns the policy of a placement. While clusters that have not answered may hold the
// placement, it requests fewer clusters, sets p.Unanswered and adds a warning. After that it clears Rebuilt in the
// record. Only PickN is reduced: the other types do not choose replacements.
func (pl *placementPlanner) reducePolicyAfterLoss(p *Placement, bound []placement.Binding) *api.PlacementPolicy {
	policy := p.Spec.Spec.Policy
	if !p.Record.Rebuilt || policy == nil || policy.PlacementType != api.PickN || policy.NumberOfClusters == nil {
		return policy
	}
	wanted, unanswered, held := int(*policy.NumberOfClusters), pl.planner.unansweredClusters(), 0
	current := placement.PolicyHash(policy)
	for _, b := range bound {
		// Under another policy, a cluster that another fleet has claimed is not selected again.
		if !b.Unscheduled && (b.Policy == current || pl.planner.Ledger.Refusal(b.Cluster) == "") {
			held++
		}
	}
	if unanswered == 0 || held >= wanted {
		p.Record.Rebuilt = false
		return policy
	}
	room := int32(max(held, wanted-unanswered))
	p.Unanswered = unanswered
	p.warn("spec.policy", fmt.Sprintf("%d of %d clusters are not selected yet: the ledger was lost, and %s not answered since and may hold the placement; "+
		"selection continues when they answer or are removed from the repository, or with gitfleet resume %s", wanted-int(room), wanted, clustersHave(unanswered), p.Key))
	fewer := *policy
	fewer.NumberOfClusters = &room
	return &fewer
}

func clustersHave(clusters int) string {
	if clusters == 1 {
		return "1 cluster has"
	}
	return fmt.Sprintf("%d clusters have", clusters)
}
