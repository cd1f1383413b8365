package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A membership is the one that a store writes for. While the fleet has no ID, every inventory with
// its name counts as its own.
type membership struct{ protocol.Membership }

// owner returns the owner that inventories of this fleet name.
func (m *membership) owner() protocol.Owner { return protocol.Owner{ID: m.ID, Source: m.Source} }

// adoption returns the adoption because of which inventories of an owner are taken over; nil if
// there is none.
func (m *membership) adoption(o protocol.Owner) *protocol.Adoption {
	i := slices.IndexFunc(m.Adopted, func(x protocol.Adoption) bool { return x.ID == o.ID })
	if i < 0 {
		return nil
	}
	return &m.Adopted[i]
}

// isOther reports whether an owner is another fleet, which was not adopted.
func (m *membership) isOther(o protocol.Owner) bool {
	return o.ID != m.ID && m.adoption(o) == nil
}

// annotate adds the annotations about the fleet that each part of an inventory has.
func (m *membership) annotate(annotations map[string]any) {
	if m.ID != "" {
		annotations[api.FleetIDAnnotation], annotations[api.FleetSourceAnnotation] = m.ID, m.Source
	}
}

// SetMembership replaces the membership that the store writes for.
func (st *Store) SetMembership(m protocol.Membership) { st.membership = membership{m} }

// SetIdentity tells the store the UID of the connected cluster; empty if it could not be read.
func (st *Store) SetIdentity(uid string) { st.uid = uid }

// Claimant returns the member that the claim of this fleet on the cluster names; empty if there is
// no such claim. While the fleet has no ID, every claim with its name counts as its own.
func (st *Store) Claimant() string {
	if st.claim == nil || st.membership.ID != "" && st.membership.isOther(st.claim.owner) {
		return ""
	}
	return st.claim.member
}

// Owners returns the fleets that the claim and the inventories on the cluster name, sorted. The
// caller does not change them.
func (st *Store) Owners() []protocol.Owner { return st.owners }

// ClaimedByOther reports whether nothing may be written: the cluster has an inventory or the claim of
// another fleet, another member of this fleet has claimed it, or it is not the cluster that the fleet has
// identified under the name of the member.
func (st *Store) ClaimedByOther() bool {
	return st.claimedByFleet() || st.OtherMember() != "" || st.unidentified()
}

func (st *Store) claimedByFleet() bool {
	return st.membership.ID != "" && slices.ContainsFunc(st.owners, st.membership.isOther)
}

// OtherMember returns the member of this fleet that has claimed the cluster under another name; empty if
// there is none, or if that is a former name of this member.
func (st *Store) OtherMember() string {
	m := &st.membership
	if by := st.Claimant(); m.ID != "" && m.SameAs == "" && by != "" && by != st.cfg.Cluster && by != m.Formerly {
		return by
	}
	return m.SameAs
}

// unidentified reports whether the connected cluster is not the one that the fleet has identified.
// If the identity of a connected cluster cannot be read, that is not known.
func (st *Store) unidentified() bool {
	return st.membership.ID != "" && st.uid != "" && st.uid != st.membership.UID
}

// OtherFleets returns the other fleets that have claimed the cluster.
func (st *Store) OtherFleets() []protocol.Owner {
	if !st.claimedByFleet() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(st.owners), func(o protocol.Owner) bool { return !st.membership.isOther(o) })
}

// UpdateOwners computes the owners anew from the inventories that the cluster has, and reports
// whether they have changed.
func (st *Store) UpdateOwners(all List) (changed bool) {
	now := slices.Clone(st.damaged)
	if st.claim != nil {
		now = append(now, st.claim.owner)
	}
	for _, inv := range all {
		if o := inv.owner(); inv.Stored() && !slices.Contains(now, o) {
			now = append(now, o)
		}
	}
	if now = sortedOwners(now); slices.Equal(now, st.owners) {
		return false
	}
	st.owners = append([]protocol.Owner{}, now...)
	return true
}

// NamesOther reports whether an inventory on the cluster does not name this fleet yet.
func (st *Store) NamesOther(inv *Inventory) bool { return inv.owner() != st.membership.owner() }

// Adopt marks an inventory as adopted if a user has adopted it from another fleet: its objects
// were never in our repository, and none of them is deleted until a commit allows it.
func (st *Store) Adopt(inv *Inventory) {
	if a := st.membership.adoption(inv.owner()); a != nil && a.By != "" {
		inv.Adopted = true
	}
}

// ownerOf returns the owner of an inventory. commit is a commit that the inventory names.
func (st *Store) ownerOf(annotations map[string]string, commit string) protocol.Owner {
	o := protocol.Owner{ID: annotations[api.FleetIDAnnotation], Source: annotations[api.FleetSourceAnnotation]}
	if o.ID == "" && commit != "" && st.cfg.HasCommit != nil && !st.cfg.HasCommit(commit) {
		o.UnknownCommit = commit
	}
	return o
}

// sortedOwners sorts owners, and removes duplicates.
func sortedOwners(list []protocol.Owner) []protocol.Owner {
	slices.SortFunc(list, func(a, b protocol.Owner) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Source, b.Source), strings.Compare(a.UnknownCommit, b.UnknownCommit))
	})
	return slices.Compact(list)
}
