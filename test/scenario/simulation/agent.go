package simulation

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// An agent applies works to a host for one daemon, as a real one does: it writes the inventory,
// applies, removes, writes the inventory again and reports. It has no goroutine of its own:
// everything that it does is an event.
type agent struct {
	*host
	d      *daemon
	report func(ledger.Observation)

	works []work.Work
	asked bool
	// basis is what the loop knew when it sent the works.
	basis *books
	// connected says that the host has responded once, healthy that it responded to the last
	// probe.
	connected, healthy bool
	// pass are the works of the current pass, done those of the last one; again says that
	// another pass follows.
	pass    []work.Work
	done    []work.Work
	passing *books
	// began is the start of the current pass.
	began time.Time
	// announced says that the inventories have the objects of the pass.
	announced bool
	again     bool
	left      chan struct{} // not nil: everything is to be given up
	gone      bool          // it was
	ended     bool
	// adopted are the adoptions of other fleets that the loop has sent, shown is the other fleet
	// last seen on the host.
	adopted []ledger.Adoption
	shown   string
}

// Set is called by the loop.
func (a *agent) Set(works []work.Work) { a.d.w.told(a, works) }

// Leave is called by the loop.
func (a *agent) Leave() <-chan struct{} { return a.d.w.parted(a) }

// Check is called by the loop when a person asks for it.
func (a *agent) Check() {
	a.d.hold()
	a.d.w.mu.Lock()
	defer a.d.w.mu.Unlock()
	if !a.d.burns() {
		a.work()
	}
}

// Run waits until the agent ends. Everything it does in between is an event.
func (a *agent) Run(ctx context.Context) error {
	<-ctx.Done()
	a.d.w.mu.Lock()
	defer a.d.w.mu.Unlock()
	if a.ended {
		return nil
	}
	a.d.w.ending = append(a.d.w.ending, a)
	return nil
}

// after schedules an event, unless the agent has ended by then.
func (a *agent) after(d time.Duration, do func()) {
	a.d.w.after(d, func() {
		if !a.ended && !a.d.dead {
			do()
		}
	})
}

func (a *agent) say(o ledger.Observation) { a.d.w.outbox = append(a.d.w.outbox, said{a, o}) }

// connect tries to reach the host for the first time.
func (a *agent) connect() {
	if a.down {
		a.say(ledger.ClusterSeen{Cluster: a.name, At: a.d.w.now(), Error: "no answer"})
		a.after(5*time.Second, a.connect)
		return
	}
	a.connected, a.healthy = true, true
	a.introduce()
	a.work()
	a.after(probing, a.probe)
}

// probing is the interval between probes of a host that does not change.
const probing = 4 * time.Minute

func (a *agent) probe() {
	a.look()
	a.after(probing, a.probe)
}

// look probes the host.
func (a *agent) look() {
	switch {
	case !a.connected:
	case a.down:
		a.healthy = false
		a.say(ledger.ClusterSeen{Cluster: a.name, At: a.d.w.now(), Error: "no answer", UID: "uid-" + a.name})
	case !a.healthy, a.shown != a.rival:
		a.healthy = true
		a.introduce()
		a.work()
	default:
		a.say(ledger.ClusterSeen{Cluster: a.name, At: a.d.w.now(), Healthy: true, Properties: map[string]string{}})
	}
}

// work begins a pass, or has one follow the current one.
func (a *agent) work() {
	switch {
	case !a.connected || !a.healthy || !a.asked && a.left == nil:
	case a.foreign():
		a.standBack()
	case a.pass != nil:
		a.again = true
	default:
		a.pass, a.passing, a.began = slices.Clone(a.works), a.basis, time.Now()
		if a.pass == nil {
			a.pass = []work.Work{}
		}
		a.announced = false
		a.after(a.pace, a.announce)
	}
}

