package reconciler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// events collects events until the loop drains them. Only the newest event about each subject
// is kept, so that adding never blocks and the queue is never larger than the fleet. Commits
// are all kept, since the newest one may not load.
type events struct {
	mu sync.Mutex
	eventBatch
	wake chan struct{} // capacity one
	// waiting is the time at which the oldest waiting event arrived, in Unix nanoseconds;
	// zero if no event waits.
	waiting *atomic.Int64
}

// An eventBatch is everything that happened since the last drain.
type eventBatch struct {
	heads, past []loaded
	seen        map[subject]ledger.Observation
	commands    []command
	// resolutions are the new resolutions of held drift; nil if they have not changed.
	resolutions map[string]ledger.Resolutions
	triggered   bool // a turn was requested for another reason
}

// A subject is the object of an observation.
type subject struct {
	cluster   string
	placement api.PlacementKey
}

func newEvents(waiting *atomic.Int64) *events {
	return &events{eventBatch: eventBatch{seen: map[subject]ledger.Observation{}}, wake: make(chan struct{}, 1), waiting: waiting}
}

func (e *events) load(l loaded) {
	e.put(func() {
		if l.past {
			e.past = append(e.past, l)
		} else {
			e.heads = append(e.heads, l)
		}
	})
}

// observe keeps the newest observation about each subject, with what only an earlier one has.
func (e *events) observe(o ledger.Observation) {
	e.put(func() {
		switch o := o.(type) {
		case ledger.ClusterSeen:
			s := subject{cluster: o.Cluster}
			if earlier, waits := e.seen[s].(ledger.ClusterSeen); waits {
				o = o.After(earlier)
			}
			e.seen[s] = o
		case ledger.WorkSeen:
			s := subject{o.Cluster, o.Placement}
			if earlier, waits := e.seen[s].(ledger.WorkSeen); waits {
				o = o.After(earlier)
			}
			e.seen[s] = o
		}
	})
}

func (e *events) put(change func()) {
	e.mu.Lock()
	change()
	e.waiting.CompareAndSwap(0, time.Now().UnixNano())
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// trigger makes the loop plan again.
func (e *events) trigger() {
	e.put(func() { e.triggered = true })
}

// drain returns all events since the last call.
func (e *events) drain() eventBatch {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.eventBatch
	e.waiting.Store(0)
	e.eventBatch = eventBatch{seen: map[subject]ledger.Observation{}}
	return all
}
