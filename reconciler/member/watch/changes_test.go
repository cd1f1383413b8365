package watch

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/memory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

func watchOf(kind string) *Kind {
	return NewKind(schema.GroupVersionKind{Version: "v1", Kind: kind}, connection.Resource{})
}

// The texts of changes that nobody drains are bounded over all kinds, and what was replaced does not count.
func TestTextOfChangesIsBounded(t *testing.T) {
	c, message := newChanges(nil), strings.Repeat("x", 1<<20)
	put := func(n int) {
		c.Put(watchOf("ConfigMap"), configMap(fmt.Sprint(n)), &observed.Object{Health: health.Health{Message: message}})
	}
	for range 2 * connection.MaxKeptText >> 20 {
		put(0)
		c.Remove(watchOf("ConfigMap"), configMap("0"), &observed.Object{})
	}
	c.List(watchOf("ConfigMap"), observed.List{})
	for range 2 * connection.MaxKeptText >> 20 {
		put(1)
		c.Drain()
	}
	if err := c.Exceeded(); err != nil {
		t.Fatal(err)
	}
	for n := range connection.MaxKeptText >> 20 {
		put(n)
	}
	if err := c.Exceeded(); !connection.IsExceeded(err) || len(c.Drain().Seen) > 0 {
		t.Errorf("not bounded: %v", err)
	}
}

// However many changes there are between two drains, only the newest state of each object and
// one wake-up are kept.
func TestChangesKeepTheNewestWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChanges(nil)
		seen, gone := map[api.ID]uint64{}, map[api.ID]uint64{}
		n := rapid.IntRange(0, 40).Draw(t, "events")
		for version := range uint64(n) {
			id := configMap(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"))
			delete(seen, id)
			delete(gone, id)
			if rapid.Bool().Draw(t, "deleted") {
				c.Remove(watchOf("ConfigMap"), id, &observed.Object{Version: version})
				gone[id] = version
			} else {
				c.Put(watchOf("ConfigMap"), id, &observed.Object{Version: version})
				seen[id] = version
			}
		}
		if woken := len(c.Wake); woken > 1 || (woken == 1) != (n > 0) {
			t.Fatalf("%d wake-ups for %d events", woken, n)
		}
		got := c.Drain()
		gotSeen, gotGone := got.Seen, got.Gone
		if len(gotSeen) != len(seen) || len(gotGone) != len(gone) {
			t.Fatalf("took %d seen and %d gone, want %d and %d", len(gotSeen), len(gotGone), len(seen), len(gone))
		}
		for id, version := range seen {
			if gotSeen[id].Version != version {
				t.Errorf("%s at %d, want %d", id, gotSeen[id].Version, version)
			}
		}
		for id, version := range gone {
			if gotGone[id].Version != version {
				t.Errorf("%s gone at %d, want %d", id, gotGone[id].Version, version)
			}
		}
		if again := c.Drain(); len(again.Seen)+len(again.Gone) > 0 {
			t.Error("taken twice")
		}
	})
}

// No change is lost between two wake-ups: a drain returns everything that was recorded before.
func TestChangesWakeForEverything(t *testing.T) {
	const writers, each = 4, 500
	c := newChanges(nil)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				c.Put(watchOf("ConfigMap"), configMap(fmt.Sprintf("%d-%d", w, i)), &observed.Object{})
			}
		})
	}
	all := map[api.ID]bool{}
	deadline := time.After(10 * time.Second)
	for len(all) < writers*each {
		select {
		case <-c.Wake:
			for id := range c.Drain().Seen {
				all[id] = true
			}
		case <-deadline:
			t.Fatalf("woken for %d of %d", len(all), writers*each)
		}
	}
	wg.Wait()
}

// There is one watch per kind. A watch that was ended is not found any more.
func TestWatchesAreFoundByKindUntilTheyEnd(t *testing.T) {
	maps, secrets := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	ended := map[string]bool{}
	of := func(gvk schema.GroupVersionKind) *Kind {
		k := NewKind(gvk, connection.Resource{})
		k.Stop = func() { ended[gvk.Kind] = true }
		return k
	}
	w := New(&connection.Conn{}, Config{})
	w.kinds = []*Kind{of(maps), of(secrets)}
	w.End(w.Of(maps))
	if k := w.Of(maps); k != nil || k.Complete() || !ended["ConfigMap"] {
		t.Errorf("still watched: %v", k)
	}
	if k := w.Of(secrets); k == nil || k.GVK != secrets || ended["Secret"] {
		t.Errorf("the other is %v, ended %v", k, ended)
	}
}

// If several members report as much as they may, the one of which most is kept is given up, once it is too
// much for the memory that all share.
func TestMembersShareWhatIsKept(t *testing.T) {
	pool := memory.New(20 << 20) // 8 MiB
	few, many := newChanges(pool.Share()), newChanges(pool.Share())
	put := func(c *Changes, n int) {
		id := configMap(fmt.Sprint(n))
		c.Put(NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMapKind), id, &observed.Object{Health: health.Health{Message: strings.Repeat("x", 1000)}})
	}
	for i := range 100_000 {
		put(many, i)
		if i < 1000 {
			put(few, i)
		}
		if many.Exceeded() != nil {
			break
		}
	}
	if !connection.IsExceeded(many.Exceeded()) || few.Exceeded() != nil {
		t.Errorf("exceeded: %v, and that which keeps less: %v", many.Exceeded(), few.Exceeded())
	}
	if few.Drain(); many.counted != 0 || few.counted != 0 {
		t.Errorf("%d and %d bytes still count", many.counted, few.counted)
	}
}