// announce writes into the inventories what is about to be applied.
func (a *agent) announce() {
	if a.down || a.foreign() {
		a.giveUp()
		return
	}
	for _, w := range a.pass {
		if a.left != nil || !writes(w) || w.Suspended != "" {
			continue
		}
		for _, m := range w.Manifests {
			if w.SuspendedReason(m.ID) == "" {
				a.grow(w, m.ID)
			}
		}
		if inv := a.holds[w.Placement]; inv != nil {
			inv.abandon = w.Abandon
		}
	}
	a.announced = true
	a.after(a.pace, a.finish)
}

// giveUp ends a pass that fails because of the host. It continues when the host responds again.
func (a *agent) giveUp() {
	a.pass, a.passing, a.again = nil, nil, false
	if a.healthy {
		a.look()
	}
}

func (a *agent) finish() {
	switch {
	case a.hung && !a.down:
		a.after(20*time.Second, a.finish)
		return
	case a.foreign():
		a.giveUp()
		return
	case a.down:
		a.some(a.steps())
		a.giveUp()
		return
	}
	for _, do := range a.steps() {
		do()
	}
	if a.left != nil {
		a.depart()
		return
	}
	works := a.pass
	a.pass, a.passing = nil, nil
	a.inherit()
	a.tell(works)
	if a.again {
		a.again = false
		a.work()
	}
}

// some performs the first of the given writes; the others are cut off.
func (a *agent) some(steps []func()) {
	for _, do := range steps[:a.chance.IntN(len(steps)+1)] {
		do()
	}
}

// depart removes everything when a cluster leaves the fleet.
func (a *agent) depart() {
	a.pass, a.passing = nil, nil
	if !a.gone {
		a.gone = true
		a.d.w.story("cluster %s has given everything up", a.name)
		a.d.w.closing = append(a.d.w.closing, a.left)
	}
}

// steps returns the writes of a pass, in order.
func (a *agent) steps() []func() {
	if a.left != nil {
		return a.leaveWrites()
	}
	wanted := map[api.ID]api.PlacementKey{}
	told := map[api.PlacementKey]work.Work{}
	var apply, prune, settle []func()
	for _, w := range a.pass {
		told[w.Placement] = w
		for _, m := range w.Manifests {
			if other, taken := wanted[m.ID]; taken && !(a.owns(w.Placement, m.ID) && !a.owns(other, m.ID)) {
				continue
			}
			wanted[m.ID] = w.Placement
		}
	}
	for _, w := range a.pass {
		for _, m := range w.Manifests {
			if writes(w) && wanted[m.ID] == w.Placement && w.SuspendedReason(m.ID) == "" {
				apply = append(apply, func() { a.apply(w.Placement, m) })
			}
		}
	}
	for _, key := range a.keys() {
		w, isTold := told[key]
		if !isTold || w.Keep || w.Strategy.Type == api.ReportDiff {
			continue
		}
		for _, id := range slices.SortedFunc(maps.Keys(a.holds[key].items), api.ID.Compare) {
			by, isWanted := wanted[id]
			switch taken := isWanted && writes(told[by]); {
			case isWanted && by == key || w.SuspendedReason(id) != "":
			case taken:
				prune = append(prune, func() { a.prune(w, id, true) })
			default:
				prune = append(prune, func() { a.passOn(w, id, told) })
			}
		}
	}
	for _, w := range a.pass {
		settle = append(settle, func() { a.settle(w) })
	}
	return slices.Concat(apply, prune, settle)
}

// writes reports whether the manifests of a work are applied.
func writes(w work.Work) bool { return !w.Remove && w.Strategy.Type != api.ReportDiff }

func (a *agent) apply(key api.PlacementKey, m *work.Manifest) {
	value := valueOf(m.Object.Object)
	if a.sick[m.ID] || kindOf(value) == refused {
		return
	}
	old := a.things[m.ID]
	if old != nil && old.ours && old.hash == m.Hash && old.by == key {
		return
	}
	next := &liveObject{value: value, hash: m.Hash, by: key, ours: true, since: time.Now()}
	if old != nil && old.hash == m.Hash {
		next.since = old.since
	}
	a.d.w.writes(a, key, m.ID)
	a.things[m.ID] = next
	a.d.w.story("cluster %s applies %s %s for %s", a.name, title(m.ID), value, key)
}

