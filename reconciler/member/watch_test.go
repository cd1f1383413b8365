package member

import (
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
)

func watchOf(kind string) *kindWatch {
	return newKindWatch(schema.GroupVersionKind{Version: "v1", Kind: kind}, resource{})
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
				c.put(watchOf("ConfigMap"), id, &live{version: version})
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
			if gotSeen[id].version != version {
				t.Errorf("%s at %d, want %d", id, gotSeen[id].version, version)
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
				c.put(watchOf("ConfigMap"), cm(fmt.Sprintf("%d-%d", w, i)), &live{})
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
		known *live // from our own write
		event func(*changes)
		want  uint64 // version of what is known then; zero if nothing
		told  bool
	}{
		"first seen": {nil, func(c *changes) { c.put(watchOf("ConfigMap"), cm("x"), &live{version: 5}) }, 5, true},
		"newer":      {&live{version: 4}, func(c *changes) { c.put(watchOf("ConfigMap"), cm("x"), &live{version: 5}) }, 5, true},
		"the same":   {&live{version: 5}, func(c *changes) { c.put(watchOf("ConfigMap"), cm("x"), &live{version: 5}) }, 5, false},
		"the same, its health known by now": {&live{version: 5}, func(c *changes) {
			c.put(watchOf("ConfigMap"), cm("x"), &live{version: 5, health: health.Health{State: health.Available}})
		}, 5, true},
		"older":              {&live{version: 6}, func(c *changes) { c.put(watchOf("ConfigMap"), cm("x"), &live{version: 5}) }, 6, false},
		"deleted":            {&live{version: 4}, func(c *changes) { c.remove(watchOf("ConfigMap"), cm("x"), 5) }, 0, true},
		"deleted before":     {&live{version: 6}, func(c *changes) { c.remove(watchOf("ConfigMap"), cm("x"), 5) }, 6, false},
		"deleted, no number": {&live{version: 6}, func(c *changes) { c.remove(watchOf("ConfigMap"), cm("x"), 0) }, 0, true},
		"deleted, unknown":   {nil, func(c *changes) { c.remove(watchOf("ConfigMap"), cm("x"), 5) }, 0, false},
		"listed":             {&live{version: 4}, func(c *changes) { c.list(maps, listed{here, 5}) }, 4, false},
		"not listed":         {&live{version: 4}, func(c *changes) { c.list(maps, listed{nil, 5}) }, 0, true},
		"not listed before":  {&live{version: 6}, func(c *changes) { c.list(maps, listed{nil, 5}) }, 6, false},
		"listed, no number":  {&live{version: 6}, func(c *changes) { c.list(maps, listed{nil, 0}) }, 0, true},
		"another kind listed": {&live{version: 4}, func(c *changes) {
			c.list(watchOf("Secret"), listed{nil, 5})
		}, 4, false},
		"seen, then not listed": {&live{version: 3}, func(c *changes) {
			c.put(watchOf("ConfigMap"), cm("x"), &live{version: 4})
			c.list(maps, listed{nil, 5})
		}, 0, true},
		"not listed, then seen": {&live{version: 3}, func(c *changes) {
			c.list(maps, listed{nil, 5})
			c.put(watchOf("ConfigMap"), cm("x"), &live{version: 6})
		}, 6, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &session{live: lives{}, unseen: map[api.ID]bool{}, changes: newChanges()}
			if test.known != nil {
				s.live.put(cm("x"), test.known)
			}
			test.event(s.changes)
			touched := s.absorb()
			var got uint64
			if l := s.live.of(cm("x")); l != nil {
				got = l.version
			}
			if got != test.want || touched[cm("x")] != test.told {
				t.Errorf("known at %d, told %t; want %d, %t", got, touched[cm("x")], test.want, test.told)
			}
		})
	}
}

