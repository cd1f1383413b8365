package simulation

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// An agent applies works to a host for one daemon, as a real one does: it writes the inventory,
// applies, prunes, writes the inventory again and reports. It has no goroutine of its own:
// everything that it does is an event.
type agent struct {
	*host
	name   string // of the member, which the host may have others of
	d      *daemon
	report func(protocol.Observation)

	works    []*work.Work
	hasWorks bool
	// basedOn is the model at the time the loop sent the works.
	basedOn *model
	// connected says that the host has responded once, healthy that it responded to the last
	// probe.
	connected, healthy bool
	// pass are the works of the current pass, done those of the last one; passAgain says that
	// another pass follows.
	pass      []*work.Work
	done      []*work.Work
	passModel *model
	// passStart is the start of the current pass.
	passStart time.Time
	// wrote are the placements of which an object was written since their last report.
	wrote map[api.PlacementKey]bool
	// lastApplied are the manifests that it has applied or found applied.
	lastApplied map[api.ID]*work.Manifest
	// waves are the deletions of the current pass.
	waves *deletion.Waves
	// announced says that the inventories have the objects of the pass.
	announced bool
	passAgain bool
	leaving   chan struct{} // not nil once the cluster is leaving the fleet
	leftFleet bool          // it has left
	ended     bool
	// membership is the one that the loop has sent, reportedFleet and reportedClaim are the other fleet and
	// the claim last reported.
	membership                   protocol.Membership
	sawRestores                  int // see host.restores
	reportedFleet, reportedClaim string
}

// Set implements reconciler.Member.
func (a *agent) Set(works []*work.Work) { a.d.w.setWorks(a, works) }

// Leave implements reconciler.Member.
func (a *agent) Leave() <-chan struct{} { return a.d.w.leaveFleet(a) }

// Check implements reconciler.Member.
func (a *agent) Check() {
	a.d.waitWhileStopped()
	a.d.w.mu.Lock()
	defer a.d.w.mu.Unlock()
	if !a.d.countWrite() {
		a.startPass()
	}
}

// Run waits until the agent ends. Everything it does in between is an event.
func (a *agent) Run(ctx context.Context) {
	<-ctx.Done()
	a.d.w.mu.Lock()
	defer a.d.w.mu.Unlock()
	if a.ended {
		return
	}
	a.d.w.ending = append(a.d.w.ending, a)
}

// after schedules an event, unless the agent has ended by then.
func (a *agent) after(d time.Duration, do func()) {
	a.d.w.after(d, func() {
		if !a.ended && !a.d.dead {
			do()
		}
	})
}

func (a *agent) send(o protocol.Observation) { a.d.w.outbox = append(a.d.w.outbox, report{a, o}) }

// connect tries to reach the host for the first time.
func (a *agent) connect() {
	if a.down {
		a.send(protocol.ClusterSeen{Cluster: a.name, At: a.d.w.now(), Error: "no answer"})
		a.after(5*time.Second, a.connect)
		return
	}
	a.connected, a.healthy, a.sawRestores = true, true, a.restores
	a.blip("gitfleet has started")
	a.reportCluster()
	a.startPass()
	a.after(probeInterval, a.probe)
}

// probeInterval is the interval between probes of a host that does not change.
const probeInterval = 4 * time.Minute

func (a *agent) probe() {
	a.observe()
	if a.claimedByMember() {
		a.after(foreignInterval, a.probe)
		return
	}
	a.after(probeInterval, a.probe)
}

// observe probes the host.
func (a *agent) observe() {
	switch {
	case !a.connected:
	case a.down:
		a.healthy = false
		a.send(protocol.ClusterSeen{Cluster: a.name, At: a.d.w.now(), Error: "no answer", UID: a.uid()})
	case a.sawRestores != a.restores && !a.foreign():
		a.healthy = true
		a.beginAnew()
	case !a.healthy, a.reportedFleet != a.otherFleet, a.reportedClaim != a.claim:
		a.healthy = true
		a.blip("it answers again")
		a.reportCluster()
		a.startPass()
	default:
		a.send(protocol.ClusterSeen{Cluster: a.name, At: a.d.w.now(), Healthy: true, Properties: map[string]string{}})
	}
}

// startPass starts a pass, or has one follow the current one.
func (a *agent) startPass() {
	switch {
	case !a.connected || !a.healthy || !a.hasWorks && a.leaving == nil:
	case a.foreign():
		a.leaveForeign()
	case a.pass != nil:
		a.passAgain = true
	default:
		a.pass, a.passModel, a.passStart = slices.Clone(a.works), a.basedOn, time.Now()
		if a.pass == nil {
			a.pass = []*work.Work{}
		}
		a.announced = false
		a.after(a.halfPass, a.announce)
	}
}

