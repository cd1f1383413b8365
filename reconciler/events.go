package reconciler

import (
	"sync"

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
}

// happened is what happened in some time.
type happened struct {
	heads, past []loaded
	seen        map[subject]ledger.Observation
	commands    []command
	nudged      bool // something else
}

// A subject is what an observation speaks of.
type subject struct {
	cluster   string
	placement api.PlacementKey
}

func newEvents() *events {
	return &events{happened: happened{seen: map[subject]ledger.Observation{}}, wake: make(chan struct{}, 1)}
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
			e.seen[subject{o.Cluster, o.Placement}] = o
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
	return o
}

func (e *events) put(change func()) {
	e.mu.Lock()
	change()
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
	e.happened = happened{seen: map[subject]ledger.Observation{}}
	return all
}
