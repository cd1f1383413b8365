package cache

import (
	"maps"
	"slices"
	"testing"
)

// The cache keeps what the last two loads used, and Forget drops more.
func TestCache(t *testing.T) {
	c := New[string, int]()
	keys := func() []string { return slices.Sorted(maps.Keys(c.entries)) }
	for load, use := range [][]string{{"a", "b"}, {"b", "c"}, {"c"}} {
		c.Next()
		for _, key := range use {
			if _, known := c.Get(key); !known {
				c.Put(key, load)
			}
		}
	}
	if got := keys(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("during the third load there is %v", got)
	}
	c.Next()
	if got := keys(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("after three loads there is %v", got)
	}
	if v, known := c.Get("b"); !known || v != 0 {
		t.Errorf("b is %d, %t; it was added by the first load", v, known)
	}
	c.Forget(0)
	if got := slices.Collect(c.Values()); !slices.Equal(got, []int{0}) {
		t.Errorf("%v is left of what this load used", got)
	}
	if _, known := c.Get("a"); known {
		t.Error("a is known")
	}
}
