package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

const lawFresh = "what becomes of everything is what a fresh start at the same commit gives"

// freshly is how many lives there are for each one that is compared with a fresh start, which
// takes nearly half as long as the life.
const freshly = 8

// patience is how long a fresh world may take to settle.
var patience = []time.Duration{2, 4, 30, 40, 60, 60, 300, 600}

// settles waits until everything is as it should be, and returns what is not.
func (w *world) settles() (why string) {
	for _, d := range patience {
		w.pass(d * time.Second)
		if !w.fine() {
			return ""
		}
		w.mu.Lock()
		why = w.settled()
		w.mu.Unlock()
		if why == "" {
			w.pass(slowness + 5*time.Second) // what takes its time is there by then
			break
		}
	}
	return why
}

// checkFresh starts gitfleet with an empty state on clusters without its objects, and compares
// the result with this world.
func (w *world) checkFresh() {
	head := w.source.commits[w.source.head].desired
	other := &world{
		t: w.t, seed: w.seed, loaders: w.loaders, began: time.Now(), hosts: map[string]*host{},
		state: state{Store: ledger.Memory()}, books: newBooks(), news: make(chan struct{}, 1),
		contents: map[string]revision{},
	}
	other.saved, other.decided = other.books.memory, other.books
	other.source = newSource(other)
	for name := range head.clusters {
		h := newHost(name, w.seed)
		for id, t := range w.hosts[name].things {
			if !t.ours {
				foreign := *t
				h.things[id] = &foreign
			}
		}
		other.hosts[name] = h
	}
	other.happen(func() { other.push("the same", head) })
	other.happen(other.start)
	why := other.settles()
	other.stop()
	switch {
	case other.broken != nil:
		w.breaks(other.broken.Law, "after a fresh start: %s", other.broken.Text)
	case why != "":
		w.breaks(lawConverges, "after a fresh start: %s", why)
	default:
		if diff := (comparison{w, other, head}).difference(); diff != "" {
			w.breaks(lawFresh, "%s", diff)
		}
	}
}

// A comparison is between a world and a fresh one at its last commit. They may differ in the
// clusters that a PickN placement has selected, since it keeps those that it has, and in what a
// placement in ReportDiff has applied before.
type comparison struct {
	was, fresh *world
	head       *desired
}

// difference returns the first difference that is not allowed; empty if there is none.
func (c comparison) difference() string {
	for _, name := range keys(c.head.places) {
		if diff := c.places(api.PlacementKey{Name: name}); diff != "" {
			return diff
		}
	}
	for _, name := range keys(c.head.clusters) {
		if diff := c.hosts(c.was.hosts[name], c.fresh.hosts[name]); diff != "" {
			return diff
		}
	}
	return ""
}

// places compares the clusters, the content and the status of each placement.
func (c comparison) places(key api.PlacementKey) string {
	was, fresh := c.was.books.pages[key], c.fresh.books.pages[key]
	if a, b := keys(was), keys(fresh); len(a) != len(b) || !slices.Equal(a, b) && c.head.places[key.Name].pick < 0 {
		return fmt.Sprintf("%s is on %v, and afresh on %v", key, a, b)
	}
	for _, name := range keys(was) {
		if e := fresh[name]; e != nil && e.Binding.Assigned.Hash != was[name].Binding.Assigned.Hash {
			return fmt.Sprintf("%s has content of commit %s on %s, which is not what it gets afresh", key, was[name].Binding.Assigned.Commit, name)
		}
	}
	if a, b := c.was.conditions(key), c.fresh.conditions(key); a != b && slices.Equal(keys(was), keys(fresh)) {
		return fmt.Sprintf("of %s it is said %s, and afresh %s", key, a, b)
	}
	return ""
}

// conditions returns the conditions of a placement.
func (w *world) conditions(key api.PlacementKey) string {
	var b strings.Builder
	for _, p := range w.report.Placements {
		for _, c := range p.Status.Conditions {
			if p.Name == key.Name {
				fmt.Fprintf(&b, "%s=%s (%s) ", c.Type, c.Status, c.Reason)
			}
		}
	}
	return b.String()
}

// hosts compares the objects of each cluster.
func (c comparison) hosts(was, fresh *host) string {
	ids := maps.Clone(was.things)
	maps.Copy(ids, fresh.things)
	for _, id := range slices.SortedFunc(maps.Keys(ids), api.ID.Compare) {
		if a, b := was.told(id), fresh.told(id); a != b && !c.mayDiffer(was, id) {
			return fmt.Sprintf("%s has %s %s, and afresh %s", was.name, title(id), a, b)
		}
	}
	for _, key := range was.keys() {
		at := bindingKey{key, was.name}
		if !c.was.books.live(at) || !c.fresh.books.live(at) || c.head.places[key.Name].report {
			continue
		}
		if a, b := was.holds[key], fresh.holds[key]; len(a.items) > 0 && !a.same(b) {
			return fmt.Sprintf("the inventory of %s on %s is %s, and afresh %s", key, was.name, a, b)
		}
	}
	return ""
}

// mayDiffer reports whether an object belongs to a placement that is on the cluster in only one
// of the worlds, or that does not write.
func (c comparison) mayDiffer(h *host, id api.ID) bool {
	if by, ok := h.owner(id); ok && c.head.places[by.Name].report {
		return true
	}
	for name, p := range c.head.places {
		at := bindingKey{api.PlacementKey{Name: name}, h.name}
		if _, of := c.head.gives(name, h.name)[id]; of && p.pick >= 0 && c.was.books.live(at) != c.fresh.books.live(at) {
			return true
		}
	}
	return false
}

// told describes an object on a cluster.
func (h *host) told(id api.ID) string {
	t := h.things[id]
	switch {
	case t == nil:
		return "not at all"
	case !t.ours:
		return fmt.Sprintf("as %q, which is nobody's", t.value)
	}
	return fmt.Sprintf("as %q for %s", t.value, t.by)
}

// same reports whether two inventories are equal except for the commit.
func (i *inventory) same(o *inventory) bool {
	return o != nil && maps.Equal(i.items, o.items) && i.revision.Hash == o.revision.Hash && i.abandon == o.abandon
}

func (i *inventory) String() string {
	if i == nil {
		return "not there"
	}
	names := []string{}
	for _, id := range slices.SortedFunc(maps.Keys(i.items), api.ID.Compare) {
		names = append(names, title(id))
	}
	revision := "complete"
	if i.revision == (placement.Revision{}) {
		revision = "of nothing"
	}
	return fmt.Sprintf("%s %s (abandon: %t)", strings.Join(names, ", "), revision, i.abandon)
}
