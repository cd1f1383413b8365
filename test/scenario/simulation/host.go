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

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// A host is a simulated cluster. It outlives daemons and agents.
type host struct {
	name   string
	things map[api.ID]*liveObject
	holds  map[api.PlacementKey]*inventory

	// down says that it does not respond, hung that requests never end; sick are the objects
	// whose writes fail, pace is the duration of half a pass.
	down, hung bool
	sick       map[api.ID]bool
	pace       time.Duration
	chance     *rand.Rand
	// rival is the ID of another fleet that holds it too; empty if there is none. granted says
	// that a user has adopted that fleet.
	rival   string
	granted bool
	// agent is the current agent; nil if there is none.
	agent *agent
}

// A liveObject is an object on a cluster.
type liveObject struct {
	value string
	hash  string
	by    api.PlacementKey // who applied it
	ours  bool             // it carries our label
	since time.Time        // it is as it is
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
		chance: rand.New(rand.NewPCG(seed, sum.Sum64())),
		name:   name, things: map[api.ID]*liveObject{}, holds: map[api.PlacementKey]*inventory{},
		sick: map[api.ID]bool{}, pace: 20 * time.Millisecond,
	}
}

// owns reports whether the inventory of a placement has an object.
func (h *host) owns(key api.PlacementKey, id api.ID) bool {
	inv := h.holds[key]
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
func (h *host) keys() []api.PlacementKey { return slices.SortedFunc(maps.Keys(h.holds), byKey) }

func byKey(a, b api.PlacementKey) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// grow adds to the inventory what is about to be applied.
func (h *host) grow(w work.Work, id api.ID) {
	inv := h.holds[w.Placement]
	if inv == nil {
		inv = &inventory{items: map[api.ID]bool{}}
		h.holds[w.Placement] = inv
	}
	if !inv.items[id] && w.Revision != (placement.Revision{}) {
		inv.revision = w.Revision
	}
	inv.items[id] = true
}

// A health is the health of an applied object.
type health int

const (
	fine health = iota
	unknowable
	notYet
	never
)

func (t *liveObject) health(now time.Time) health {
	switch kindOf(t.value) {
	case bad:
		return never
	case loose:
		return unknowable
	case slow:
		if now.Before(t.since.Add(slowness)) {
			return notYet
		}
	}
	return fine
}

// slowness is how long a slow object takes to become available.
const slowness = 30 * time.Second
