package member

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Objects that a work holds are not deleted, whatever their number, and do not count for the
// limit.
func TestUnintendedDeletionsAreBlocked(t *testing.T) {
	key := api.PlacementKey{Name: "web"}
	namespace := api.ID{Kind: "Namespace", Name: "web"}
	in := oneManifest().ID // an object in that namespace
	out := api.ID{Kind: "ClusterRole", Group: "rbac.authorization.k8s.io", Name: "one"}
	guarded := []work.DeletionBlock{{Kind: namespace.GroupKind(), Why: "guarded"}}
	tests := map[string]struct {
		work  work.Work
		limit DeletionLimit
		want  map[api.ID]string
	}{
		"a Namespace goes":            {work.Work{DeletionBlocks: guarded}, DeletionLimit{100, 100}, map[api.ID]string{namespace: "guarded", in: "Namespace web goes as well, and guarded"}},
		"the selection is empty":      {work.Work{DeletionBlocks: []work.DeletionBlock{{Why: "empty"}}}, DeletionLimit{100, 100}, map[api.ID]string{namespace: "empty", in: "empty", out: "empty"}},
		"a commit allows it":          {work.Work{AllowDelete: true}, DeletionLimit{1, 1}, nil},
		"the placement is gone":       {work.Work{Remove: true}, DeletionLimit{100, 100}, nil},
		"too much of what may go":     {work.Work{DeletionBlocks: guarded}, DeletionLimit{10, 0}, map[api.ID]string{namespace: "guarded", in: "Namespace web goes as well, and guarded", out: "deleting 1 of the 3 objects that gitfleet has on this cluster is more than 10 %"}},
		"held is not counted":         {work.Work{DeletionBlocks: guarded}, DeletionLimit{40, 0}, map[api.ID]string{namespace: "guarded", in: "Namespace web goes as well, and guarded"}},
		"it is given up, not deleted": {work.Work{Remove: true, Abandon: true, DeletionBlocks: guarded}, DeletionLimit{0, 0}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.holding(oneManifest(), key)
			for _, id := range []api.ID{namespace, in, out} {
				s.inventory(key).Items.Put(inventory.Item{Group: id.Group, Version: "v1", Kind: id.Kind, Namespace: id.Namespace, Name: id.Name})
				s.record.objects.Put(id, &observed.Object{Fleet: "prod"})
			}
			s.cfg.DeletionLimit = test.limit
			s.inventory(key).Abandon = test.work.Abandon
			test.work.Placement = key
			s.setWorks([]*work.Work{&test.work})
			s.blocker.decide(map[api.ID]bool{namespace: true, in: true, out: true}, s.blocker.deletes, nil)
			got := map[api.ID]string{}
			for id, b := range s.blocker.blocked {
				got[id] = b.why
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("held:\n%v\nwant\n%v", got, test.want)
			}
		})
	}
}

// An object that is held because of the state of the cluster is checked again after a while,
// and at once when the watch reports a change of the namespace or a deletion in it.
func TestBlockedDeletionIsCheckedAgain(t *testing.T) {
	namespace := api.ID{Kind: "Namespace", Name: "web"}
	held := &inventory.Item{Version: "v1", Kind: "Namespace", Name: "web"}
	tests := map[string]struct {
		touched []api.ID
		again   bool
	}{
		"something else":       {[]api.ID{{Kind: "ConfigMap", Namespace: "shop", Name: "one"}}, false},
		"the Namespace itself": {[]api.ID{namespace}, true},
		"what was in it":       {[]api.ID{{Kind: "ConfigMap", Namespace: "web", Name: "one"}}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.holding(oneManifest())
			s.record.objects.Put(namespace, &observed.Object{Fleet: "prod"})
			s.blocker.blockAndRecheck(namespace, "it has content")
			first := time.Until(s.blocker.blocked[namespace].next)
			s.blocker.blockAndRecheck(namespace, "it has content")
			if second := time.Until(s.blocker.blocked[namespace].next); first <= 0 || second < first || second > lastRecheck {
				t.Errorf("it is looked at again after %v, then after %v", first, second)
			}
			if !s.blocker.stillBlocked(held) {
				t.Fatal("it is looked at at once")
			}
			touched := map[api.ID]bool{}
			for _, id := range test.touched {
				touched[id] = true
			}
			s.blocker.recheckBlocked(touched, s.record.progress.RetryNow)
			if again := !s.blocker.stillBlocked(held); again != test.again || test.again && !touched[namespace] {
				t.Errorf("looked at again: %t, want %t, by %v", again, test.again, slices.Collect(maps.Keys(touched)))
			}
		})
	}
}

// Deletions are too many at once only if they exceed both limits.
func TestTooManyDeletions(t *testing.T) {
	b := DeletionLimit{Percent: 30, Objects: 10}
	tests := map[string]struct {
		going, total int
		want         string
	}{
		"none":                   {0, 0, ""},
		"few, and all":           {10, 10, ""},
		"many, of very many":     {30, 100, ""},
		"more than both limits":  {31, 100, "deleting 31 of the 100 objects that gitfleet has on this cluster is more than 30 %"},
		"all of a small cluster": {11, 11, "deleting 11 of the 11 objects that gitfleet has on this cluster is more than 30 %"},
	}
	for name, test := range tests {
		if got := b.TooMuch(test.going, test.total); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A stale object that is gone, is being deleted, is not ours or stays does not count as a
// deletion. One of which no watch reports the state does.
func TestWhatCountsAsADeletion(t *testing.T) {
	tests := map[string]struct {
		work    work.Work
		abandon bool
		live    *observed.Object // nil if it is not known
		watched bool
		want    bool
	}{
		"ours":                        {live: &observed.Object{Fleet: "prod"}, watched: true, want: true},
		"gone":                        {watched: true},
		"not watched":                 {want: true},
		"not watched, and allowed":    {work: work.Work{AllowDelete: true}},
		"not watched, and left":       {work: work.Work{Remove: true}, abandon: true},
		"of another fleet":            {live: &observed.Object{Fleet: "test"}, watched: true},
		"being deleted":               {live: &observed.Object{Fleet: "prod", Terminating: true}, watched: true},
		"kept by its annotation":      {live: &observed.Object{Fleet: "prod", Kept: true}, watched: true},
		"left by a deleted placement": {work: work.Work{Remove: true}, abandon: true, live: &observed.Object{Fleet: "prod"}, watched: true},
		"allowed by a commit":         {work: work.Work{AllowDelete: true}, live: &observed.Object{Fleet: "prod"}, watched: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			if test.watched {
				watchConfigMaps(t, s)
			}
			s.holding(oneManifest(), web)
			s.inventory(web).Abandon = test.abandon
			test.work.Placement = web
			s.replaceWorks([]*work.Work{&test.work})
			if test.live != nil {
				s.record.objects.Put(oneManifest().ID, test.live)
			}
			if got := s.blocker.deletes(owned.Stale{Inventory: s.inventory(web).View(), Item: s.inventory(web).Items.Of(oneManifest().ID)}); got != test.want {
				t.Errorf("counts: %t", got)
			}
		})
	}
}
