package protocol

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Fleet is the identity with which this daemon marks what it owns on member clusters.
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

// A Membership is what the agent of a member has to know about the fleet and about the identity of
// its cluster.
type Membership struct {
	Fleet
	// Adopted are the adoptions of other fleets' inventories on the cluster, oldest first.
	Adopted []Adoption
	// UID identifies the cluster that is written to under the name of the member; empty if it is not
	// known. Another cluster is not written to.
	UID string
	// SameAs is the member that has claimed this cluster under another name; empty if there is none.
	SameAs string
	// Formerly is the former name of the member in the claim on the cluster; empty if there is
	// none.
	Formerly string
}

// Equal reports whether two memberships are the same.
func (m Membership) Equal(o Membership) bool {
	return m.Fleet == o.Fleet && slices.Equal(m.Adopted, o.Adopted) && m.UID == o.UID && m.SameAs == o.SameAs && m.Formerly == o.Formerly
}

// A MemberRecord is what the agent of a member reads from the ledger when it starts.
type MemberRecord struct {
	Drifts map[api.PlacementKey][]Drift
	// UID is the UID of the cluster, and Version the resource version at which it was last observed;
	// zero if they are not known.
	UID     string
	Version uint64
	// Inventories are the serial numbers of the inventories that were reported last, without those that
	// are being removed.
	Inventories map[api.PlacementKey]uint64
}
