package member

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

func watchOf(kind string) *kindWatch {
	return newKindWatch(schema.GroupVersionKind{Version: "v1", Kind: kind}, connection.Resource{})
}

func cm(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "app", Name: name} }

// However much happens while nobody looks, one word is kept of each object, the
// newest, and one wake-up.
func TestChangesKeepTheNewestWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChanges()
		seen, gone := map[api.ID]uint64{}, map[api.ID]uint64{}
		n := rapid.IntRange(0, 40).Draw(t, "events")
		for version := range uint64(n) {
			id := cm(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"))
			delete(seen, id)
			delete(gone, id)
			if rapid.Bool().Draw(t, "deleted") {
				c.remove(watchOf("ConfigMap"), id, version)
				gone[id] = version
			} else {
				c.put(watchOf("ConfigMap"), id, &observed.Object{Version: version})
				seen[id] = version
			}
		}
		if woken := len(c.wake); woken > 1 || (woken == 1) != (n > 0) {
			t.Fatalf("%d wake-ups for %d events", woken, n)
		}
		got := c.drain()
		gotSeen, gotGone := got.seen, got.gone
		if len(gotSeen) != len(seen) || len(gotGone) != len(gone) {
			t.Fatalf("took %d seen and %d gone, want %d and %d", len(gotSeen), len(gotGone), len(seen), len(gone))
		}
		for id, version := range seen {
			if gotSeen[id].Version != version {
				t.Errorf("%s at %d, want %d", id, gotSeen[id].Version, version)
			}
		}
		for id, version := range gone {
			if gotGone[id] != version {
				t.Errorf("%s gone at %d, want %d", id, gotGone[id], version)
			}
		}
		if again := c.drain(); len(again.seen)+len(again.gone) > 0 {
			t.Error("taken twice")
		}
	})
}

// Nothing is lost between a wake-up and the next: whoever is woken and takes has
// everything that was put before.
func TestChangesWakeForEverything(t *testing.T) {
	const writers, each = 4, 500
	c := newChanges()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				c.put(watchOf("ConfigMap"), cm(fmt.Sprintf("%d-%d", w, i)), &observed.Object{})
			}
		})
	}
	all := map[api.ID]bool{}
	deadline := time.After(10 * time.Second)
	for len(all) < writers*each {
		select {
		case <-c.wake:
			for id := range c.drain().seen {
				all[id] = true
			}
		case <-deadline:
			t.Fatalf("woken for %d of %d", len(all), writers*each)
		}
	}
	wg.Wait()
}

