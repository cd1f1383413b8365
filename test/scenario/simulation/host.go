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

// A host is a cluster as it is, whoever comes to it. It outlives daemons and
// agents.
type host struct {
	name   string
	things map[api.ID]*thing
	holds  map[api.PlacementKey]*inventory

	// down says that nobody answers, hung that nothing asked for gets done,
	// sick are objects whose writes fail, pace is how long half a pass takes.
	down, hung bool
	sick       map[api.ID]bool
	pace       time.Duration
	chance     *rand.Rand
	// rival is the ID of another fleet that holds it as well; empty if there is none.
	// granted says that a person has asked to adopt that.
	rival   string
	granted bool
	// agent is who looks after it now; nil if nobody does.
	agent *agent
}

// A thing is an object on a cluster.
type thing struct {
	value string
	hash  string
	by    api.PlacementKey // who applied it
	ours  bool             // it carries our label
	since time.Time        // it is as it is
}

// An inventory is what a placement owns on a cluster, written down there.
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
		name:   name, things: map[api.ID]*thing{}, holds: map[api.PlacementKey]*inventory{},
		sick: map[api.ID]bool{}, pace: 20 * time.Millisecond,
	}
}

// owns reports whether a placement's inventory lists an object.
func (h *host) owns(key api.PlacementKey, id api.ID) bool {
	inv := h.holds[key]
	return inv != nil && inv.items[id]
}

// owner is a placement whose inventory lists an object; false if there is none.
func (h *host) owner(id api.ID) (api.PlacementKey, bool) {
	for _, key := range h.keys() {
		if h.owns(key, id) {
			return key, true
		}
	}
	return api.PlacementKey{}, false
}

// keys are the placements with an inventory here, in order.
func (h *host) keys() []api.PlacementKey { return slices.SortedFunc(maps.Keys(h.holds), byKey) }

func byKey(a, b api.PlacementKey) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// grow writes into the inventory what is about to be applied.
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

// A health is how an applied object does.
type health int

const (
	fine health = iota
	unknowable
	notYet
	never
)

func (t *thing) health(now time.Time) health {
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

// slowness is how long an object takes that takes its time.
const slowness = 30 * time.Second