// Who changed an object last is told by its managers: not us, and not a status.
func TestWriterOfAnObject(t *testing.T) {
	at := func(s int) *metav1.Time { return &metav1.Time{Time: time.Unix(int64(s), 0)} }
	entry := func(manager string, op metav1.ManagedFieldsOperationType, sub string, t *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: op, Subresource: sub, Time: t}
	}
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	tests := map[string]struct {
		in   []metav1.ManagedFieldsEntry
		want string
	}{
		"nobody":             {nil, ""},
		"only we":            {[]metav1.ManagedFieldsEntry{entry(api.FieldManager, apply, "", at(9))}, ""},
		"the last":           {[]metav1.ManagedFieldsEntry{entry("kubectl-edit", update, "", at(5)), entry("helm", update, "", at(3)), entry(api.FieldManager, apply, "", at(9))}, "kubectl-edit"},
		"through scale":      {[]metav1.ManagedFieldsEntry{entry("helm", update, "", at(3)), entry("hpa", update, "scale", at(4))}, "hpa"},
		"a status":           {[]metav1.ManagedFieldsEntry{entry("helm", update, "", at(3)), entry("kubelet", update, "status", at(4))}, "helm"},
		"no time":            {[]metav1.ManagedFieldsEntry{entry("helm", update, "", nil)}, ""},
		"our name, updating": {[]metav1.ManagedFieldsEntry{entry(api.FieldManager, update, "", at(3))}, api.FieldManager},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := writer(test.in); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What others do to an object changes how it stands; what we apply and what a
// status says do not.
func TestStandingOfAnObject(t *testing.T) {
	entry := func(manager, sub, fields string, second int64) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: sub,
			Time: &metav1.Time{Time: time.Unix(second, 0)}, FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	ours := entry(api.FieldManager, "", `{"f:data":{"f:a":{}}}`, 1)
	ours.Operation = metav1.ManagedFieldsOperationApply
	oursLater := entry(api.FieldManager, "", `{"f:data":{"f:b":{}}}`, 2)
	oursLater.Operation = metav1.ManagedFieldsOperationApply
	helm := entry("helm", "", `{"f:data":{"f:x":{}}}`, 1)
	base := othersOf([]metav1.ManagedFieldsEntry{ours, helm})
	tests := map[string]struct {
		in   []metav1.ManagedFieldsEntry
		same bool
	}{
		"we applied something else": {[]metav1.ManagedFieldsEntry{oursLater, helm}, true},
		"a status":                  {[]metav1.ManagedFieldsEntry{ours, helm, entry("kubelet", "status", `{"f:status":{}}`, 3)}, true},
		"one more field":            {[]metav1.ManagedFieldsEntry{ours, entry("helm", "", `{"f:data":{"f:x":{},"f:y":{}}}`, 2)}, false},
		"another value":             {[]metav1.ManagedFieldsEntry{ours, entry("helm", "", `{"f:data":{"f:x":{}}}`, 2)}, false},
		"one more manager":          {[]metav1.ManagedFieldsEntry{ours, helm, entry("hpa", "scale", `{"f:spec":{}}`, 2)}, false},
		"one manager less":          {[]metav1.ManagedFieldsEntry{ours}, false},
		"another manager":           {[]metav1.ManagedFieldsEntry{ours, entry("flux", "", `{"f:data":{"f:x":{}}}`, 1)}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := othersOf(test.in) == base; got != test.same {
				t.Errorf("stands as before: %t, want %t", got, test.same)
			}
		})
	}
}

// There is one watch of a kind; one that is ended is no more asked.
func TestWatchesAreFoundByKindUntilTheyEnd(t *testing.T) {
	maps, secrets := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	ended := map[string]bool{}
	of := func(gvk schema.GroupVersionKind) *kindWatch {
		k := newKindWatch(gvk, resource{})
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
	s := &session{live: lives{}, unseen: map[api.ID]bool{}, changes: newChanges(), watch: watches{old}}
	s.endWatch(old)
	s.watch = watches{now}
	s.changes.put(now, cm("x"), &live{version: 5})
	s.changes.list(now, listed{map[api.ID]bool{cm("x"): true}, 5})
	s.changes.list(old, listed{nil, 4})
	s.changes.remove(old, cm("x"), 6)
	s.changes.put(old, cm("y"), &live{version: 4})
	if s.absorb(); s.live.of(cm("x")) == nil || s.live.of(cm("y")) != nil {
		t.Errorf("x is %v, y is %v", s.live.of(cm("x")), s.live.of(cm("y")))
	}
}
