// Package inventory keeps lists of what each placement owns on a member cluster, on the cluster
// itself.
//
// A Store reads and writes inventories as ConfigMaps in our namespace, so that they survive the
// loss of everything else. It also writes a claim, by which two fleets of the same name notice
// each other. While another fleet has claimed the cluster, it writes nothing.
package inventory

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unique"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/gzipped"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// An Inventory lists the objects that one placement owns on a cluster, and the revision that it
// has reached. It decides what may be deleted. New returns one.
type Inventory struct {
	header unique.Handle[header]
	// Abandon says that the objects stay when the placement is deleted.
	Abandon bool
	// Adopted says that a user adopted the inventory from another fleet, and that it still has
	// objects which are not in the repository.
	Adopted bool
	// parts is the number of ConfigMaps of the last write.
	parts int32
	Items Items
	// Failures limits the log lines about failed writes; nil after a write that has not failed.
	Failures *retry.LogLimiter

	// written is the digest of the inventory on the cluster; zero if it may not be there.
	written digest
	// applied is when the inventory was written, in seconds, as its ConfigMap says; zero if it is not known.
	applied int64
	// serial is the serial number of the inventory on the cluster; zero if it is not there.
	serial uint64
}

// A header is what the inventories of a placement have in common on many clusters, which share it.
type header struct {
	placement api.PlacementKey
	revision  placement.Revision
	// owner is the owner in the ConfigMaps on the cluster; empty if there are none.
	owner protocol.Owner
}

// New returns an empty inventory.
func New(p api.PlacementKey, r placement.Revision) *Inventory {
	return &Inventory{header: unique.Make(header{placement: p, revision: r})}
}

// Placement returns the key of the placement that the inventory belongs to.
func (inv *Inventory) Placement() api.PlacementKey { return inv.header.Value().placement }

// Revision returns the revision that the placement has reached on the cluster.
func (inv *Inventory) Revision() placement.Revision { return inv.header.Value().revision }

// SetRevision records the revision that the placement has reached on the cluster.
func (inv *Inventory) SetRevision(r placement.Revision) {
	h := inv.header.Value()
	h.revision = r
	inv.header = unique.Make(h)
}

// owner returns the owner in the ConfigMaps on the cluster; empty if there are none.
func (inv *Inventory) owner() protocol.Owner { return inv.header.Value().owner }

func (inv *Inventory) setOwner(o protocol.Owner) {
	h := inv.header.Value()
	h.owner = o
	inv.header = unique.Make(h)
}

// Stored reports whether the inventory was on the cluster when it was last read or written.
func (inv *Inventory) Stored() bool { return inv.written != 0 }

// Applied returns when an inventory was last written with changes of its own, in seconds of the clock of the cluster; zero if that
// is not known. Its bundle may have been written since because of others.
func (inv *Inventory) Applied() int64 { return inv.applied }

// Invalidate makes the next Save write the inventory, even if it has not changed.
func (inv *Inventory) Invalidate() { inv.written = 0 }

// encoded is an inventory as it is stored.
type encoded struct {
	Placement api.PlacementKey   `json:"placement"`
	Revision  placement.Revision `json:"revision"`
	Abandon   bool               `json:"abandon,omitempty"`
	Adopted   bool               `json:"adopted,omitempty"`
	Items     []Item             `json:"items"`
	// Serial is set in announcements and bundles only.
	Serial uint64 `json:"serial,omitempty"`
}

func (inv *Inventory) encoded() encoded {
	return encoded{
		Placement: inv.Placement(), Revision: inv.Revision(), Abandon: inv.Abandon, Adopted: inv.Adopted,
		Items: slices.AppendSeq(slices.Grow([]Item(nil), inv.Items.Len()), inv.Items.All()),
	}
}

// pack returns the inventory's bytes and their digest. Equal inventories give
// equal bytes.
func (inv *Inventory) pack() (raw []byte, d digest, err error) {
	raw, err = gzipped.Encode(func(w io.Writer) error { return json.NewEncoder(w).Encode(inv.encoded()) })
	if err != nil {
		return nil, 0, err
	}
	return raw, digestOf(raw), nil
}

// A digest is the beginning of a SHA-256 hash.
type digest uint64

func digestOf(raw []byte) digest {
	sum := sha256.Sum256(raw)
	return digestOfSum(sum[:])
}

// digestOfSum returns the digest with which a SHA-256 hash begins.
func digestOfSum(sum []byte) digest { return digest(binary.BigEndian.Uint64(sum)) }

// String returns a digest as it is in the annotation of a ConfigMap.
func (d digest) String() string { return fmt.Sprintf("%016x", uint64(d)) }
