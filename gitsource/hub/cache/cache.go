// Package cache provides a cache that keeps the entries that the last two loads used.
package cache

import "iter"

// A Cache keeps the entries that the last two loads used, so that alternating between two
// commits is cheap.
type Cache[K comparable, V any] struct {
	entries map[K]*cached[V]
	load    int
}

type cached[V any] struct {
	value V
	used  int
}

// New returns an empty cache.
func New[K comparable, V any]() *Cache[K, V] { return &Cache[K, V]{entries: map[K]*cached[V]{}} }

// Get returns an entry and marks it as used by this load.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	e, ok := c.entries[key]
	if !ok {
		return *new(V), false
	}
	e.used = c.load
	return e.value, true
}

// Put adds an entry.
func (c *Cache[K, V]) Put(key K, value V) { c.entries[key] = &cached[V]{value, c.load} }

// Next begins a load, and drops the entries that neither of the last two loads used.
func (c *Cache[K, V]) Next() {
	c.load++
	c.Forget(2)
}

// Forget drops the entries that the last n loads did not use.
func (c *Cache[K, V]) Forget(n int) {
	for key, e := range c.entries {
		if e.used < c.load-n {
			delete(c.entries, key)
		}
	}
}

// Values iterates over everything in the cache.
func (c *Cache[K, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, e := range c.entries {
			if !yield(e.value) {
				return
			}
		}
	}
}
