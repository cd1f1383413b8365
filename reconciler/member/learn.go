package member

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
)

// prepareKinds determines how the cluster serves the kinds of some objects, and watches them.
func (s *session) prepareKinds(ctx context.Context, ids map[api.ID]bool) error {
	gvks := map[schema.GroupVersionKind]bool{{Version: "v1", Kind: "ConfigMap"}: true}
	whole := map[schema.GroupVersionKind]bool{}
	for id := range ids {
		if w, ok := s.wanted.of(id); ok {
			gvk := w.manifest.Object.Object.GroupVersionKind()
			gvks[gvk] = true
			whole[gvk] = whole[gvk] || needsWholeObject(w.manifest)
		}
		for _, inv := range s.inv {
			if gvk, ok := inv.Items.GroupVersionKind(id); ok {
				gvks[gvk] = true
			}
		}
	}
	s.addWaiting(ids, gvks, whole)
	if !s.watchesAll(gvks) {
		defer takePlace(ctx, s.cfg.Arrivals)()
	}
	asking, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.kinds.Resolve(asking, gvks); err != nil {
		return s.conn.RecordResult(err)
	}
	var started []*watch.Kind
	for gvk := range gvks {
		res, ok := s.kinds.Of(gvk)
		k := s.watch.Of(gvk)
		if k != nil && whole[gvk] && !k.Full {
			s.watch.End(k) // metadata is no longer enough
			k = nil
		}
		if ok && k == nil {
			started = append(started, s.watch.Start(ctx, gvk, res, whole[gvk]))
		}
	}
	s.waitForLists(ctx, started)
	return nil
}

// addWaiting adds the objects that wait for one of the kinds. If the kind is known now, they
// are processed too.
func (s *session) addWaiting(ids map[api.ID]bool, gvks, whole map[schema.GroupVersionKind]bool) {
	for id, t := range s.trouble {
		if !t.unknownKind || ids[id] {
			continue
		}
		if w, ok := s.wanted.of(id); ok && gvks[w.manifest.Object.Object.GroupVersionKind()] {
			gvk := w.manifest.Object.Object.GroupVersionKind()
			ids[id], whole[gvk] = true, whole[gvk] || needsWholeObject(w.manifest)
		}
	}
}

// watchesAll reports whether all of some kinds are watched.
func (s *session) watchesAll(gvks map[schema.GroupVersionKind]bool) bool {
	for gvk := range gvks {
		if s.watch.Of(gvk) == nil {
			return false
		}
	}
	return true
}

// needsWholeObject reports whether the availability of an object depends on more than its
// metadata.
func needsWholeObject(m *work.Manifest) bool {
	o := m.Object.Object
	return health.NeedsStatus(o.GroupVersionKind()) || availability.Of(m) != ""
}

// waitForLists gives new watches time for their first list, so that existing objects are known
// before anything is written.
func (s *session) waitForLists(ctx context.Context, started []*watch.Kind) {
	if len(started) == 0 || !s.watch.WaitForLists(ctx, started, s.cfg.Timeout) {
		return
	}
	s.unseen = s.absorb()
	s.watch.Changes.Nudge()
}
