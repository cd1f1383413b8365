package simulation

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Clusters are restored from backups, as a whole or only their inventories, while gitfleet runs or does not.

// restoresShare is the share of scenarios in which clusters are restored: one of so many.
const restoresShare = 16

// restoreStep is the kind of steps in which a cluster is backed up or restored.
const restoreStep = 29

// checkedAfterRestores are the invariants that are checked in these scenarios. The others judge by what was written and
// available before, which a restore takes back.
var checkedAfterRestores = map[string]bool{
	invariantInternal: true, invariantSound: true, invariantConverges: true, invariantLoop: true, invariantPlanned: true,
}

// A backup is what a host had at one time.
type backup struct {
	objects       map[api.ID]*liveObject
	inventories   map[api.PlacementKey]*inventory
	claim, writer string
}

func (h *host) backUp() *backup {
	b := &backup{map[api.ID]*liveObject{}, cloneInventories(h.inventories), h.claim, h.writer}
	for id, t := range h.objects {
		was := *t
		b.objects[id] = &was
	}
	return b
}

func cloneInventories(all map[api.PlacementKey]*inventory) map[api.PlacementKey]*inventory {
	out := map[api.PlacementKey]*inventory{}
	for key, inv := range all {
		out[key] = &inventory{items: maps.Clone(inv.items), revision: inv.revision, abandon: inv.abandon}
	}
	return out
}

// restoreHost backs up a member, or restores it if there is a backup: as a whole, or its inventories alone. While
// gitfleet is connected to it, the latter would be put back at once.
func (w *world) restoreHost(r *rand.Rand) {
	n := r.IntN(6)
	if n < 3 {
		w.restart(r)
	}
	w.runEvent(func() {
		name := pick(r, keys(w.newestValid().clusters))
		h := w.hosts[name]
		switch {
		case h == nil || h.otherFleet != "":
		case h.backup == nil || r.IntN(4) == 0:
			w.logf("cluster %s is backed up", name)
			h.backup = h.backUp()
		case n == 0:
			w.logf("the inventories of cluster %s are restored", name)
			h.inventories, h.unlisted = cloneInventories(h.backup.inventories), true
		case n == 1:
			w.logf("the inventories of cluster %s are deleted", name)
			h.inventories, h.unlisted = map[api.PlacementKey]*inventory{}, true
		default:
			w.logf("cluster %s is restored", name)
			from := h.backup
			h.backup = nil
			w.set(h, func() {
				h.objects, h.inventories, h.claim, h.writer = from.objects, from.inventories, from.claim, from.writer
				h.restores++
			})
		}
	})
}

// beginAnew reads everything again after a restore, as a new session does.
func (a *agent) beginAnew() {
	a.sawRestores = a.restores
	a.blip("it was restored")
	a.reportCluster()
	a.startPass()
}

// listUnlisted adds to inventories what they do not list although it was applied, after they were deleted or set back.
func (a *agent) listUnlisted() {
	if !a.unlisted {
		return
	}
	a.unlisted = false
	for _, id := range slices.SortedFunc(maps.Keys(a.objects), api.ID.Compare) {
		t := a.objects[id]
		if _, listed := a.owner(id); !t.ours || listed {
			continue
		}
		if a.inventories[t.by] == nil {
			a.inventories[t.by] = &inventory{items: map[api.ID]bool{}}
		}
		a.inventories[t.by].items[id] = true
	}
	a.reportCluster()
}

// restored returns the restore of the host for a report; zero if there was none.
func (a *agent) restored() protocol.Restore {
	if a.restores == 0 {
		return protocol.Restore{}
	}
	return protocol.Restore{At: a.d.w.now(), Why: "it was restored"}
}
