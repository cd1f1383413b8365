package reconciler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// events collects events until the loop drains them; adding one never blocks. Of observations, only the newest about
// each subject is kept. Commits and orders are all kept: the newest commit may not load, and each order has somebody
// who waits for its answer.
type events struct {
	mu sync.Mutex
	eventBatch
	// wake asks for a turn at once, and observed for one that may wait, after an observation, a poll or a decision about drift. Their capacity is
	// one.
	wake, observed chan struct{}
	// waiting is the time at which the oldest waiting event arrived, in Unix nanoseconds; zero if no event waits.
	waiting *atomic.Int64
}

// An eventBatch is everything that happened since the last drain.
type eventBatch struct {
	commits, pastCommits []loaded
	seen                 map[observedSubject]ledger.Observation
	orders               []queuedOrder
	gateAnswers          []placement.GateAnswer // in order
	// driftDecisions are the new decisions about held drift, by cluster; nil if they have not changed.
	driftDecisions map[string]ledger.DriftDecisions
	triggered      bool // a turn was requested for another reason
}

// An observedSubject is what an observation is about: a cluster or, if placement is set, that placement on the cluster.
type observedSubject struct {
	cluster   string
	placement api.PlacementKey
}

func newEvents(waiting *atomic.Int64) *events {
	return &events{eventBatch: eventBatch{seen: map[observedSubject]ledger.Observation{}}, wake: make(chan struct{}, 1), observed: make(chan struct{}, 1), waiting: waiting}
}

func (e *events) addLoaded(l loaded) {
	e.put(func() {
		if l.past {
			e.pastCommits = append(e.pastCommits, l)
		} else {
			e.commits = append(e.commits, l)
		}
	})
}

// observe keeps the newest observation about each subject, with what only an earlier one has.
func (e *events) observe(o ledger.Observation) {
	e.putTo(e.observed, func() {
		switch o := o.(type) {
		case ledger.ClusterSeen:
			s := observedSubject{cluster: o.Cluster}
			if earlier, waits := e.seen[s].(ledger.ClusterSeen); waits {
				o = o.After(earlier)
			}
			e.seen[s] = o
		case ledger.WorkSeen:
			s := observedSubject{o.Cluster, o.Placement}
			if earlier, waits := e.seen[s].(ledger.WorkSeen); waits {
				o = o.After(earlier)
			}
			e.seen[s] = o
		}
	})
}

// addGateAnswer adds an answer, which may wait like an observation.
func (e *events) addGateAnswer(a placement.GateAnswer) {
	e.putTo(e.observed, func() { e.gateAnswers = append(e.gateAnswers, a) })
}

func (e *events) put(change func()) { e.putTo(e.wake, change) }

func (e *events) putTo(wake chan struct{}, change func()) {
	e.mu.Lock()
	change()
	e.waiting.CompareAndSwap(0, time.Now().UnixNano())
	e.mu.Unlock()
	select {
	case wake <- struct{}{}:
	default:
	}
}

// notice asks for a turn that may wait.
func (e *events) notice() { e.putTo(e.observed, func() {}) }

func (e *events) trigger() { e.put(func() { e.triggered = true }) }

func (e *events) drain() eventBatch {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.eventBatch
	e.waiting.Store(0)
	e.eventBatch = eventBatch{seen: map[observedSubject]ledger.Observation{}}
	return all
}
