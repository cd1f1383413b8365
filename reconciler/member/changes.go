package member

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// changes collects what watches saw until the session drains it. Only the latest state of an
// object is kept, which bounds its size by the number of objects.
type changes struct {
	mu sync.Mutex
	collected
	wake chan struct{} // capacity one
}

// collected is what watches saw since the last drain. The lists precede everything else.
type collected struct {
	lists map[schema.GroupKind]observed.List
	seen  map[api.ID]*observed.Object
	gone  map[api.ID]uint64
}

func newCollected() collected {
	return collected{lists: map[schema.GroupKind]observed.List{}, seen: map[api.ID]*observed.Object{}, gone: map[api.ID]uint64{}}
}

func newChanges() *changes { return &changes{collected: newCollected(), wake: make(chan struct{}, 1)} }

// record adds what a watch saw, unless the watch is retired.
func (c *changes) record(by *kindWatch, saw func(*collected)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !by.retired {
		saw(&c.collected)
		c.nudge()
	}
}

// retire makes changes ignore a watch from now on.
func (c *changes) retire(k *kindWatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.retired = true
}

func (c *changes) put(by *kindWatch, id api.ID, l *observed.Object) {
	c.record(by, func(t *collected) {
		t.seen[id] = l
		delete(t.gone, id)
	})
}

func (c *changes) remove(by *kindWatch, id api.ID, version uint64) {
	c.record(by, func(t *collected) {
		delete(t.seen, id)
		t.gone[id] = version
	})
}

// list records a complete list of a kind. Objects seen before that are not in it are gone.
func (c *changes) list(by *kindWatch, l observed.List) {
	kind := by.gvk.GroupKind()
	c.record(by, func(t *collected) {
		t.lists[kind] = l
		maps.DeleteFunc(t.seen, func(id api.ID, _ *observed.Object) bool { return id.GroupKind() == kind && !l.Found[id] })
	})
}

// nudge wakes who drains the changes.
func (c *changes) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// drain returns what was collected, and starts anew.
func (c *changes) drain() collected {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.collected
	c.collected = newCollected()
	return t
}
