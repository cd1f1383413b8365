package member

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A watch event that is older than a write of the agent itself is dropped. An event that is as
// new or newer counts, and so does one without a number.
func TestOutdatedEventsAreDropped(t *testing.T) {
	maps, here := watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), map[api.ID]bool{cm("x"): true}
	tests := map[string]struct {
		known *observed.Object // from a write of the agent
		event func(*watch.Changes)
		want  uint64 // version of the known object afterwards; zero if none
		told  bool
	}{
		"first seen": {nil, func(c *watch.Changes) {
			c.Put(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 5})
		}, 5, true},
		"newer": {&observed.Object{Version: 4}, func(c *watch.Changes) {
			c.Put(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 5})
		}, 5, true},
		"the same": {&observed.Object{Version: 5}, func(c *watch.Changes) {
			c.Put(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 5})
		}, 5, false},
		"the same, its health known by now": {&observed.Object{Version: 5}, func(c *watch.Changes) {
			c.Put(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 5, Health: health.Health{State: health.Available}})
		}, 5, true},
		"older": {&observed.Object{Version: 6}, func(c *watch.Changes) {
			c.Put(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 5})
		}, 6, false},
		"deleted": {&observed.Object{Version: 4}, func(c *watch.Changes) {
			c.Remove(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 5})
		}, 0, true},
		"deleted before": {&observed.Object{Version: 6}, func(c *watch.Changes) {
			c.Remove(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 5})
		}, 6, false},
		"deleted, no number": {&observed.Object{Version: 6}, func(c *watch.Changes) {
			c.Remove(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 0})
		}, 0, true},
		"deleted, unknown": {nil, func(c *watch.Changes) {
			c.Remove(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 5})
		}, 0, false},
		"listed":            {&observed.Object{Version: 4}, func(c *watch.Changes) { c.List(maps, observed.List{Found: here, Version: 5}) }, 4, false},
		"not listed":        {&observed.Object{Version: 4}, func(c *watch.Changes) { c.List(maps, observed.List{Found: nil, Version: 5}) }, 0, true},
		"not listed before": {&observed.Object{Version: 6}, func(c *watch.Changes) { c.List(maps, observed.List{Found: nil, Version: 5}) }, 6, false},
		"listed, no number": {&observed.Object{Version: 6}, func(c *watch.Changes) { c.List(maps, observed.List{Found: nil, Version: 0}) }, 0, true},
		"another kind listed": {&observed.Object{Version: 4}, func(c *watch.Changes) {
			c.List(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, connection.Resource{}), observed.List{Found: nil, Version: 5})
		}, 4, false},
		"seen, then not listed": {&observed.Object{Version: 3}, func(c *watch.Changes) {
			c.Put(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 4})
			c.List(maps, observed.List{Found: nil, Version: 5})
		}, 0, true},
		"not listed, then seen": {&observed.Object{Version: 3}, func(c *watch.Changes) {
			c.List(maps, observed.List{Found: nil, Version: 5})
			c.Put(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), &observed.Object{Version: 6})
		}, 6, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
			if test.known != nil {
				s.record.objects.Put(cm("x"), test.known)
			}
			test.event(s.watch.Changes)
			touched := s.observer.recordChanges()
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

// Events of a watch that was ended do not change what a newer watch of the kind has reported.
func TestEventsOfAnEndedWatchAreDropped(t *testing.T) {
	old, now := watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{})
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s.watch.End(old)
	s.watch.Changes.Put(now, cm("x"), &observed.Object{Version: 5})
	s.watch.Changes.List(now, observed.List{Found: map[api.ID]bool{cm("x"): true}, Version: 5})
	s.watch.Changes.List(old, observed.List{Found: nil, Version: 4})
	s.watch.Changes.Remove(old, cm("x"), &observed.Object{Version: 6})
	s.watch.Changes.Put(old, cm("y"), &observed.Object{Version: 4})
	if s.observer.recordChanges(); s.live.Of(cm("x")) == nil || s.live.Of(cm("y")) != nil {
		t.Errorf("x is %v, y is %v", s.live.Of(cm("x")), s.live.Of(cm("y")))
	}
}

// A list that has an object in an earlier version than was known before the list was made shows a
// restore. A list that was made before a write of our own does not.
func TestEarlierVersionInANewerListShowsRestore(t *testing.T) {
	tests := map[string]struct {
		known, listed, list uint64
		restored            bool
	}{
		"earlier":                {222, 150, 1_000_207, true},
		"earlier, just as new":   {222, 150, 222, true},
		"our write came later":   {222, 150, 200, false},
		"the same":               {222, 222, 300, false},
		"newer":                  {222, 250, 300, false},
		"the list has no number": {222, 150, 0, false},
		"it has no number":       {222, 0, 300, false},
		"it was not known":       {0, 150, 300, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			k := watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, inventory.ConfigMaps)
			if test.known > 0 {
				s.record.objects.Put(cm("x"), &observed.Object{Version: test.known})
			}
			s.watch.Changes.Put(k, cm("x"), &observed.Object{Version: test.listed})
			s.watch.Changes.List(k, observed.List{Found: map[api.ID]bool{cm("x"): true}, Version: test.list})
			s.observer.recordChanges()
			_, err := s.processChanges(t.Context())
			if got := errors.Is(err, errReconnect); got != test.restored || (s.restored != "") != test.restored {
				t.Errorf("the session ends: %v", err)
			}
		})
	}
}

