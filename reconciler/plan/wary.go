package plan

import (
	"fmt"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// After the ledger was lost, a placement may be on clusters that have not
// answered since. PickN chooses nobody in their place: it would let go of one
// too many as soon as they answer. That ends for a placement once all declared
// clusters have answered, once it is found on as many as it wants, or once a
// person says so.

// unseen counts the declared clusters that have not answered since the ledger
// began.
func (t *thinker) unseen() int {
	n := 0
	for _, c := range t.Head.Clusters {
		if seen := t.Ledger.Cluster(c.Name); seen == nil || seen.Joined.IsZero() {
			n++
		}
	}
	return n
}

// wary is the policy of a placement with room left for the clusters on which it
// may be, beyond those that it is known to hold.
func (t *thinker) wary(p *Placement, bound []placement.Binding) *api.PlacementPolicy {
	policy := p.Spec.Spec.Policy
	if !p.Record.Found || policy == nil || policy.PlacementType != api.PickN || policy.NumberOfClusters == nil {
		return policy
	}
	wanted, unseen, held := int(*policy.NumberOfClusters), t.unseen(), len(taken(bound))
	if unseen == 0 || held >= wanted {
		p.Record.Found, p.Noted = false, true
		return policy
	}
	room := int32(max(held, wanted-unseen))
	p.Unseen = unseen
	p.warn("spec.policy", fmt.Sprintf("%d of %d clusters are not chosen yet: who was chosen has been forgotten, and %s not answered since and may hold the placement; "+
		"it goes on when they answer, when they are taken out of the repository, or with gitfleet resume %s", wanted-int(room), wanted, have(unseen), p.Key))
	fewer := *policy
	fewer.NumberOfClusters = &room
	return &fewer
}

func have(clusters int) string {
	if clusters == 1 {
		return "1 cluster has"
	}
	return fmt.Sprintf("%d clusters have", clusters)
}

// schedule asks the scheduler, and tells it of no more clusters than it may
// choose. What people are told is what the placement asks for.
func (t *thinker) schedule(p *Placement) placement.Outcome {
	out := placement.Schedule(*p.Request)
	if p.Request.Policy != p.Spec.Spec.Policy {
		out.Wanted, out.Fulfilled = int(*p.Spec.Spec.Policy.NumberOfClusters), false
	}
	if t.Brief {
		out.Decisions = brief(out)
	}
	return out
}
