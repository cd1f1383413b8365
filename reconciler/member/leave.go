package member

import "context"

// leaveCluster releases everything that we have on the cluster. What fails is retried later.
func (s *session) leaveCluster(ctx context.Context) {
	s.releaseAll()
	s.sync(ctx)
	if len(s.inv) > 0 || s.store.DeleteClaim(ctx) != nil {
		s.schedule(inventoryRetry)
		return
	}
	s.endMembership(ctx)
}

// endMembership ends the membership of a cluster on which there is nothing of ours to release.
func (s *session) endMembership(ctx context.Context) {
	close(s.left)
	s.cfg.Report(s.health.Seen(s.cfg.Name)) // wakes those who wait for a report
	<-ctx.Done()
}
