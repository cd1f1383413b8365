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

const invariantFresh = "the result is that of a fresh start at the same commit"

// freshShare is how many scenarios there are for each one that is compared with a fresh start,
// which takes nearly half as long as the scenario.
const freshShare = 8

// settleTimes are the periods, in seconds, after each of which a world is checked.
var settleTimes = []time.Duration{2, 4, 30, 40, 60, 60, 300, 600}

// settledAfter lets time pass, and returns what is not as the commit says then. fine is false once an invariant is violated.
func (w *world) settledAfter(d time.Duration) (why string, fine bool) {
	w.advance(d)
	if !w.fine() {
		return "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled(), true
}

// waitUntilSettled waits until everything is as the commit says, and returns what is not.
func (w *world) waitUntilSettled() (why string) {
	for _, d := range settleTimes {
		var fine bool
		if why, fine = w.settledAfter(d * time.Second); !fine {
			return ""
		}
		if why == "" {
			w.advance(slowDelay + 5*time.Second) // slow objects are available by then
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
		state: state{Store: ledger.Memory()}, saved: newModel(), queueChanged: make(chan struct{}, 1),
		contents: map[string]revisionContent{}, availableSomewhere: map[string]bool{}, exposed: map[bindingKey]string{},
	}
	other.savedObservations, other.decided = other.saved.observations, other.saved
	other.source = newSource(other)
	for name := range head.clusters {
		h := newHost(name, w.seed)
		for id, t := range w.hosts[name].objects {
			if !t.ours {
				foreign := *t
				h.objects[id] = &foreign
			}
		}
		other.hosts[name] = h
	}
	other.runEvent(func() { other.push("the same", head) })
	other.runEvent(other.start)
	why := other.waitUntilSettled()
	other.stop()
	switch {
	case other.violation != nil:
		w.violate(other.violation.Invariant, "after a fresh start: %s", other.violation.Text)
	case why != "":
		w.violate(invariantConverges, "after a fresh start: %s", why)
	default:
		if diff := (comparison{w, other, head}).difference(); diff != "" {
			w.violate(invariantFresh, "%s", diff)
		}
	}
}

// A comparison compares a world with a fresh one at its last commit. They may differ in the
// clusters that a PickN placement has selected, since it keeps those that it has, and in what a
// placement in ReportDiff has applied before.
type comparison struct {
	simulated, fresh *world
	head             *desired
}

// difference returns the first difference that is not allowed; empty if there is none.
func (c comparison) difference() string {
	for _, name := range keys(c.head.placements) {
		if diff := c.places(api.PlacementKey{Name: name}); diff != "" {
			return diff
		}
	}
	for _, name := range keys(c.head.clusters) {
		if diff := c.hosts(c.simulated.hosts[name], c.fresh.hosts[name]); diff != "" {
			return diff
		}
	}
	return ""
}

// places compares the clusters, the content and the status of each placement.
func (c comparison) places(key api.PlacementKey) string {
	was, fresh := c.simulated.saved.entries[key], c.fresh.saved.entries[key]
	if a, b := keys(was), keys(fresh); len(a) != len(b) || !slices.Equal(a, b) && c.head.placements[key.Name].numberOfClusters < 0 {
		return fmt.Sprintf("%s is on %v, and afresh on %v", key, a, b)
	}
	for _, name := range keys(was) {
		if e := fresh[name]; e != nil && e.Binding.Assigned.Hash != was[name].Binding.Assigned.Hash {
			return fmt.Sprintf("%s has content of commit %s on %s, which is not what it gets afresh", key, was[name].Binding.Assigned.Commit, name)
		}
	}
	if a, b := c.simulated.conditions(key), c.fresh.conditions(key); a != b && slices.Equal(keys(was), keys(fresh)) {
		return fmt.Sprintf("the conditions of %s are %s, and afresh %s", key, a, b)
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
	ids := maps.Clone(was.objects)
	maps.Copy(ids, fresh.objects)
	for _, id := range slices.SortedFunc(maps.Keys(ids), api.ID.Compare) {
		if a, b := was.describe(id), fresh.describe(id); a != b && !c.mayDiffer(was, id) {
			return fmt.Sprintf("%s has %s %s, and afresh %s", was.name, title(id), a, b)
		}
	}
	for _, key := range was.keys() {
		at := bindingKey{key, was.name}
		if !c.simulated.saved.keeps(at) || !c.fresh.saved.keeps(at) || c.head.placements[key.Name].reportDiff {
			continue
		}
		if a, b := was.inventories[key], fresh.inventories[key]; len(a.items) > 0 && !a.same(b) {
			return fmt.Sprintf("the inventory of %s on %s is %s, and afresh %s", key, was.name, a, b)
		}
	}
	return ""
}

// mayDiffer reports whether an object belongs to a placement that is on the cluster in only one
// of the worlds, or that does not write.
func (c comparison) mayDiffer(h *host, id api.ID) bool {
	if by, ok := h.owner(id); ok && c.head.placements[by.Name].reportDiff {
		return true
	}
	for name, p := range c.head.placements {
		at := bindingKey{api.PlacementKey{Name: name}, h.name}
		if _, of := c.head.content(name, h.name)[id]; of && p.numberOfClusters >= 0 && c.simulated.saved.keeps(at) != c.fresh.saved.keeps(at) {
			return true
		}
	}
	return false
}

// describe returns the state of an object on a cluster.
func (h *host) describe(id api.ID) string {
	t := h.objects[id]
	switch {
	case t == nil:
		return "absent"
	case !t.ours:
		return fmt.Sprintf("as %q, without an owner", t.value)
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
