package reconciler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// An inbox collects events until the loop drains them; adding one never blocks. Of observations, only the newest about
// each subject is kept. Commits and orders are all kept: the newest commit may not load, and each order has somebody
// who waits for its answer.
type inbox struct {
	mu sync.Mutex
	eventBatch
	// wake requests a turn at once, and observed one that may wait: after an observation, a poll or a decision about drift.
	// Both have a capacity of one.
	wake, observed chan struct{}
	// waiting is the time at which the oldest waiting event arrived, in Unix nanoseconds; zero if no event waits.
	waiting *atomic.Int64
}

// An eventBatch is everything that happened since the last drain.
type eventBatch struct {
	commits, pastCommits []loaded
	seen                 map[observedSubject]protocol.Observation
	orders               []queuedOrder
	gateAnswers          []placement.GateAnswer // in order
	// driftDecisions are the new decisions about held drift, by cluster; nil if they have not changed.
	driftDecisions map[string]protocol.DriftDecisions
	triggered      bool // a turn was requested for another reason
}

// An observedSubject is what an observation is about: a cluster or, if placement is set, that placement on the cluster.
type observedSubject struct {
	cluster   string
	placement api.PlacementKey
}

func newInbox(waiting *atomic.Int64) *inbox {
	return &inbox{eventBatch: eventBatch{seen: map[observedSubject]protocol.Observation{}}, wake: make(chan struct{}, 1), observed: make(chan struct{}, 1), waiting: waiting}
}

func (in *inbox) addLoaded(l loaded) {
	in.put(func() {
		if l.past {
			in.pastCommits = append(in.pastCommits, l)
		} else {
			in.commits = append(in.commits, l)
		}
	})
}

// observe keeps the newest observation about each subject, with what only an earlier one has.
func (in *inbox) observe(o protocol.Observation) {
	in.putTo(in.observed, func() {
		switch o := o.(type) {
		case protocol.ClusterSeen:
			s := observedSubject{cluster: o.Cluster}
			if earlier, found := in.seen[s].(protocol.ClusterSeen); found {
				o = o.After(earlier)
			}
			in.seen[s] = o
		case protocol.WorkSeen:
			s := observedSubject{o.Cluster, o.Placement}
			if earlier, found := in.seen[s].(protocol.WorkSeen); found {
				o = o.After(earlier)
			}
			in.seen[s] = o
		}
	})
}

// addGateAnswer adds an answer, which may wait like an observation.
func (in *inbox) addGateAnswer(a placement.GateAnswer) {
	in.putTo(in.observed, func() { in.gateAnswers = append(in.gateAnswers, a) })
}

// put adds an event that requests a turn at once.
func (in *inbox) put(change func()) { in.putTo(in.wake, change) }

func (in *inbox) putTo(wake chan struct{}, change func()) {
	in.mu.Lock()
	change()
	in.waiting.CompareAndSwap(0, time.Now().UnixNano())
	in.mu.Unlock()
	select {
	case wake <- struct{}{}:
	default:
	}
}

// triggerSoon requests a turn that may wait, like one for an observation.
func (in *inbox) triggerSoon() { in.putTo(in.observed, func() {}) }

// trigger requests a turn at once.
func (in *inbox) trigger() { in.put(func() { in.triggered = true }) }

func (in *inbox) drain() eventBatch {
	in.mu.Lock()
	defer in.mu.Unlock()
	all := in.eventBatch
	in.waiting.Store(0)
	in.eventBatch = eventBatch{seen: map[observedSubject]protocol.Observation{}}
	return all
}
