package reconciler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// events collects events until the loop drains them. Of each subject only the newest is kept,
// so that adding never blocks and the queue is never larger than the fleet; commits are all
// kept, since the newest may be one that does not load.
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
	// resolutions are the new resolutions of held drifts; nil if they have not changed.
	resolutions map[string]ledger.Resolutions
	triggered   bool // another reason for a turn
}

// A subject is what an observation is about.
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

func (e *events) observe(o ledger.Observation) {
	e.put(func() {
		switch o := o.(type) {
		case ledger.ClusterSeen:
			e.seen[subject{cluster: o.Cluster}] = merge(e.seen[subject{cluster: o.Cluster}], o)
		case ledger.WorkSeen:
			s := subject{o.Cluster, o.Placement}
			if earlier, waits := e.seen[s].(ledger.WorkSeen); waits {
				o = o.After(earlier)
			}
			e.seen[s] = o
		}
	})
}

// merge adds to a probe what an older one, not yet drained, has observed in addition.
func merge(old ledger.Observation, o ledger.ClusterSeen) ledger.ClusterSeen {
	before, ok := old.(ledger.ClusterSeen)
	if !ok {
		return o
	}
	if o.UID == "" {
		o.UID = before.UID
	}
	if o.Properties == nil {
		o.Properties = before.Properties
	}
	if o.Namespaces == nil {
		o.Namespaces = before.Namespaces
	}
	if o.Holds == nil {
		o.Holds = before.Holds
	}
	if o.Owners == nil {
		o.Owners = before.Owners
	}
	return o
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

// trigger has the loop plan again.
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
