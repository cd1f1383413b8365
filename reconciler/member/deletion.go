package member

import (
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// deletions are the deletions that have not been reported, by placement.
type deletions map[api.PlacementKey][]ledger.Deletion

// add counts one deleted object. Consecutive objects with the same cause are one
// deletion.
func (d deletions) add(p api.PlacementKey, id api.ID, cause work.Cause) {
	all := d[p]
	if n := len(all); n == 0 || all[n-1].Commit != cause.Commit || all[n-1].Why != cause.Why {
		all = append(all, ledger.Deletion{At: time.Now(), Commit: cause.Commit, Why: cause.Why})
		all = all[max(0, len(all)-ledger.MostDeletions):]
	}
	last := &all[len(all)-1]
	if last.Total++; last.Total <= ledger.MostDeletedObjects {
		last.Objects = append(last.Objects, id)
	}
	d[p] = all
}

// take removes and returns the deletions of a placement.
func (d deletions) take(p api.PlacementKey) []ledger.Deletion {
	defer delete(d, p)
	return d[p]
}

// recordDeletion logs the deletion of an object and adds it to the next report of its
// placement.
func (s *session) recordDeletion(st stale, cause work.Cause) {
	id, p := st.item.ID(), st.inv.Placement
	s.cfg.Log.Info("object deleted", "cluster", s.cfg.Name, "placement", p.String(), "object", id.String(), "commit", cause.Commit, "why", cause.Why)
	s.deletions.add(p, id, cause)
}