// announce adds the objects that will be applied to the inventories.
func (a *agent) announce() {
	if a.down || a.foreign() {
		a.abortPass()
		return
	}
	a.renameClaim()
	a.listUnlisted()
	for _, w := range a.pass {
		if a.leaving != nil || !writes(w) || w.Suspended != "" {
			continue
		}
		for _, m := range w.Manifests {
			if w.SuspendedReason(m.ID) == "" {
				a.writeClaim()
				a.addToInventory(w, m.ID)
			}
		}
		if inv := a.inventories[w.Placement]; inv != nil {
			inv.abandon = w.Abandon
		}
	}
	a.announced = true
	a.after(a.halfPass, a.finish)
}

// abortPass ends a pass that fails because of the host. It continues when the host responds
// again.
func (a *agent) abortPass() {
	a.pass, a.passModel, a.passAgain = nil, nil, false
	if a.healthy {
		a.observe()
	}
}

func (a *agent) finish() {
	switch {
	case a.hung && !a.down:
		a.after(20*time.Second, a.finish)
		return
	case a.foreign():
		a.abortPass()
		return
	case a.down:
		a.runSome(a.steps())
		a.abortPass()
		return
	}
	a.endDeletions()
	a.changeIgnoredFields()
	a.changeParts()
	for _, do := range a.steps() {
		do()
	}
	if a.leaving != nil {
		a.finishLeaving()
		return
	}
	works := a.pass
	a.pass, a.passModel = nil, nil
	a.takeOverFleet()
	a.reportWorks(works)
	if a.passAgain {
		a.passAgain = false
		a.startPass()
	}
}

// runSome executes the first of the given writes; the others are not executed.
func (a *agent) runSome(steps []func()) {
	for _, do := range steps[:a.random.IntN(len(steps)+1)] {
		do()
	}
}

// finishLeaving ends the departure of a cluster from the fleet.
func (a *agent) finishLeaving() {
	a.pass, a.passModel = nil, nil
	if !a.leftFleet {
		a.leftFleet = true
		a.d.w.logf("cluster %s has given everything up", a.name)
		a.d.w.closing = append(a.d.w.closing, a.leaving)
	}
}