func valueOf(u *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(u.Object, "data", "value")
	return value
}

func (a *agent) prune(w work.Work, id api.ID, handedOver bool) {
	inv := a.holds[w.Placement]
	switch t := a.things[id]; {
	case handedOver:
		if by, ok := a.wants(id); !ok || !a.owns(by, id) {
			return
		}
	case t == nil || !t.ours:
	case inv.abandon && w.Remove:
		a.d.w.writes(a, w.Placement, id)
		t.ours = false
		a.d.w.story("cluster %s gives up %s of %s", a.name, title(id), w.Placement)
	case w.Held(id, a.goes(w)) != "":
		return
	default:
		a.d.w.writes(a, w.Placement, id)
		a.d.w.deletes(a, w, id)
		delete(a.things, id)
		a.d.w.story("cluster %s deletes %s of %s", a.name, title(id), w.Placement)
	}
	delete(inv.items, id)
}

// goes returns the objects that a work gives up.
func (a *agent) goes(w work.Work) []api.ID {
	var out []api.ID
	for id := range a.holds[w.Placement].items {
		if id.Kind == "Namespace" && !a.wantedByAny(id) {
			out = append(out, id)
		}
	}
	return out
}

// wantedByAny reports whether any placement has or awaits an object.
func (a *agent) wantedByAny(id api.ID) bool {
	works := a.pass
	if works == nil {
		works = a.done
	}
	return slices.ContainsFunc(works, func(w work.Work) bool {
		return slices.ContainsFunc(slices.Concat(w.Manifests, w.Awaited), func(m *work.Manifest) bool { return m.ID == id })
	})
}

// passOn hands an object over to the placement that awaits it, if there is one.
func (a *agent) passOn(w work.Work, id api.ID, told map[api.PlacementKey]work.Work) {
	newOwner, found := a.newOwner(id, w.Placement, told)
	switch {
	case !found:
		a.prune(w, id, false)
	case newOwner != w.Placement && told[newOwner].Suspended == "":
		a.grow(work.Work{Placement: newOwner}, id)
		delete(a.holds[w.Placement].items, id)
		a.d.w.story("cluster %s passes %s from %s on to %s", a.name, title(id), w.Placement, newOwner)
	}
}

// newOwner returns the placement that an object is handed over to: the first of those that await
// it, preferably one that has it already; or one that has it too and keeps what it has.
func (a *agent) newOwner(id api.ID, from api.PlacementKey, told map[api.PlacementKey]work.Work) (newOwner api.PlacementKey, found bool) {
	for _, w := range a.pass {
		if slices.ContainsFunc(w.Awaited, func(m *work.Manifest) bool { return m.ID == id }) &&
			(!found || a.owns(w.Placement, id) && !a.owns(newOwner, id)) {
			newOwner, found = w.Placement, true
		}
	}
	for _, key := range a.keys() {
		if w, isTold := told[key]; !found && key != from && a.owns(key, id) && (w.Keep || !isTold) {
			newOwner, found = key, true
		}
	}
	return newOwner, found
}

// wants returns the placement that an object is handed over to.
func (a *agent) wants(id api.ID) (api.PlacementKey, bool) {
	for _, w := range a.pass {
		if slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { return m.ID == id }) && a.owns(w.Placement, id) {
			return w.Placement, true
		}
	}
	return api.PlacementKey{}, false
}

// settle writes the inventories after a pass.
func (a *agent) settle(w work.Work) {
	inv := a.holds[w.Placement]
	switch {
	case inv == nil || w.Suspended != "":
	case w.Remove && len(inv.items) == 0:
		delete(a.holds, w.Placement)
	default:
		inv.abandon = w.Abandon
		if a.complete(w) {
			inv.revision = w.Revision
		}
	}
}

