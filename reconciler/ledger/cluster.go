package ledger

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Cluster is the record of a member cluster. Times are zero if it never happened.
type Cluster struct {
	protocol.ClusterSeen
	Since          time.Time // Healthy last changed
	ForbiddenSince time.Time `json:",omitzero"` // permissions are missing since then; zero if none are
	UnrenewedSince time.Time `json:",omitzero"` // the configured credentials are not used since then; zero if they are
	LastSeen       time.Time // the cluster last answered
	Observed       time.Time // Properties were last read
	Joined         time.Time // the cluster first answered
	// Identified is when the cluster with this UID was first seen under this name; zero if that was
	// not recorded.
	Identified time.Time `json:",omitzero"`
	// Rivals are other fleets with inventories on the cluster. While there are any, nothing is
	// written to the cluster.
	Rivals []protocol.Owner `json:",omitempty"`

	version uint64
}

// Version changes with every change of the record except the time of observation. It has no
// meaning after a restart.
func (c *Cluster) Version() uint64 { return c.version }

// Outdated returns why the configured credentials, which were replaced or removed, are not used, and what is used instead; empty if they
// are used.
func (c *Cluster) Outdated() string {
	if c.Unrenewed == "" {
		return ""
	}
	return "the configured credentials cannot be used, and those from before are kept: " + c.Unrenewed
}

// Denied returns which permissions are missing and what to do; empty if none are known to be
// missing, and for a nil Cluster.
func (c *Cluster) Denied() string {
	if c == nil || len(c.Forbidden) == 0 {
		return ""
	}
	return "permissions are missing: " + strings.Join(c.Forbidden, "; ") + ": grant them to the user whose credentials gitfleet uses there"
}

// underOtherName reports whether the claim on the cluster has another name of the member.
func (c *Cluster) underOtherName() bool { return c.Claimant != "" && c.Claimant != c.Cluster }

// One cluster may be declared under two names, for example because of a copied kubeconfig. The
// UID of its kube-system namespace tells. One of the names then claims the cluster; under the
// others nothing is written to it. It is the name in the claim on the cluster and, if that does not
// decide, the one under which the cluster was seen first, or the first in alphabetical order. A name
// that is no longer declared keeps its claim until the cluster has left the fleet.

// members are the recorded member clusters of a ledger.
type members struct {
	*changes
	clusters map[string]*Cluster // changed by putCluster and ForgetCluster
	declared map[api.ID]Declared // of the commit in force
	// names are the names of each identified cluster by its UID, the one that has it first. The
	// slices are immutable.
	names map[string][]string
}

// Cluster returns the record of a cluster; nil if there is none.
func (m *members) Cluster(name string) *Cluster { return m.clusters[name] }

// Clusters returns the names of all clusters, sorted.
func (m *members) Clusters() []string { return slices.Sorted(m.ClusterNames()) }

// ClusterNames iterates over the names of all clusters, in no order.
func (m *members) ClusterNames() iter.Seq[string] { return maps.Keys(m.clusters) }

// SameAs returns the member that has claimed the cluster behind another name; empty if no other member
// does.
func (m *members) SameAs(cluster string) string {
	c := m.clusters[cluster]
	if c == nil {
		return ""
	}
	if claimant := m.claimed(c); claimant != "" {
		return claimant
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

func memberID(name string) api.ID {
	return api.ID{Group: api.ClusterGroup, Kind: "MemberCluster", Name: name}
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
		m.recent.changed()
		return
	}
	m.recent.replaced(c.Cluster)
}

// setCluster replaces the record of a cluster by one that matters to a plan.
func (m *members) setCluster(next *Cluster) {
	next.version = m.next()
	m.putCluster(next)
	m.markUrgent(clusterKey(next.Cluster))
}

// ForgetCluster deletes a cluster that has left the fleet. Entries on it stay.
func (m *members) ForgetCluster(name string) {
	if c := m.clusters[name]; c != nil {
		delete(m.clusters, name)
		m.sortNames(c.UID, "")
		m.recent.changed()
	}
	m.markUrgent(clusterKey(name))
}

// sortNames updates the names of the cluster with a UID, the one that has it first. more is one of
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

// duplicateRefusal returns why nothing is written to a cluster that another member has claimed; empty if none
// does.
func (m *members) duplicateRefusal(cluster string) string {
	claimant := m.SameAs(cluster)
	if claimant == "" {
		return ""
	}
	identity := "according to the claim on it"
	if uid := m.clusters[cluster].UID; uid != "" {
		identity = "the UID of its Namespace kube-system is " + uid
	}
	return fmt.Sprintf("this is the same cluster as the member %s, which has claimed it (identity: %s): nothing is written or deleted under the name %s; "+
		"correct the kubeconfig of %s, or remove one of the two MemberClusters from the repository", claimant, identity, cluster, cluster)
}
