package simulation

import (
	"math/rand/v2"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

const invariantForeign = "nothing is written to a cluster that another fleet of the same name holds until a user adopts it"

// ourFleet is the fleet of the daemon.
var ourFleet = protocol.Fleet{Name: "fleet", ID: "00000000-ours", Source: "https://git.example/fleet"}

// otherFleets are the IDs of other fleets of the same name, from another repository.
var otherFleets = []string{"11111111-theirs", "22222222-theirs"}

// changeFleets makes another fleet join or leave a cluster, or adopts it.
func (w *world) changeFleets(r *rand.Rand) {
	w.runEvent(func() {
		h := w.anyHost(r)
		for _, name := range keys(w.hosts) {
			if w.hosts[name].otherFleet != "" && r.IntN(2) == 0 {
				h = w.hosts[name]
			}
		}
		switch {
		case h == nil:
		case h.otherFleet == "":
			id := pick(r, otherFleets)
			w.logf("fleet %s comes to cluster %s", id, h.name)
			w.set(h, func() { h.otherFleet, h.otherFleetAdopted = id, false })
		case r.IntN(3) > 0 && w.saved.foreign[h.name]:
			h.otherFleetAdopted = true
			w.request("adopt", (*reconciler.Reconciler).AdoptFleet, reconciler.Order{Subject: h.otherFleet, Cluster: h.name}, func(string) {})
		default:
			w.logf("fleet %s leaves cluster %s", h.otherFleet, h.name)
			w.set(h, func() { h.otherFleet = "" })
		}
	})
}

// SetRecord implements reconciler.Member. Simulated members have no drift.
func (a *agent) SetRecord(protocol.MemberRecord) {}

// Resolve implements reconciler.Member. Simulated members hold no drift.
func (a *agent) SetDriftDecisions(protocol.DriftDecisions) {}

// SetMembership implements reconciler.Member.
func (a *agent) SetMembership(now protocol.Membership) {
	a.d.waitWhileStopped()
	a.d.w.mu.Lock()
	defer a.d.w.mu.Unlock()
	if a.d.dead {
		return
	}
	was := a.foreign()
	a.d.w.mutant.joins(&now)
	a.membership = now
	if was && !a.foreign() {
		a.after(a.halfPass, func() {
			if a.connected && a.healthy {
				a.reportCluster()
				a.startPass()
			}
		})
	}
}

// foreign reports whether another fleet or another member holds the host.
func (a *agent) foreign() bool {
	return a.claimedByFleet() || a.claimedByMember()
}

// claimedByFleet reports whether another fleet holds the host.
func (a *agent) claimedByFleet() bool {
	return a.otherFleet != "" && !slices.ContainsFunc(a.membership.Adopted, func(x protocol.Adoption) bool { return x.ID == a.otherFleet })
}

// reportCluster reports everything that can be observed on a host.
func (a *agent) reportCluster() {
	a.reportedFleet, a.reportedClaim = a.otherFleet, a.claim
	o := protocol.ClusterSeen{
		Cluster: a.name, At: a.d.w.now(), Healthy: true, UID: a.uid(), Claimant: a.claim,
		Properties: map[string]string{}, Namespaces: []string{}, Inventories: []protocol.InventorySeen{}, Owners: []protocol.Owner{},
	}
	for _, key := range a.keys() {
		o.Inventories = append(o.Inventories, protocol.InventorySeen{Placement: key, Revision: a.inventories[key].revision, Abandon: a.inventories[key].abandon})
	}
	if len(o.Inventories) > 0 {
		o.Owners = append(o.Owners, protocol.Owner{ID: ourFleet.ID, Source: ourFleet.Source})
	}
	if a.otherFleet != "" {
		o.Owners = append(o.Owners, protocol.Owner{ID: a.otherFleet, Source: "https://git.example/other"})
	}
	o.Restored = a.restored()
	a.d.w.mutant.notices(&o)
	a.send(o)
}

// leaveForeign lets a cluster leave the fleet while another fleet holds it.
func (a *agent) leaveForeign() {
	if a.leaving != nil {
		a.after(a.halfPass, a.finishLeaving)
	}
}

// takeOverFleet writes the fleet's ID into the inventories of an adopted fleet.
func (a *agent) takeOverFleet() {
	if a.otherFleet != "" {
		a.d.w.logf("cluster %s is ours, and was of fleet %s", a.name, a.otherFleet)
		a.otherFleet = ""
		a.reportCluster()
	}
}

// recordFleets records the fleets that a cluster reports.
func (m *observations) recordFleets(o protocol.ClusterSeen) {
	if o.Owners == nil {
		return
	}
	rival := ""
	for _, owner := range o.Owners {
		if owner.ID != ourFleet.ID {
			rival = owner.ID
		}
	}
	if m.adopted[o.Cluster] != rival {
		delete(m.adopted, o.Cluster)
	}
	m.foreign[o.Cluster] = rival != "" && m.adopted[o.Cluster] != rival
}

// withoutCluster returns a model without what was found on a cluster, before the first
// decision: the objects there are recorded once it is known which fleet holds the cluster.
func (b *model) withoutCluster(cluster string) *model {
	out := b.copy()
	for key, page := range out.entries {
		delete(page, cluster)
		if len(page) == 0 {
			delete(out.entries, key)
			delete(out.found, key)
		}
	}
	return out
}

// recordAdoptions records the adoptions in the ledger.
func (w *world) recordAdoptions(l *ledger.Ledger) {
	m := w.savedModelObservations()
	for name, foreign := range m.foreign {
		h := w.hostOf(name)
		if foreign && h != nil && h.otherFleetAdopted && slices.ContainsFunc(l.Adopted(name), func(x protocol.Adoption) bool { return x.ID == h.otherFleet }) {
			m.foreign[name], m.adopted[name] = false, h.otherFleet
		}
	}
}

// checkForeign checks every write to a host.
func (w *world) checkForeign(a *agent, key api.PlacementKey, id api.ID) {
	if a.otherFleet != "" && !a.otherFleetAdopted {
		w.violate(invariantForeign, "%s writes %s for %s, and fleet %s holds it", a.name, title(id), key, a.otherFleet)
	}
}

// reachable reports whether a cluster was healthy in its last report, and is not held by another
// fleet.
func (b *model) reachable(cluster string) bool { return b.healthy[cluster] && !b.foreign[cluster] }

// removeOtherFleet makes another fleet leave.
func (h *host) removeOtherFleet() { h.otherFleet, h.otherFleetAdopted = "", false }