// steps returns the writes of a pass, in order.
func (a *agent) steps() []func() {
	if a.leaving != nil {
		return a.leaveWrites()
	}
	wanted := map[api.ID]api.PlacementKey{}
	sent := map[api.PlacementKey]*work.Work{}
	var apply, settle []func()
	for _, w := range a.pass {
		sent[w.Placement] = w
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
	a.waves = a.newWaves(wanted, sent)
	for _, w := range a.pass {
		settle = append(settle, func() { a.writeInventory(w) })
	}
	return slices.Concat(apply, a.pruneWrites(wanted, sent), settle)
}

// pruneWrites returns the writes for objects that placements no longer have, in the order of deletion.
func (a *agent) pruneWrites(wanted map[api.ID]api.PlacementKey, sent map[api.PlacementKey]*work.Work) (prune []func()) {
	type stale struct {
		key api.PlacementKey
		id  api.ID
	}
	var stales []stale
	for _, key := range a.keys() {
		if !prunes(sent, key) {
			continue
		}
		for id := range a.inventories[key].items {
			stales = append(stales, stale{key, id})
		}
	}
	slices.SortFunc(stales, func(a, b stale) int { return cmp.Or(work.DeleteOrder(a.id, b.id), byKey(a.key, b.key)) })
	for _, s := range stales {
		w := workIn(sent, s.key)
		by, isWanted := wanted[s.id]
		switch taken := isWanted && writes(workIn(sent, by)); {
		case isWanted && by == s.key || w.SuspendedReason(s.id) != "":
		case taken:
			prune = append(prune, func() { a.prune(w, s.id, true) })
		default:
			prune = append(prune, func() { a.handOver(w, s.id, sent) })
		}
	}
	return prune
}

// prunes reports whether objects are removed that a placement no longer has.
func prunes(sent map[api.PlacementKey]*work.Work, key api.PlacementKey) bool {
	w, isSent := sent[key]
	return isSent && !w.Keep && w.Strategy.Type != api.ReportDiff
}

// workIn returns the work of a placement; a zero one if none was sent.
func workIn(sent map[api.PlacementKey]*work.Work, key api.PlacementKey) *work.Work {
	return cmp.Or(sent[key], &work.Work{})
}

// writes reports whether the manifests of a work are applied.
func writes(w *work.Work) bool { return !w.Remove && w.Strategy.Type != api.ReportDiff }

func (a *agent) apply(key api.PlacementKey, m *work.Manifest) {
	value := valueOf(m.Object.Content)
	old := a.objects[m.ID]
	switch {
	case old == nil:
	case !old.goneAt.IsZero():
		return // it is created again once it is gone
	case old.ours && old.hash == m.Hash && old.by == key && !old.drifted(m):
		a.lastApplied[m.ID] = m
		return
	}
	a.wrote[key] = true
	if a.failingWrites[m.ID] || kindOf(value) == refused {
		return
	}
	next := &liveObject{value: value, hash: m.Hash, by: key, ours: true, since: time.Now()}
	if old != nil && old.hash == m.Hash {
		next.since, next.unavailableUntil = old.since, time.Now().Add(a.blipTime())
	}
	a.d.w.checkWrite(a, key, m.ID)
	if _, managed := managedKinds[m.ID.Namespace]; managed {
		if !a.applyManaged(m, old, next) {
			return
		}
		next.value = valueOf(next.stored)
	}
	a.objects[m.ID] = next
	a.d.w.logf("cluster %s applies %s %s for %s", a.name, title(m.ID), value, key)
}

func valueOf(u *unstructured.Unstructured) string {
	if k, managed := managedKinds[u.GetNamespace()]; managed {
		return k.value(u)
	}
	value, _, _ := unstructured.NestedString(u.Object, "data", "value")
	return value
}

func (a *agent) prune(w *work.Work, id api.ID, handedOver bool) {
	inv := a.inventories[w.Placement]
	switch t := a.objects[id]; {
	case handedOver:
		if by, ok := a.handedTo(id); !ok || !a.owns(by, id) {
			return
		}
	case t == nil || !t.ours:
	case inv.abandon && w.Remove:
		a.d.w.checkWrite(a, w.Placement, id)
		t.release()
		a.d.w.logf("cluster %s gives up %s of %s", a.name, title(id), w.Placement)
	case !t.goneAt.IsZero() || w.DeletionBlocked(id, a.deletedNamespaces(w)) != "" || a.waits(w, id):
		return
	default:
		a.d.w.checkWrite(a, w.Placement, id)
		a.d.w.checkDeletion(a, w, id)
		if !a.deleteObject(w.Placement, id) {
			return
		}
	}
	delete(inv.items, id)
}

// deletedNamespaces returns the namespaces that a work deletes.
func (a *agent) deletedNamespaces(w *work.Work) []api.ID {
	var out []api.ID
	for id := range a.inventories[w.Placement].items {
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
	return slices.ContainsFunc(works, func(w *work.Work) bool {
		return slices.ContainsFunc(slices.Concat(w.Manifests, w.Awaited), func(m *work.Manifest) bool { return m.ID == id })
	})
}

// handOver gives an object to the placement that awaits it, if there is one.
func (a *agent) handOver(w *work.Work, id api.ID, sent map[api.PlacementKey]*work.Work) {
	newOwner, found := a.newOwner(id, w.Placement, sent)
	switch {
	case !found:
		a.prune(w, id, false)
	case newOwner != w.Placement && workIn(sent, newOwner).Suspended == "":
		a.addToInventory(&work.Work{Placement: newOwner}, id)
		delete(a.inventories[w.Placement].items, id)
		a.d.w.logf("cluster %s passes %s from %s on to %s", a.name, title(id), w.Placement, newOwner)
	}
}

// newOwner returns the placement that an object is handed over to: the first of those that await
// it, preferably one that has it already; or one that has it too and keeps what it has.
func (a *agent) newOwner(id api.ID, from api.PlacementKey, sent map[api.PlacementKey]*work.Work) (newOwner api.PlacementKey, found bool) {
	for _, w := range a.pass {
		if slices.ContainsFunc(w.Awaited, func(m *work.Manifest) bool { return m.ID == id }) &&
			(!found || a.owns(w.Placement, id) && !a.owns(newOwner, id)) {
			newOwner, found = w.Placement, true
		}
	}
	for _, key := range a.keys() {
		if w, isSent := sent[key]; !found && key != from && a.owns(key, id) && (!isSent || w.Keep) {
			newOwner, found = key, true
		}
	}
	return newOwner, found
}

// handedTo returns the placement that an object is handed over to.
func (a *agent) handedTo(id api.ID) (api.PlacementKey, bool) {
	for _, w := range a.pass {
		if slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { return m.ID == id }) && a.owns(w.Placement, id) {
			return w.Placement, true
		}
	}
	return api.PlacementKey{}, false
}

// writeInventory updates the inventory of a placement after a pass.
func (a *agent) writeInventory(w *work.Work) {
	inv := a.inventories[w.Placement]
	switch {
	case inv == nil || w.Suspended != "":
	case w.Remove && len(inv.items) == 0:
		a.deleteInventory(w.Placement)
	default:
		inv.abandon = w.Abandon
		if a.complete(w) {
			inv.revision = w.Revision
		}
	}
}

func (a *agent) complete(w *work.Work) bool {
	return !w.Keep && !w.Remove && !slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { return !a.applied(w, m) })
}

func (a *agent) applied(w *work.Work, m *work.Manifest) bool {
	t := a.objects[m.ID]
	return !writes(w) || t != nil && t.ours && t.hash == m.Hash && t.by == w.Placement && t.goneAt.IsZero()
}

// leaveWrites returns the writes for a cluster that leaves the fleet.
func (a *agent) leaveWrites() []func() {
	var steps []func()
	for _, key := range a.keys() {
		for _, id := range slices.SortedFunc(maps.Keys(a.inventories[key].items), api.ID.Compare) {
			if t := a.objects[id]; t != nil {
				steps = append(steps, func() { a.d.w.checkHolder(a, title(id)); t.release() })
			}
		}
		steps = append(steps, func() { a.deleteInventory(key) })
	}
	return steps
}
