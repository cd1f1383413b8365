package deletion

import (
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Log has the deletions that were not reported yet, by placement.
type Log map[api.PlacementKey][]protocol.Deletion

// Add counts one deleted object. Consecutive objects with the same cause are one
// deletion.
func (l Log) Add(p api.PlacementKey, id api.ID, cause work.Cause) {
	all := l[p]
	if n := len(all); n == 0 || all[n-1].Commit != cause.Commit || all[n-1].Why != cause.Why {
		all = append(all, protocol.Deletion{At: time.Now(), Commit: cause.Commit, Why: cause.Why})
		all = all[max(0, len(all)-protocol.MostDeletions):]
	}
	last := &all[len(all)-1]
	if last.Total++; last.Total <= protocol.MostDeletedObjects {
		last.Objects = append(last.Objects, id)
	}
	l[p] = all
}

// Take returns the deletions of a placement, and forgets them.
func (l Log) Take(p api.PlacementKey) []protocol.Deletion {
	defer delete(l, p)
	return l[p]
}
