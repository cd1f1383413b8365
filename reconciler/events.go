package reconciler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// events collects what happened until the loop takes it. Of each thing only the
// newest is kept, so that it never blocks and never grows beyond the fleet;
// commits are all kept, since the newest may be one that does not load.
type events struct {
	mu sync.Mutex
	happened
	wake chan struct{} // capacity one
	// waiting is the time at which the oldest waiting event arrived, in Unix nanoseconds;
	// zero if no event waits.
	waiting *atomic.Int64
}

// happened is what happened in some time.
type happened struct {
	heads, past []loaded
	seen        map[subject]ledger.Observation
	commands    []command
	// resolutions are what is decided about held drifts; nil if that is nothing new.
	resolutions map[string]ledger.Resolutions
	nudged      bool // something else
}

// A subject is what an observation speaks of.
type subject struct {
	cluster   string
	placement api.PlacementKey
}

func newEvents(waiting *atomic.Int64) *events {
	return &events{happened: happened{seen: map[subject]ledger.Observation{}}, wake: make(chan struct{}, 1), waiting: waiting}
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

// merge keeps of an older probe not taken yet what the newer one did not look
// at.
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

// nudge has the loop think without telling it anything.
func (e *events) nudge() {
	e.put(func() { e.nudged = true })
}

// take returns all that happened since it was last called.
func (e *events) take() happened {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.happened
	e.waiting.Store(0)
	e.happened = happened{seen: map[subject]ledger.Observation{}}
	return all
}
