package member

import (
	"context"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// leaveCluster releases everything that we have on the cluster. It reports whether nothing is
// left to do; failures are retried later.
func (s *session) leaveCluster(ctx context.Context) bool {
	s.releaseAll()
	s.sync(ctx)
	return len(s.inv) == 0 && s.store.DeleteClaim(ctx) == nil
}

// releaseAll makes all objects undesired, but keeps them on the cluster.
func (s *session) releaseAll() {
	s.wanted, s.newOwners = nil, nil
	s.works = map[api.PlacementKey]work.Work{}
	for p, inv := range s.inv {
		inv.Abandon = true
		s.works[p] = work.Work{Placement: p, Remove: true, Abandon: true}
	}
}
