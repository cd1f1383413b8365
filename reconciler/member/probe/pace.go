package probe

import (
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Pace slows the probes of many clusters, so that all of them together send no more than so many each second, unless that would
// leave one unprobed for too long. Clusters in doubt are not slowed. It is safe for concurrent use; nil slows none.
type Pace struct{ clusters atomic.Int64 }

const (
	// share is how much of the time between two probes of a cluster each cluster takes: 100 are probed each second.
	share = 10 * time.Millisecond
	// slowest is the longest time between two probes because of the number of clusters: the state of a cluster must not be much
	// older, and a cluster may be unreachable for several minutes before placements avoid it.
	slowest = time.Minute
	// observeEach is the least number of probes for one observation of a cluster, which sends several requests.
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

// credentials returns the time between two checks for replaced credentials of a cluster, which cost less than a probe. A probe of a
// cluster in doubt comes with such a check, and is not delayed much either.
func (p *Pace) credentials() time.Duration {
	return min(2*connection.CredentialsPoll, max(connection.CredentialsPoll, p.interval()/2))
}