func (a *agent) complete(w work.Work) bool {
	return !w.Keep && !w.Remove && !slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { return !a.applied(w, m) })
}

func (a *agent) applied(w work.Work, m *work.Manifest) bool {
	t := a.things[m.ID]
	return !writes(w) || t != nil && t.ours && t.hash == m.Hash && t.by == w.Placement
}

// leaveWrites returns the writes for a cluster that leaves the fleet.
func (a *agent) leaveWrites() []func() {
	var steps []func()
	for _, key := range a.keys() {
		for _, id := range slices.SortedFunc(maps.Keys(a.holds[key].items), api.ID.Compare) {
			if t := a.things[id]; t != nil {
				steps = append(steps, func() { t.ours = false })
			}
		}
		steps = append(steps, func() { delete(a.holds, key) })
	}
	return steps
}

// tell reports the state of all works if it has changed.
func (a *agent) tell(works []work.Work) {
	later := false
	a.done = works
	for _, w := range works {
		if w.Unreleased() {
			continue
		}
		o, changes := a.seen(w)
		later = later || changes
		a.say(o)
	}
	if later {
		a.after(slowness, func() {
			if a.pass == nil && a.healthy && a.left == nil && !a.foreign() {
				a.tell(a.done)
			}
		})
	}
}

// braked returns the objects that a work gives up and whose deletion is held.
func (a *agent) braked(w work.Work) []ledger.Braked {
	inv := a.holds[w.Placement]
	if inv == nil || w.Keep || w.Strategy.Type == api.ReportDiff || inv.abandon && w.Remove {
		return nil
	}
	var out []ledger.Braked
	for _, id := range slices.SortedFunc(maps.Keys(inv.items), api.ID.Compare) {
		if why := w.Held(id, a.goes(w)); why != "" && !a.wantedByAny(id) {
			out = append(out, ledger.Braked{ID: id, Why: why})
		}
	}
	return out
}

func (a *agent) seen(w work.Work) (o ledger.WorkSeen, changes bool) {
	now := time.Now()
	o = ledger.WorkSeen{Cluster: a.name, Placement: w.Placement, At: a.d.w.now(), Revision: w.Revision, Done: true, Compared: w.Strategy.Type == api.ReportDiff, Total: len(w.Manifests), Braked: a.braked(w)}
	if w.Remove {
		o.Removed = a.holds[w.Placement] == nil
		return o, false
	}
	if !writes(w) {
		return o, false
	}
	for _, m := range w.Manifests {
		state := ledger.ObjectState{ID: m.ID, Version: "v1", Envelope: m.Envelope, Applied: ledger.Verdict{OK: true}}
		if !a.applied(w, m) && w.SuspendedReason(m.ID) != "" {
			state.Applied = ledger.Verdict{Reason: api.Suspended, Message: w.SuspendedReason(m.ID)}
			o.Exceptions = append(o.Exceptions, state)
			continue
		}
		if !a.applied(w, m) {
			state.Applied = ledger.Verdict{Reason: api.ManifestApplyFailed, Message: "the API server says no"}
			o.Exceptions = append(o.Exceptions, state)
			continue
		}
		switch a.things[m.ID].health(now) {
		case unknowable:
			o.Untrackable++
			continue
		case fine:
			continue
		case notYet:
			changes = true
		case never:
			state.Failure = "its pods cannot start"
		}
		if w.SuspendedReason(m.ID) != "" {
			state.Applied.Reason = api.Suspended
		}
		state.Available = ledger.Verdict{Reason: api.ManifestNotAvailableYet, Message: "not yet"}
		o.Exceptions = append(o.Exceptions, state)
	}
	slices.SortFunc(o.Exceptions, func(a, b ledger.ObjectState) int { return a.ID.Compare(b.ID) })
	return o, changes
}