// What a watch tells late does not undo what we know from a write of our own;
// what is as new or newer counts, and what has no number is never old.
func TestOldNewsIsDropped(t *testing.T) {
	maps, here := watchOf("ConfigMap"), map[api.ID]bool{cm("x"): true}
	tests := map[string]struct {
		known *observed.Object // from our own write
		event func(*changes)
		want  uint64 // version of what is known then; zero if nothing
		told  bool
	}{
		"first seen": {nil, func(c *changes) { c.put(watchOf("ConfigMap"), cm("x"), &observed.Object{Version: 5}) }, 5, true},
		"newer":      {&observed.Object{Version: 4}, func(c *changes) { c.put(watchOf("ConfigMap"), cm("x"), &observed.Object{Version: 5}) }, 5, true},
		"the same":   {&observed.Object{Version: 5}, func(c *changes) { c.put(watchOf("ConfigMap"), cm("x"), &observed.Object{Version: 5}) }, 5, false},
		"the same, its health known by now": {&observed.Object{Version: 5}, func(c *changes) {
			c.put(watchOf("ConfigMap"), cm("x"), &observed.Object{Version: 5, Health: health.Health{State: health.Available}})
		}, 5, true},
		"older":              {&observed.Object{Version: 6}, func(c *changes) { c.put(watchOf("ConfigMap"), cm("x"), &observed.Object{Version: 5}) }, 6, false},
		"deleted":            {&observed.Object{Version: 4}, func(c *changes) { c.remove(watchOf("ConfigMap"), cm("x"), 5) }, 0, true},
		"deleted before":     {&observed.Object{Version: 6}, func(c *changes) { c.remove(watchOf("ConfigMap"), cm("x"), 5) }, 6, false},
		"deleted, no number": {&observed.Object{Version: 6}, func(c *changes) { c.remove(watchOf("ConfigMap"), cm("x"), 0) }, 0, true},
		"deleted, unknown":   {nil, func(c *changes) { c.remove(watchOf("ConfigMap"), cm("x"), 5) }, 0, false},
		"listed":             {&observed.Object{Version: 4}, func(c *changes) { c.list(maps, observed.List{Found: here, Version: 5}) }, 4, false},
		"not listed":         {&observed.Object{Version: 4}, func(c *changes) { c.list(maps, observed.List{Found: nil, Version: 5}) }, 0, true},
		"not listed before":  {&observed.Object{Version: 6}, func(c *changes) { c.list(maps, observed.List{Found: nil, Version: 5}) }, 6, false},
		"listed, no number":  {&observed.Object{Version: 6}, func(c *changes) { c.list(maps, observed.List{Found: nil, Version: 0}) }, 0, true},
		"another kind listed": {&observed.Object{Version: 4}, func(c *changes) {
			c.list(watchOf("Secret"), observed.List{Found: nil, Version: 5})
		}, 4, false},
		"seen, then not listed": {&observed.Object{Version: 3}, func(c *changes) {
			c.put(watchOf("ConfigMap"), cm("x"), &observed.Object{Version: 4})
			c.list(maps, observed.List{Found: nil, Version: 5})
		}, 0, true},
		"not listed, then seen": {&observed.Object{Version: 3}, func(c *changes) {
			c.list(maps, observed.List{Found: nil, Version: 5})
			c.put(watchOf("ConfigMap"), cm("x"), &observed.Object{Version: 6})
		}, 6, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &session{live: observed.Objects{}, unseen: map[api.ID]bool{}, changes: newChanges()}
			if test.known != nil {
				s.live.Put(cm("x"), test.known)
			}
			test.event(s.changes)
			touched := s.absorb()
			var got uint64
			if l := s.live.Of(cm("x")); l != nil {
				got = l.Version
			}
			if got != test.want || touched[cm("x")] != test.told {
				t.Errorf("known at %d, told %t; want %d, %t", got, touched[cm("x")], test.want, test.told)
			}
		})
	}
}

// There is one watch of a kind; one that is ended is no more asked.
func TestWatchesAreFoundByKindUntilTheyEnd(t *testing.T) {
	maps, secrets := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	ended := map[string]bool{}
	of := func(gvk schema.GroupVersionKind) *kindWatch {
		k := newKindWatch(gvk, connection.Resource{})
		k.stop = func() { ended[gvk.Kind] = true }
		return k
	}
	s := &session{watch: watches{of(maps), of(secrets)}, changes: newChanges()}
	s.endWatch(s.watch.of(maps))
	if k := s.watch.of(maps); k != nil || k.sees() || !ended["ConfigMap"] {
		t.Errorf("still watched: %v", k)
	}
	if k := s.watch.of(secrets); k == nil || k.gvk != secrets || ended["Secret"] {
		t.Errorf("the other is %v, ended %v", k, ended)
	}
}

// What a watch still sees after it was ended says nothing of what another knows
// that follows the kind since.
func TestEndedWatchTellsNothing(t *testing.T) {
	old, now := watchOf("ConfigMap"), watchOf("ConfigMap")
	s := &session{live: observed.Objects{}, unseen: map[api.ID]bool{}, changes: newChanges(), watch: watches{old}}
	s.endWatch(old)
	s.watch = watches{now}
	s.changes.put(now, cm("x"), &observed.Object{Version: 5})
	s.changes.list(now, observed.List{Found: map[api.ID]bool{cm("x"): true}, Version: 5})
	s.changes.list(old, observed.List{Found: nil, Version: 4})
	s.changes.remove(old, cm("x"), 6)
	s.changes.put(old, cm("y"), &observed.Object{Version: 4})
	if s.absorb(); s.live.Of(cm("x")) == nil || s.live.Of(cm("y")) != nil {
		t.Errorf("x is %v, y is %v", s.live.Of(cm("x")), s.live.Of(cm("y")))
	}
}
