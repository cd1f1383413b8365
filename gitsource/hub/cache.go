package hub

// A cache keeps what the last two loads used, so that alternating between two commits is cheap.
type cache[K comparable, V any] struct {
	entries map[K]*cached[V]
	load    int
}

type cached[V any] struct {
	value V
	used  int
}

func newCache[K comparable, V any]() *cache[K, V] { return &cache[K, V]{entries: map[K]*cached[V]{}} }

func (c *cache[K, V]) get(key K) (V, bool) {
	e, ok := c.entries[key]
	if !ok {
		return *new(V), false
	}
	e.used = c.load
	return e.value, true
}

func (c *cache[K, V]) put(key K, value V) { c.entries[key] = &cached[V]{value, c.load} }

// next begins a load and drops what the last two did not use.
func (c *cache[K, V]) next() {
	c.load++
	c.forget(2)
}

// forget drops what the last n loads did not use.
func (c *cache[K, V]) forget(n int) {
	for key, e := range c.entries {
		if e.used < c.load-n {
			delete(c.entries, key)
		}
	}
}
