package objects

import "sync"

// An agingCache limits the total weight of its values. When it is full, it drops the values
// that were not used since it was last full. That needs neither a list nor timestamps.
type agingCache[K comparable, V any] struct {
	mu     sync.Mutex
	limit  int
	weight int
	young  map[K]weighed[V]
	old    map[K]weighed[V]
}

type weighed[V any] struct {
	value  V
	weight int
}

func newAging[K comparable, V any](limit int) *agingCache[K, V] {
	return &agingCache[K, V]{limit: limit / 2, young: map[K]weighed[V]{}}
}

func (c *agingCache[K, V]) get(k K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w, ok := c.young[k]; ok {
		return w.value, true
	}
	w, ok := c.old[k]
	if ok {
		c.insert(k, w)
	}
	return w.value, ok
}

// put adds a value unless the value alone would fill half of the cache.
func (c *agingCache[K, V]) put(k K, v V, weight int) {
	if weight > c.limit {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.insert(k, weighed[V]{v, weight})
}

func (c *agingCache[K, V]) insert(k K, w weighed[V]) {
	if before, ok := c.young[k]; ok {
		c.weight -= before.weight
	}
	if c.weight+w.weight > c.limit {
		c.old, c.young, c.weight = c.young, map[K]weighed[V]{}, 0
	}
	c.young[k] = w
	c.weight += w.weight
}

// clear removes everything.
func (c *agingCache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old, c.weight = map[K]weighed[V]{}, nil, 0
}
