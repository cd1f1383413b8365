package simulation

import (
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
)

// In scenarios with removals, a ConfigMap stands for a controller and what it needs. It serves the objects of managed kinds of the same
// placement: they have finalizers, which it executes for a while after their deletion.

const invariantWaves = "what executes finalizers is deleted only after everything that it serves is gone"

// controllerID is that ConfigMap.
var controllerID = objectID(namespaceNames[0], objectNames[0])

// isServed reports whether an object has finalizers.
func isServed(id api.ID) bool {
	_, managed := managedKinds[id.Namespace]
	return managed
}

// newWaves returns the waves of everything that is to be deleted.
func (a *agent) newWaves(wanted map[api.ID]api.PlacementKey, sent map[api.PlacementKey]*work.Work) *deletion.Waves {
	var all []deletion.Object
	for _, key := range a.keys() {
		for id := range a.inventories[key].items {
			_, isWanted := wanted[id]
			leaves := !isWanted && prunes(sent, key)
			if leaves {
				_, passesOn := a.newOwner(id, key, sent)
				leaves = !passesOn
			}
			all = append(all, deletion.Object{ID: id, Placement: key, Leaving: leaves, Commit: workIn(sent, key).Cause.Commit})
		}
	}
	return deletion.NewWaves(all, func(o deletion.Object) bool { return a.awaited(workIn(sent, o.Placement), o.ID) })
}

// awaited reports whether an object that is to be deleted still exists, and is neither held nor given up.
func (a *agent) awaited(w *work.Work, id api.ID) bool {
	t, inv := a.objects[id], a.inventories[w.Placement]
	return t != nil && t.ours && inv != nil && inv.items[id] && !(inv.abandon && w.Remove) && w.DeletionBlocked(id, a.deletedNamespaces(w)) == ""
}

// waits reports whether another object has to be gone before one is deleted.
func (a *agent) waits(w *work.Work, id api.ID) bool {
	first, found := a.waves.Before(deletion.Object{ID: id, Placement: w.Placement, Leaving: true, Commit: w.Cause.Commit})
	if !found || a.d.w.mutant.DeletesAtOnce {
		return false
	}
	a.d.w.logf("cluster %s waits for %s to be gone before it deletes %s", a.name, title(first.ID), title(id))
	return true
}

// deleteObject deletes an object, and reports whether it is gone at once.
func (a *agent) deleteObject(by api.PlacementKey, id api.ID) (gone bool) {
	w, t := a.d.w, a.objects[id]
	if id == controllerID {
		w.checkWaves(a, by)
	}
	w.logf("cluster %s deletes %s of %s", a.name, title(id), by)
	if controller := a.objects[controllerID]; !w.removals || !isServed(id) || controller == nil || !a.owns(by, controllerID) {
		delete(a.objects, id)
		return true
	}
	d := pick(a.others, []time.Duration{time.Second, 10 * time.Second, time.Minute})
	t.goneAt = time.Now().Add(d)
	w.after(d+time.Millisecond, func() {
		a.endDeletions()
		for _, x := range w.agentsOf(a.host) {
			x.startPass()
		}
	})
	return false
}

// endDeletions removes the objects whose finalizers are executed.
func (h *host) endDeletions() {
	for id, t := range h.objects {
		if !t.goneAt.IsZero() && !time.Now().Before(t.goneAt) {
			delete(h.objects, id)
		}
	}
}

// checkWaves is called before the controller is deleted for a placement.
func (w *world) checkWaves(a *agent, by api.PlacementKey) {
	sent := map[api.PlacementKey]*work.Work{}
	for _, x := range a.pass {
		sent[x.Placement] = x
	}
	for id := range a.inventories[by].items {
		if !isServed(id) || a.wantedByAny(id) || !a.awaited(workIn(sent, by), id) {
			continue
		}
		if _, passesOn := a.newOwner(id, by, sent); !passesOn {
			w.violate(invariantWaves, "%s deletes %s for %s, and %s is still there", a.name, title(controllerID), by, title(id))
		}
	}
}
