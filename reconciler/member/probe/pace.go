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
	// share is the least probe interval for each cluster of the fleet, so that at most 50 clusters are probed per second.
	share = 20 * time.Millisecond
	// slowest is the longest probe interval that the number of clusters can lead to. A connection that breaks, or over which no ping is
	// answered, is noticed without a probe, and so is a watch that ends.
	slowest = 4 * time.Minute
	// observeEach limits observations, which send several requests, to every fifth probe.
	observeEach = 5
	// checkShare is the least time between two checks for rotated credentials for each cluster of the fleet, and slowestCheck the longest
	// that the number of clusters can lead to.
	checkShare   = 5 * time.Millisecond
	slowestCheck = 30 * time.Second
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

// credentials returns the time between two checks for rotated credentials of a cluster, which are cheaper than a probe.
func (p *Pace) credentials() time.Duration {
	if p == nil {
		return connection.CredentialsPoll
	}
	return max(connection.CredentialsPoll, min(slowestCheck, time.Duration(p.clusters.Load())*checkShare))
}
