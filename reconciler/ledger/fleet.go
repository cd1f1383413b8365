package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Fleet returns the name, ID and source that were saved; the zero value if nothing was.
func (l *Ledger) Fleet() protocol.Fleet { return l.fleet.Fleet }

// SetFleet sets the name, ID and source of the fleet. While the ID is empty, the ledger does
// not record reported inventories; [Ledger.ResolveID] determines the ID.
func (l *Ledger) SetFleet(f protocol.Fleet) {
	if l.fleet.Fleet != f {
		l.fleet.Fleet = f
		l.markUrgent(fleetKey)
		l.recent.changed()
	}
}

// Pending reports whether the ID of the fleet is not known yet.
func (l *Ledger) Pending() bool { return l.fleet.Name != "" && l.fleet.ID == "" }

// ResolveID sets the ID of the fleet if it is not known yet. If the inventories of the same
// source all have one ID, it is that ID, and otherwise fresh. The reported inventories are
// recorded afterwards.
func (l *Ledger) ResolveID(fresh string) {
	if !l.Pending() {
		return
	}
	ids := map[string]bool{}
	for _, c := range l.clusters {
		for _, o := range c.Owners {
			if o.ID != "" && o.Source == l.fleet.Source {
				ids[o.ID] = true
			}
		}
	}
	f := l.fleet.Fleet
	f.ID = fresh
	if len(ids) == 1 {
		f.ID = slices.Collect(maps.Keys(ids))[0]
	}
	l.SetFleet(f)
	for _, name := range l.Clusters() {
		next := *l.clusters[name]
		l.findRivals(&next)
		l.rebuild(&next)
		l.setCluster(&next)
	}
}

// findRivals determines which reported inventories of a cluster belong to other fleets.
// Inventories that this fleet adopts do not count, until they name this fleet.
func (l *Ledger) findRivals(c *Cluster) {
	if l.Pending() {
		return
	}
	c.Rivals = nil
	l.setAdopted(slices.DeleteFunc(slices.Clone(l.fleet.Adopted), func(a protocol.Adoption) bool {
		return a.Cluster == c.Cluster && !slices.ContainsFunc(c.Owners, func(o protocol.Owner) bool { return o.ID == a.ID })
	}))
	for _, o := range c.Owners {
		adopted := slices.ContainsFunc(l.fleet.Adopted, func(a protocol.Adoption) bool { return a.Cluster == c.Cluster && a.ID == o.ID })
		switch {
		case l.fleet.Name == "" || o.ID != "" && o.ID == l.fleet.ID || adopted:
		case l.admits(c.Cluster, o):
			l.setAdopted(append(slices.Clip(l.fleet.Adopted), protocol.Adoption{Cluster: c.Cluster, ID: o.ID, At: c.At}))
		default:
			c.Rivals = append(c.Rivals, o)
		}
	}
}

func (l *Ledger) setAdopted(all []protocol.Adoption) {
	if !slices.Equal(all, l.fleet.Adopted) {
		l.fleet.Adopted = all
		l.markUrgent(fleetKey)
	}
}

// admits reports whether this fleet automatically adopts the inventories of another owner.
func (l *Ledger) admits(cluster string, o protocol.Owner) bool {
	worked := false // an agent of this fleet has reported on a placement on the cluster
	for _, p := range l.placements {
		e := p.entries.of(cluster)
		worked = worked || e != nil && e.Seen != nil
	}
	if o.ID == "" {
		// The inventories are from a version without IDs: they are adopted if the ledger knows
		// the cluster or the repository has the commits.
		return o.UnknownCommit == "" || worked
	}
	// The ledger was lost while the cluster did not answer. If this daemon has worked on the
	// cluster or read its inventories before, they belong to another daemon, as do those of
	// another ID if other clusters have a third one for the same source.
	if worked || o.Source != l.fleet.Source {
		return false
	}
	for name, c := range l.clusters {
		same := func(other protocol.Owner) bool { return other.ID == o.ID }
		if name == cluster && c.Owners != nil && (!slices.ContainsFunc(c.Owners, same) || slices.ContainsFunc(c.Rivals, same)) {
			return false
		}
		for _, other := range c.Owners {
			if other.Source == o.Source && other.ID != "" && other.ID != o.ID && other.ID != l.fleet.ID {
				return false
			}
		}
	}
	return true
}

// Membership returns the membership of a cluster.
func (l *Ledger) Membership(cluster string) protocol.Membership {
	m := protocol.Membership{Fleet: l.Fleet(), Adopted: l.Adopted(cluster), SameAs: l.SameAs(cluster)}
	if c := l.clusters[cluster]; c != nil && m.SameAs == "" {
		m.UID = c.UID
		if c.underOtherName() {
			m.Formerly = c.Claimant
		}
	}
	return m
}

// Adopted returns the adoptions of other fleets' inventories on a cluster, oldest first.
func (l *Ledger) Adopted(cluster string) []protocol.Adoption {
	var on []protocol.Adoption
	for _, a := range l.fleet.Adopted {
		if a.Cluster == cluster {
			on = append(on, a)
		}
	}
	return on
}

// Refusal returns why nothing is written to a cluster, and what to do; empty if neither another
// fleet nor another member of this one has claimed the cluster.
func (l *Ledger) Refusal(cluster string) string {
	c := l.clusters[cluster]
	if c == nil || len(c.Rivals) == 0 {
		return l.duplicateRefusal(cluster)
	}
	id := c.Rivals[0].ShortID()
	return fmt.Sprintf("another fleet named %q has claimed this cluster (id %s, from %s): nothing is written there; set another fleetName, or adopt its inventories with gitfleet adopt-fleet %s --cluster %s",
		l.fleet.Name, id, cmp.Or(c.Rivals[0].Source, "a repository that it does not name"), id, cluster)
}

// Adopt makes the inventories of another fleet on a cluster this fleet's own.
func (l *Ledger) Adopt(a protocol.Adoption) {
	l.setAdopted(append(slices.Clip(l.fleet.Adopted), a))
	if cluster := l.clusters[a.Cluster]; cluster != nil {
		next := *cluster
		next.Rivals = slices.DeleteFunc(slices.Clone(cluster.Rivals), func(o protocol.Owner) bool { return o.ID == a.ID })
		l.setCluster(&next)
		if len(next.Rivals) == 0 {
			disturb(l, Subject{Cluster: a.Cluster}, a.At)
		}
	}
}

// rebuild adds bindings from a cluster's inventories that the ledger does not have. They have
// no policy, so that they are scheduled again; the scheduler prefers their clusters. Whether a
// cluster was available before its last update is not known; it is assumed, so that a failed
// update still stops the rollout, and that a moment of unavailability is taken for one. rebuild
// waits until the ID of the fleet is known, and while another member has claimed the cluster.
func (l *Ledger) rebuild(c *Cluster) (changed bool) {
	if l.Pending() || l.SameAs(c.Cluster) != "" {
		return false
	}
	inventories := c.Inventories
	if c.Inventories = nil; len(c.Rivals) > 0 {
		return false
	}
	for _, inv := range inventories {
		if l.placements[inv.Placement] == nil {
			l.SetPlacement(inv.Placement, Placement{Index: -1, Abandon: inv.Abandon, Rebuilt: true})
		}
		if l.placements[inv.Placement].entries.of(c.Cluster) == nil {
			l.Bind(inv.Placement, placement.Binding{Cluster: c.Cluster, Assigned: inv.Revision, AssignedAt: c.At, Risked: true, WasAvailable: true, Inherited: c.underOtherName()})
			changed = true
		}
	}
	return changed
}