// An object is suspect if its values may have changed without a trace in the metadata: after
// any write that is not ours, but not after a change of the status. An object that was created again may
// have the managedFields of a backup.
func TestWrittenByOthers(t *testing.T) {
	was := observed.Object{UID: "1", Version: 5, Generation: 2, Applied: 100, Others: 7}
	tests := map[string]struct {
		now  observed.Object
		full bool
		want bool
	}{
		"what we know":                        {was, true, false},
		"a new status":                        {observed.Object{UID: "1", Version: 6, Generation: 2, Applied: 100, Others: 7}, true, false},
		"an apply under our name":             {observed.Object{UID: "1", Version: 6, Generation: 2, Applied: 101, Others: 7}, true, true},
		"the same within the second":          {observed.Object{UID: "1", Version: 6, Generation: 3, Applied: 100, Others: 7}, true, true},
		"another writer":                      {observed.Object{UID: "1", Version: 6, Generation: 2, Applied: 100, Others: 8}, true, true},
		"older than what we know":             {observed.Object{UID: "1", Version: 4, Generation: 1, Applied: 90, Others: 6}, true, false},
		"another object of the name":          {observed.Object{UID: "2", Version: 6, Generation: 1, Applied: 101, Others: 7}, true, true},
		"without generations, whole":          {observed.Object{UID: "1", Version: 6, Applied: 100, Others: 7}, true, false},
		"without generations, metadata alone": {observed.Object{UID: "1", Version: 6, Applied: 100, Others: 7}, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			id := cm("one")
			m := &work.Manifest{Object: &api.Object{ID: id, Content: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.replaceWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
			ctx, cancel := context.WithCancel(t.Context())
			defer s.watch.Wait()
			defer cancel()
			s.watch.Start(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, inventory.ConfigMaps, test.full)
			old := was
			if test.now.Generation == 0 {
				old.Generation = 0
			}
			if got := s.observer.writtenByOthers(id, &old, &test.now); got != test.want {
				t.Errorf("written by others: %t", got)
			}
		})
	}
}

// After a restart, the time in the inventory shows whether somebody has applied under our name
// since.
func TestWrittenWhileAway(t *testing.T) {
	id := cm("one")
	m := &work.Manifest{Object: &api.Object{ID: id, Content: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
	at := apiserver.NewConfigMaps()
	s := sessionAt(t, at)
	s.replaceWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
	if s.observer.writtenByOthers(id, nil, &observed.Object{Applied: 200}) {
		t.Error("without an inventory it is written by others")
	}
	keeps(t, sessionAt(t, at), held(1))
	for name, stored := range at.Stored {
		at.Stored[name] = bytes.Replace(stored, []byte(`"metadata":{`), []byte(`"metadata":{"managedFields":[{"manager":"`+api.FieldManager+`","operation":"Apply","time":"1970-01-01T00:01:40Z"}],`), 1)
	}
	if err := s.inventories.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for applied, want := range map[int64]bool{50: false, 100: false, 102: false, 103: true} {
		if got := s.observer.writtenByOthers(id, nil, &observed.Object{Applied: applied}); got != want {
			t.Errorf("applied at %d: written by others %t", applied, got)
		}
	}
	if s.observer.writtenByOthers(cm("other"), nil, &observed.Object{Applied: 200}) {
		t.Error("what nobody wants is written by others")
	}
}

// If an object was accepted with the value of somebody else, our part of the ownership does not
// show changes of that field. After a restart, it is still noticed that they have written to
// it.
func TestWrittenWhileAwayAfterItWasAccepted(t *testing.T) {
	m := oneManifest()
	id := m.ID
	accepted := observed.Object{UID: "1", Generation: 2, Others: 7, Managed: "ours"}
	tests := map[string]struct {
		now  observed.Object
		want bool
	}{
		"as it was accepted":        {observed.Object{UID: "1", Generation: 2, Others: 7, Managed: "ours", Version: 9}, false},
		"without generations":       {observed.Object{UID: "1", Others: 7, Managed: "ours", Version: 9}, true},
		"somebody has updated it":   {observed.Object{UID: "1", Generation: 3, Others: 8, Managed: "ours"}, true},
		"somebody has scaled it":    {observed.Object{UID: "1", Generation: 3, Others: 7, Managed: "ours"}, true},
		"updated, and without one":  {observed.Object{UID: "1", Generation: 2, Others: 8, Managed: "ours"}, true},
		"applied by us in the past": {observed.Object{UID: "1", Generation: 2, Others: 7, Managed: "ours", Applied: 50}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.replaceWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
			was := inventory.New(web, placement.Revision{})
			was.Items.Put(inventory.Item{Version: "v1", Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, Hash: "old", UID: "1"})
			s.lists(was)
			t0 := apply.Task{Object: desired.Object{Placement: web, Manifest: m}, Item: was.Items.Of(id)}
			s.record.accepted(&apply.Outcome{Task: t0, Accepted: &accepted}, map[api.PlacementKey]bool{})
			if err := s.store.Save(t.Context(), was); err != nil {
				t.Fatal(err)
			}
			if err := s.inventories.load(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.record.objects.Put(inventory.FirstPart(s.cfg.Fleet, web), &observed.Object{Applied: 100})
			if got := s.observer.writtenByOthers(id, nil, &test.now); got != test.want {
				t.Errorf("written by others: %t", got)
			}
		})
	}
}
