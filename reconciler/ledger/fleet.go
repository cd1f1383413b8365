package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Fleet identifies the fleet of this daemon on member clusters.
type Fleet struct {
	// Name is the value of the managed-by label on members. It never changes.
	Name string `json:"name"`
	// ID distinguishes fleets of the same name. It is empty until it is known whether the
	// inventories on members already have one.
	ID string `json:"id,omitempty"`
	// Source is the repository, path and reference of the content, without credentials.
	Source string `json:"source,omitempty"`
}

// An Owner is a fleet that inventories on a cluster name. All owners have the name of this
// fleet, since inventories of fleets with other names are not read.
type Owner struct {
	// ID is empty if the inventories were written by a version without IDs.
	ID     string `json:"id,omitempty"`
	Source string `json:"source,omitempty"`
	// UnknownCommit is a commit in these inventories that the repository of this fleet does not
	// have; empty if there is none, or if the ID is enough to decide.
	UnknownCommit string `json:"unknownCommit,omitempty"`
}

// NoID stands for the ID of inventories without one.
const NoID = "none"

// ShortID is the owner's ID for people: its first eight digits, or [NoID].
func (o Owner) ShortID() string {
	if o.ID == "" {
		return NoID
	}
	return o.ID[:min(len(o.ID), 8)]
}

// An Adoption makes this fleet the owner of another fleet's inventories on a cluster.
type Adoption struct {
	Cluster string    `json:"cluster"`
	ID      string    `json:"id,omitempty"` // of the other fleet; empty for inventories without one
	By      string    `json:"by,omitempty"` // the user who decided it; empty if it was automatic
	At      time.Time `json:"at"`
}

// fleetRecord is the stored record of the fleet.
type fleetRecord struct {
	Fleet
	Adopted []Adoption `json:"adopted,omitempty"`
}

// Fleet returns the name, ID and source that were saved; the zero value if nothing was.
func (l *Ledger) Fleet() Fleet { return l.fleet.Fleet }

// SetFleet sets the name, ID and source of the fleet. While the ID is empty, the ledger does
// not record reported inventories; [Ledger.ResolveID] determines the ID.
func (l *Ledger) SetFleet(f Fleet) {
	if l.fleet.Fleet != f {
		l.fleet.Fleet = f
		l.markUrgent(fleetKey)
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

func (l *Ledger) setCluster(next *Cluster) {
	next.version = l.next()
	l.putCluster(next)
	l.markUrgent(clusterKey(next.Cluster))
}

// findRivals determines which reported inventories of a cluster belong to other fleets.
// Inventories that this fleet adopts do not count, until they name this fleet.
func (l *Ledger) findRivals(c *Cluster) {
	if l.Pending() {
		return
	}
	c.Rivals = nil
	l.setAdopted(slices.DeleteFunc(slices.Clone(l.fleet.Adopted), func(a Adoption) bool {
		return a.Cluster == c.Cluster && !slices.ContainsFunc(c.Owners, func(o Owner) bool { return o.ID == a.ID })
	}))
	for _, o := range c.Owners {
		adopted := slices.ContainsFunc(l.fleet.Adopted, func(a Adoption) bool { return a.Cluster == c.Cluster && a.ID == o.ID })
		switch {
		case l.fleet.Name == "" || o.ID != "" && o.ID == l.fleet.ID || adopted:
		case l.admits(c.Cluster, o):
			l.setAdopted(append(slices.Clip(l.fleet.Adopted), Adoption{Cluster: c.Cluster, ID: o.ID, At: c.At}))
		default:
			c.Rivals = append(c.Rivals, o)
		}
	}
}

func (l *Ledger) setAdopted(all []Adoption) {
	if !slices.Equal(all, l.fleet.Adopted) {
		l.fleet.Adopted = all
		l.markUrgent(fleetKey)
	}
}

// admits reports whether this fleet automatically adopts the inventories of another owner.
func (l *Ledger) admits(cluster string, o Owner) bool {
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
		same := func(other Owner) bool { return other.ID == o.ID }
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

// Adopted returns the adoptions of other fleets' inventories on a cluster, oldest first.
func (l *Ledger) Adopted(cluster string) []Adoption {
	var on []Adoption
	for _, a := range l.fleet.Adopted {
		if a.Cluster == cluster {
			on = append(on, a)
		}
	}
	return on
}

// Refusal returns why nothing is written to a cluster, and what to do; empty if neither another
// fleet nor another member of this one holds the cluster.
func (l *Ledger) Refusal(cluster string) string {
	c := l.clusters[cluster]
	if c == nil || len(c.Rivals) == 0 {
		return l.duplicateRefusal(cluster)
	}
	id := c.Rivals[0].ShortID()
	return fmt.Sprintf("another fleet named %q holds this cluster (id %s, from %s): nothing is written there; set another fleetName, or adopt its inventories with gitfleet adopt-fleet %s --cluster %s",
		l.fleet.Name, id, cmp.Or(c.Rivals[0].Source, "a repository that it does not name"), id, cluster)
}

// Adopt makes the inventories of another fleet on a cluster this fleet's own.
func (l *Ledger) Adopt(a Adoption) {
	l.setAdopted(append(slices.Clip(l.fleet.Adopted), a))
	if cluster := l.clusters[a.Cluster]; cluster != nil {
		next := *cluster
		next.Rivals = slices.DeleteFunc(slices.Clone(cluster.Rivals), func(o Owner) bool { return o.ID == a.ID })
		l.setCluster(&next)
		if len(next.Rivals) == 0 {
			disturb(l, Subject{Cluster: a.Cluster}, a.At)
		}
	}
}
