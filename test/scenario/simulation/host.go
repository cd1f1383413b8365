package simulation

import (
	"cmp"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
)

// A host is a simulated cluster. It outlives daemons and agents, and may be declared under several names
// of members.
type host struct {
	name        string
	objects     map[api.ID]*liveObject
	inventories map[api.PlacementKey]*inventory

	// down says that it does not respond, hung that requests never end; failingWrites are the
	// objects whose writes fail, halfPass is the duration of half a pass.
	down, hung    bool
	failingWrites map[api.ID]bool
	halfPass      time.Duration
	random, blips *rand.Rand
	others        *rand.Rand // of what others write, and of finalizers
	// otherFleet is the ID of another fleet that holds it too; empty if there is none.
	// otherFleetAdopted says that a user has adopted that fleet.
	otherFleet        string
	otherFleetAdopted bool
	// claim is the member that the claim of our fleet names; empty if there is no claim. writer is the member
	// under whose name anything of ours was last written; empty if nothing of ours is there.
	claim, writer string
	// backup is the last backup; nil if there is none. restores counts how many times it was restored as a whole.
	// unlisted says that its inventories were deleted or set back.
	backup   *backup
	restores int
	unlisted bool
}

// A liveObject is an object on a cluster.
type liveObject struct {
	value string
	hash  string
	by    api.PlacementKey // who applied it
	ours  bool             // it has gitfleet's label
	since time.Time        // of its present value
	// unavailableUntil is when it is available again, whatever its value says; zero if it is.
	unavailableUntil time.Time
	// stored is the whole of an object of a managedKind; nil for others. managed and left are what the inventory lists of its
	// last apply; see diff.LastApply.
	stored  *unstructured.Unstructured
	managed string
	left    diff.Left
	// applied are the parts that are there and that gitfleet has applied, edited those that others have changed since its
	// last apply.
	applied, edited partSet
	// goneAt is when the finalizers of a deleted object are executed; zero if it is not deleted.
	goneAt time.Time
}

// An inventory has what a placement owns on a cluster.
type inventory struct {
	items    map[api.ID]bool
	revision placement.Revision
	abandon  bool
}

func newHost(name string, seed uint64) *host {
	sum := fnv.New64a()
	io.WriteString(sum, name) // never fails
	return &host{
		random: rand.New(rand.NewPCG(seed, sum.Sum64())), blips: rand.New(rand.NewPCG(seed+1, sum.Sum64())),
		others: rand.New(rand.NewPCG(seed+2, sum.Sum64())),
		name:   name, objects: map[api.ID]*liveObject{}, inventories: map[api.PlacementKey]*inventory{},
		failingWrites: map[api.ID]bool{}, halfPass: 20 * time.Millisecond,
	}
}

// owns reports whether the inventory of a placement has an object.
func (h *host) owns(key api.PlacementKey, id api.ID) bool {
	inv := h.inventories[key]
	return inv != nil && inv.items[id]
}

// owner returns a placement whose inventory has an object; false if there is none.
func (h *host) owner(id api.ID) (api.PlacementKey, bool) {
	for _, key := range h.keys() {
		if h.owns(key, id) {
			return key, true
		}
	}
	return api.PlacementKey{}, false
}

// keys returns the placements with an inventory, in order.
func (h *host) keys() []api.PlacementKey { return slices.SortedFunc(maps.Keys(h.inventories), byKey) }

func byKey(a, b api.PlacementKey) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// addToInventory records an object that is about to be applied.
func (h *host) addToInventory(w *work.Work, id api.ID) {
	inv := h.inventories[w.Placement]
	if inv == nil {
		inv = &inventory{items: map[api.ID]bool{}}
		h.inventories[w.Placement] = inv
	}
	if !inv.items[id] && w.Revision != (placement.Revision{}) {
		inv.revision = w.Revision
	}
	inv.items[id] = true
}

// A health is the health of an applied object.
type health int

const (
	healthy health = iota
	untracked
	pending
	failed
)

func (t *liveObject) health(now time.Time) health {
	switch kind := kindOf(t.value); {
	case kind == bad:
		return failed
	case now.Before(t.unavailableUntil), kind == slow && now.Before(t.since.Add(slowDelay)):
		return pending
	case kind == loose:
		return untracked
	}
	return healthy
}

// changesAt is when a pending object is available, or unavailable for another reason.
func (t *liveObject) changesAt(now time.Time) time.Time {
	if now.Before(t.unavailableUntil) {
		return t.unavailableUntil
	}
	return t.since.Add(slowDelay)
}

// slowDelay is how long a slow object takes to become available.
const slowDelay = 30 * time.Second
