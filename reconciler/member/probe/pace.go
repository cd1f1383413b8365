package probe

import (
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Pace slows the probes of many clusters, so that all of them together send no more than so many each second, unless that would
// leave one unprobed for too long. Clusters that may have been restored are not slowed. It is safe for concurrent use; nil slows none.
type Pace struct{ clusters atomic.Int64 }

const (
	// share is the least probe interval for each cluster of the fleet, so that at most 100 clusters are probed per second.
	share = 10 * time.Millisecond
	// slowest is the longest probe interval that the number of clusters can lead to. The scheduler ignores an unreachable cluster only
	// after several minutes, so that it still learns in time.
	slowest = time.Minute
	// observeEach limits observations, which send several requests, to every sixth probe.
	observeEach = 6
)

// add counts clusters that are probed.
func (p *Pace) add(clusters int64) {
	if p != nil {
		p.clusters.Add(clusters)
	}
}

// interval returns the least time between two probes of a cluster.
func (p *Pace) interval() time.Duration {
	if p == nil {
		return 0
	}
	return min(slowest, time.Duration(p.clusters.Load())*share)
}

// credentials returns the time between two checks for rotated credentials of a cluster, which are cheaper than a probe. The check also
// starts the probe of a cluster that may have been restored, so that it is at most twice connection.CredentialsPoll.
func (p *Pace) credentials() time.Duration {
	return min(2*connection.CredentialsPoll, max(connection.CredentialsPoll, p.interval()/2))
}
