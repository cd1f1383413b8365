package ledger

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// One cluster may be declared under two names, for example because of a copied kubeconfig. The
// UID of its kube-system namespace tells. One of the names then holds the cluster; under the
// others nothing is written to it. The name that holds it is the one in the claim on the cluster
// and, if that does not decide, the one under which the cluster was seen first, or the first in
// order. A name that is no longer declared holds the cluster until it has left the fleet.

// members are the recorded member clusters of a ledger.
type members struct {
	clusters map[string]*Cluster // changed by putCluster and ForgetCluster
	declared map[api.ID]Declared // of the commit in force
	// names are the names of each identified cluster by its UID, the one that holds it first. The
	// slices are immutable.
	names map[string][]string
}

// Cluster returns the record of a cluster; nil if there is none.
func (m *members) Cluster(name string) *Cluster { return m.clusters[name] }

// Clusters returns the names of all clusters, sorted.
func (m *members) Clusters() []string { return slices.Sorted(m.ClusterNames()) }

// ClusterNames iterates over the names of all clusters, in no order.
func (m *members) ClusterNames() iter.Seq[string] { return maps.Keys(m.clusters) }

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

// RecordOf returns the record of a member.
func RecordOf(l *Ledger, cluster string) protocol.MemberRecord {
	r := protocol.MemberRecord{Drifts: l.Drifts(cluster), Inventories: map[api.PlacementKey]uint64{}}
	for key, p := range l.placements {
		if e := p.entries.of(cluster); e != nil && !e.Binding.Removing && e.inventory > 0 {
			r.Inventories[key] = e.inventory
		}
	}
	if c := l.clusters[cluster]; c != nil {
		r.UID, r.Version = c.UID, c.ClusterSeen.Version
	}
	return r
}

// SameAs returns the member that holds the cluster behind another name; empty if no other member
// does.
func (m *members) SameAs(cluster string) string {
	c := m.clusters[cluster]
	if c == nil {
		return ""
	}
	if holder := m.claimed(c); holder != "" {
		return holder
	}
	if names := m.names[c.UID]; len(names) > 1 && names[0] != cluster {
		return names[0]
	}
	return ""
}

// claimed returns the other member that the claim on a cluster names, if the fleet still has that
// member and its cluster may be this one.
func (m *members) claimed(c *Cluster) string {
	if !c.underOtherName() {
		return ""
	}
	other, known := m.clusters[c.Claimant]
	switch _, declared := m.declared[memberID(c.Claimant)]; {
	case !known && !declared, known && other.UID != "" && c.UID != "" && other.UID != c.UID:
		return ""
	}
	return c.Claimant
}

// underOtherName reports whether the claim on the cluster has another name of the member.
func (c *Cluster) underOtherName() bool { return c.Claimant != "" && c.Claimant != c.Cluster }

func memberID(name string) api.ID {
	return api.ID{Group: api.ClusterGroup, Kind: "MemberCluster", Name: name}
}

// Holds reports whether any placement has a binding of a cluster.
func (l *Ledger) Holds(cluster string) bool {
	for _, p := range l.placements {
		if p.entries.of(cluster) != nil {
			return true
		}
	}
	return false
}

// RenameCluster moves what is recorded of a member to another name of the same cluster: its bindings, stops and
// suspensions. Placements that do not select the cluster under its new name release what they have there.
func (l *Ledger) RenameCluster(from, to string) {
	for _, key := range l.Placements() {
		p := l.placements[key]
		if e := p.entries.of(from); e != nil && p.entries.of(to) == nil {
			l.setEntry(p, to, e.copyForCluster(to))
			l.markUrgent(entryKey(key, to))
			l.Unbind(key, from)
		}
		if slices.ContainsFunc(p.Stops, func(s placement.Stop) bool { return s.Cluster == from }) {
			next := *p
			next.Stops = slices.Clone(p.Stops)
			for i := range next.Stops {
				if next.Stops[i].Cluster == from {
					next.Stops[i].Cluster = to
				}
			}
			l.SetPlacement(key, next)
		}
	}
	l.suspensions.renameCluster(from, to)
	next := Cluster{}
	if c := l.clusters[to]; c != nil {
		next = *c
	}
	l.ForgetCluster(from)
	l.rebuild(&next) // what the ledger did not have
	l.setCluster(&next)
}

// copyForCluster returns a copy of the entry for another name of its cluster.
func (e *Entry) copyForCluster(name string) *Entry {
	next := *e
	next.Binding.Cluster, next.Binding.Policy = name, "" // a policy may name its clusters
	next.Binding.Inherited = !e.Binding.Removing
	return &next
}

// putCluster replaces the record of a cluster.
func (m *members) putCluster(c *Cluster) {
	old := m.clusters[c.Cluster]
	m.clusters[c.Cluster] = c
	if old != nil && old.UID != c.UID {
		m.sortNames(old.UID, "")
	}
	if old == nil || old.UID != c.UID || old.Claimant != c.Claimant || !old.Identified.Equal(c.Identified) {
		m.sortNames(c.UID, c.Cluster)
	}
}

// sortNames updates the names of the cluster with a UID, the one that holds it first. more is one of
// them; empty if none was added.
func (m *members) sortNames(uid, more string) {
	if uid == "" {
		return
	}
	names := slices.Clone(m.names[uid])
	if more != "" && !slices.Contains(names, more) {
		names = append(names, more)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return m.clusters[name] == nil || m.clusters[name].UID != uid })
	if len(names) == 0 {
		delete(m.names, uid)
		return
	}
	isClaimant := func(name string) int {
		if slices.ContainsFunc(names, func(by string) bool { return m.clusters[by].Claimant == name }) {
			return 0
		}
		return 1
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(isClaimant(a), isClaimant(b)), m.clusters[a].Identified.Compare(m.clusters[b].Identified), strings.Compare(a, b))
	})
	m.names[uid] = names
}

// duplicateRefusal returns why nothing is written to a cluster that another member holds too; empty if none
// does.
func (m *members) duplicateRefusal(cluster string) string {
	holder := m.SameAs(cluster)
	if holder == "" {
		return ""
	}
	identity := "according to the claim on it"
	if uid := m.clusters[cluster].UID; uid != "" {
		identity = "the UID of its Namespace kube-system is " + uid
	}
	return fmt.Sprintf("this is the same cluster as the member %s, which holds it (identity: %s): nothing is written or deleted under the name %s; "+
		"correct the kubeconfig of %s, or remove one of the two MemberClusters from the repository", holder, identity, cluster, cluster)
}
