package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Fleet is what this daemon keeps on member clusters, told apart from what other
// daemons keep there.
type Fleet struct {
	// Name is the value of the managed-by label on members. It never changes.
	Name string `json:"name"`
	// ID tells fleets of the same name apart; empty as long as members may still
	// say which one they hold.
	ID string `json:"id,omitempty"`
	// Source is the repository, path and reference that the content comes from,
	// without credentials.
	Source string `json:"source,omitempty"`
}

// An Owner is a fleet that inventories on a cluster name. All of them have the name
// of this fleet: those of other names are never looked at.
type Owner struct {
	// ID is empty if the inventories were written by a version that had none.
	ID     string `json:"id,omitempty"`
	Source string `json:"source,omitempty"`
	// UnknownCommit is a commit in these inventories that the repository of this
	// fleet does not have; empty if it has all of them, or an ID says more.
	UnknownCommit string `json:"unknownCommit,omitempty"`
}

// NoID stands for the ID of inventories that name none.
const NoID = "none"

// An Adoption says that inventories of another fleet on a cluster belong to this one
// from now on.
type Adoption struct {
	Cluster string `json:"cluster"`
	// ID is that of the other fleet; empty for inventories that name none.
	ID string `json:"id,omitempty"`
	// By is who decided that; empty if it needed no decision.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// fleetRecord is what is stored about the fleet.
type fleetRecord struct {
	Fleet
	Adopted []Adoption `json:"adopted,omitempty"`
}

// Fleet returns the name, ID and source that were saved; the zero value if nothing
// was.
func (l *Ledger) Fleet() Fleet { return l.fleet.Fleet }

// SetFleet sets the name, ID and source of the fleet. While the ID is empty, the
// ledger does not record the inventories that clusters report; [Ledger.Settle]
// chooses an ID.
func (l *Ledger) SetFleet(f Fleet) {
	if l.fleet.Fleet != f {
		l.fleet.Fleet = f
		l.touch(fleetKey)
	}
}

// Pending reports whether the ID of the fleet is still open.
func (l *Ledger) Pending() bool { return l.fleet.Name != "" && l.fleet.ID == "" }

// Settle ends the time in which the ID of the fleet is open: it becomes the one that
// inventories of the same source name, if they agree, and fresh otherwise. What
// clusters hold is taken up then. It does nothing if the ID is known.
func (l *Ledger) Settle(fresh string) {
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
		l.judge(&next)
		l.rebuild(&next)
		l.replace(&next)
	}
}

// judge finds out which inventories on a cluster belong to other fleets, by what it
// has just said. Those of others that this fleet takes over stay admitted until they
// name this one.
func (l *Ledger) judge(c *Cluster) {
	if l.Pending() {
		return
	}
	c.Rivals = nil
	l.setAdopted(slices.DeleteFunc(slices.Clone(l.fleet.Adopted), func(a Adoption) bool {
		return a.Cluster == c.Cluster && !slices.ContainsFunc(c.Owners, func(o Owner) bool { return o.ID == a.ID })
	}))
	for _, o := range c.Owners {
		switch {
		case l.fleet.Name == "" || o.ID != "" && o.ID == l.fleet.ID || l.adopted(c.Cluster, o.ID):
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
		l.touch(fleetKey)
	}
}

func (l *Ledger) adopted(cluster, id string) bool {
	return slices.ContainsFunc(l.fleet.Adopted, func(a Adoption) bool { return a.Cluster == cluster && a.ID == id })
}

// replace puts another state of a cluster in the place of the one before.
func (l *Ledger) replace(next *Cluster) {
	next.version = l.next()
	l.clusters[next.Cluster] = next
	l.touch(clusterKey(next.Cluster))
}

// admits reports whether this fleet takes over the inventories of another owner
// without being asked.
func (l *Ledger) admits(cluster string, o Owner) bool {
	if o.ID == "" {
		// A version that wrote no ID: its ledger knows the cluster, or the
		// repository has the commits.
		return o.UnknownCommit == "" || l.worked(cluster)
	}
	// After the loss of a ledger while the cluster did not answer. Where this
	// daemon has worked or looked before, somebody else has come.
	return o.Source == l.fleet.Source && !l.worked(cluster) && !l.came(cluster, o) && !l.disputed(o)
}

// came reports whether an owner was not on the cluster when it was first looked at, so
// that another daemon is at work there.
func (l *Ledger) came(cluster string, o Owner) bool {
	c := l.clusters[cluster]
	if c == nil || c.Owners == nil {
		return false
	}
	same := func(other Owner) bool { return other.ID == o.ID }
	return !slices.ContainsFunc(c.Owners, same) || slices.ContainsFunc(c.Rivals, same)
}

// worked reports whether an agent of this fleet has ever reported on a placement on
// the cluster.
func (l *Ledger) worked(cluster string) bool {
	for _, p := range l.placements {
		if e := p.entries[cluster]; e != nil && e.Seen != nil {
			return true
		}
	}
	return false
}

// disputed reports whether other clusters name another ID for the same source.
func (l *Ledger) disputed(o Owner) bool {
	for _, c := range l.clusters {
		for _, other := range c.Owners {
			if other.Source == o.Source && other.ID != "" && other.ID != o.ID && other.ID != l.fleet.ID {
				return true
			}
		}
	}
	return false
}

// Adopted returns the adoptions of other fleets' inventories on a cluster, oldest
// first.
func (l *Ledger) Adopted(cluster string) []Adoption {
	var on []Adoption
	for _, a := range l.fleet.Adopted {
		if a.Cluster == cluster {
			on = append(on, a)
		}
	}
	return on
}

// Refusal says why nothing is written to a cluster and what to do about it; empty if
// no other fleet holds it.
func (l *Ledger) Refusal(cluster string) string {
	c := l.clusters[cluster]
	if c == nil || len(c.Rivals) == 0 {
		return ""
	}
	o := c.Rivals[0]
	id, from := o.ShortID(), "a repository that it does not name"
	if o.Source != "" {
		from = o.Source
	}
	return fmt.Sprintf("another fleet that is called %q too holds this cluster (id %s, from %s): nothing is written there; set another fleetName, or take over what it has with gitfleet adopt-fleet %s --cluster %s",
		l.fleet.Name, id, from, id, cluster)
}

// ShortID is what people name the owner by: the first eight digits of its ID, or
// [NoID].
func (o Owner) ShortID() string {
	if o.ID == "" {
		return NoID
	}
	return o.ID[:min(len(o.ID), 8)]
}

// Adopt makes the inventories of another fleet on a cluster this fleet's own. The
// returned function takes that back.
func (l *Ledger) Adopt(a Adoption) (undo func()) {
	adopted, cluster := l.fleet.Adopted, l.clusters[a.Cluster]
	l.setAdopted(append(slices.Clip(adopted), a))
	if cluster != nil {
		next := *cluster
		next.Rivals = slices.DeleteFunc(slices.Clone(cluster.Rivals), func(o Owner) bool { return o.ID == a.ID })
		l.replace(&next)
	}
	return func() {
		l.setAdopted(adopted)
		if cluster != nil {
			again := *cluster
			l.replace(&again)
		}
	}
}
