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
	mu    sync.Mutex
	heads []loaded
	past  []loaded
	seen  map[subject]ledger.Observation
	wake  chan struct{} // capacity one
}

// A subject is what an observation speaks of.
type subject struct {
	cluster   string
	placement api.PlacementKey
}

func newEvents() *events {
	return &events{seen: map[subject]ledger.Observation{}, wake: make(chan struct{}, 1)}
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

// take returns all that happened since it was last called.
func (e *events) take() (heads, past []loaded, seen map[subject]ledger.Observation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	heads, past, seen = e.heads, e.past, e.seen
	e.heads, e.past, e.seen = nil, nil, map[subject]ledger.Observation{}
	return heads, past, seen
}
