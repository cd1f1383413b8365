package member

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
)

func cm(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "app", Name: name} }

// A watch event that is older than a write of the agent itself is dropped. An event that is as
// new or newer counts, and so does one without a number.
func TestOldNewsIsDropped(t *testing.T) {
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
			c.Remove(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), 5)
		}, 0, true},
		"deleted before": {&observed.Object{Version: 6}, func(c *watch.Changes) {
			c.Remove(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), 5)
		}, 6, false},
		"deleted, no number": {&observed.Object{Version: 6}, func(c *watch.Changes) {
			c.Remove(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), 0)
		}, 0, true},
		"deleted, unknown": {nil, func(c *watch.Changes) {
			c.Remove(watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), cm("x"), 5)
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
				s.live.Put(cm("x"), test.known)
			}
			test.event(s.watch.Changes)
			touched := s.observer.absorb()
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
func TestEndedWatchTellsNothing(t *testing.T) {
	old, now := watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{}), watch.NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, connection.Resource{})
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s.watch.End(old)
	s.watch.Changes.Put(now, cm("x"), &observed.Object{Version: 5})
	s.watch.Changes.List(now, observed.List{Found: map[api.ID]bool{cm("x"): true}, Version: 5})
	s.watch.Changes.List(old, observed.List{Found: nil, Version: 4})
	s.watch.Changes.Remove(old, cm("x"), 6)
	s.watch.Changes.Put(old, cm("y"), &observed.Object{Version: 4})
	if s.observer.absorb(); s.live.Of(cm("x")) == nil || s.live.Of(cm("y")) != nil {
		t.Errorf("x is %v, y is %v", s.live.Of(cm("x")), s.live.Of(cm("y")))
	}
}
