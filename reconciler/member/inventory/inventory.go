// Package inventory keeps lists of what each placement owns on a member cluster, on the cluster
// itself.
//
// A Store reads and writes inventories as ConfigMaps in our namespace, so that they survive the
// loss of everything else. It also writes a claim, by which two fleets of the same name notice
// each other. While another fleet holds the cluster, it writes nothing.
package inventory

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/gzipped"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/memory"
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

// Placement returns the placement whose objects the inventory lists.
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

// An Item is an object that we have applied, or may have.
type Item struct {
	Group     string `json:"g,omitempty"`
	Version   string `json:"v"`
	Kind      string `json:"k"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
	// Hash is the hash of the content that was applied last; empty if the object was only
	// announced.
	Hash string `json:"h,omitempty"`
	// Managed is the hash of our managedFields entry after the last apply.
	Managed string `json:"m,omitempty"`
	// OthersState is that of the observed.Object whose drift Git adopted: it had the values of
	// the new version already, and was not applied. It is empty if we own all applied fields,
	// since Managed then shows every change.
	OthersState string    `json:"o,omitempty"`
	UID         types.UID `json:"u,omitempty"`
	// Commit is the commit that last changed the object.
	Commit string `json:"c,omitempty"`
	// End is how the object has run to its end with the content of Hash, so that it does not run
	// again after a controller has deleted it; empty if it has not.
	End End `json:"e,omitempty"`
	// Left are the fields that Git has removed and that were still there after the last apply.
	Left diff.Left `json:"l,omitempty"`
}

// An End is how an object has ended that runs to an end, such as a Job.
type End string

// The ends.
const (
	Ended  End = "ended"
	Failed End = "failed"
)

// ID returns the ID of the object.
func (i *Item) ID() api.ID {
	return api.ID{Group: i.Group, Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}
}

// GroupVersionKind returns the kind of the object in the version in which it was applied.
func (i *Item) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.Group, Version: i.Version, Kind: i.Kind}
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
	return digest(binary.BigEndian.Uint64(sum[:]))
}

// String returns a digest as it is in the annotation of a ConfigMap.
func (d digest) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// keepChunk counts a ConfigMap that is kept while the inventories are read.
func keepChunk(at *connection.Listing, o *unstructured.Unstructured) error {
	text, _, _ := unstructured.NestedString(o.Object, "binaryData", dataKey)
	return at.Keep(len(o.GetName()) + len(text))
}

// An unpacking is what the inventories of a cluster may still decompress to. It ends with its context, since
// that may take a while.
type unpacking struct {
	ctx                context.Context
	bytes, items, text int
	kinds              map[schema.GroupVersionKind]bool
	placements         map[api.PlacementKey]bool
	// memory is the share for which what is kept counts, and counted that in bytes; nil for none.
	memory  *memory.Share
	counted int
}

func newUnpacking(ctx context.Context) *unpacking {
	return &unpacking{
		ctx: ctx, bytes: connection.MaxUnpacked, items: connection.MaxKeptItems, text: connection.MaxKeptText,
		kinds: map[schema.GroupVersionKind]bool{}, placements: map[api.PlacementKey]bool{},
	}
}

// unpack decodes an inventory. It refuses one that exceeds what is left. The text is not kept as a whole:
// that of a cluster with very many objects is several times larger than what is kept of it.
func (u *unpacking) unpack(raw []byte) (inv *Inventory, err error) {
	err = u.decompress(raw, func(in *json.Decoder, plain *unpackedReader) error {
		inv, err = u.decode(in, plain)
		return err
	})
	return inv, err
}

// stops returns the error with which reading inventories ends after err: a limit is exceeded, or the context is done. It is nil
// if only the inventory that was read is damaged.
func (u *unpacking) stops(err error) error {
	switch {
	case u.ctx.Err() != nil:
		return fmt.Errorf("read inventories: %w", u.ctx.Err())
	case connection.IsExceeded(err):
		return fmt.Errorf("read inventories: %w", err)
	}
	return nil
}

// unpackList decodes the inventories of an announcement or a bundle, as unpack does.
func (u *unpacking) unpackList(raw []byte) (list []*Inventory, err error) {
	err = u.decompress(raw, func(in *json.Decoder, plain *unpackedReader) error {
		if start, err := in.Token(); err != nil || start != json.Delim('[') {
			return errors.Join(errors.New("it is not a list"), err)
		}
		for in.More() {
			inv, err := u.decode(in, plain)
			if err != nil {
				return err
			}
			if err := u.keep(0); err != nil {
				return err
			}
			list = append(list, inv)
		}
		return nil
	})
	return list, err
}

// decompress calls decode with what some bytes decompress to.
func (u *unpacking) decompress(raw []byte, decode func(*json.Decoder, *unpackedReader) error) error {
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	plain := &unpackedReader{Reader: zip, of: u, value: largestValue}
	if err := decode(json.NewDecoder(plain), plain); err != nil {
		return err
	}
	plain.value = largestValue
	_, err = io.Copy(io.Discard, plain) // the checksum is at the end
	return err
}

// largestValue is the maximum size of one item, with white space: a decoder keeps it as a whole, and reads
// white space again and again.
const largestValue = 1 << 20

// An unpackedReader reads a decompressed text of which value bytes may be read until value is set again.
type unpackedReader struct {
	io.Reader
	of    *unpacking
	value int
}

// Read implements io.Reader.
func (r *unpackedReader) Read(p []byte) (int, error) {
	if err := r.of.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.Reader.Read(p)
	if r.of.bytes -= n; r.of.bytes < 0 {
		return 0, connection.Exceeded(connection.MaxUnpacked>>20, "MiB of decompressed inventories")
	}
	if r.value -= n; r.value < 0 {
		return 0, connection.Exceeded(largestValue>>20, "MiB for one object in an inventory")
	}
	return n, err
}

// decode decodes an inventory, item by item.
func (u *unpacking) decode(in *json.Decoder, plain *unpackedReader) (*Inventory, error) {
	inv, of := &Inventory{}, header{}
	plain.value = largestValue
	fields := map[string]func() error{
		"placement": func() error { return in.Decode(&of.placement) },
		"revision":  func() error { return in.Decode(&of.revision) },
		"abandon":   func() error { return in.Decode(&inv.Abandon) },
		"adopted":   func() error { return in.Decode(&inv.Adopted) },
		"items":     func() error { return u.decodeItems(in, plain, inv) },
		"serial":    func() error { return in.Decode(&inv.serial) },
	}
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.Join(errors.New("it is not an object"), err)
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		decode := fields[fmt.Sprint(name)]
		if decode == nil {
			decode = func() error { return in.Decode(&json.RawMessage{}) }
		}
		if err := decode(); err != nil {
			return nil, err
		}
	}
	if _, err := in.Token(); err != nil {
		return nil, err
	}
	for _, text := range []string{of.placement.Namespace, of.placement.Name, of.revision.Commit, of.revision.Hash} {
		if len(text) > connection.MaxName {
			return nil, connection.Exceeded(connection.MaxName, "bytes for the name of a placement or a revision in its inventories")
		}
	}
	if u.placements[of.placement] = true; len(u.placements) > connection.MaxPlacements {
		return nil, connection.Exceeded(connection.MaxPlacements, "placements in its inventories")
	}
	inv.header = unique.Make(of)
	return inv, u.keepText(of.text())
}

// keep counts an object or an inventory that is kept, with texts of some bytes.
func (u *unpacking) keep(text int) error {
	if u.items--; u.items < 0 {
		return connection.Exceeded(connection.MaxKeptItems, "objects in its inventories")
	}
	u.counted += connection.ItemBytes
	return cmp.Or(connection.Keep(u.memory, connection.ItemBytes), u.keepText(text))
}

// keepText counts texts of some bytes that are kept.
func (u *unpacking) keepText(text int) error {
	if u.text -= text; u.text < 0 {
		return connection.Exceeded(connection.MaxKeptText>>20, "MiB of names and hashes in its inventories")
	}
	u.counted += text
	return connection.Keep(u.memory, text)
}

// text returns the size of the texts that are kept of an inventory besides its items, in bytes.
func (h *header) text() int {
	return len(h.placement.Namespace) + len(h.placement.Name) + len(h.revision.Commit) + len(h.revision.Hash) + len(h.revision.Labels)
}

func (u *unpacking) decodeItems(in *json.Decoder, plain *unpackedReader, inv *Inventory) error {
	start, err := in.Token()
	if err != nil || start == nil {
		return err
	}
	if start != json.Delim('[') {
		return errors.New("its items are not a list")
	}
	var list []Item
	for in.More() {
		var it Item
		if err := in.Decode(&it); err != nil {
			return err
		}
		plain.value = largestValue
		if err := u.keep(it.text()); err != nil {
			return err
		}
		if u.kinds[it.GroupVersionKind()] = true; len(u.kinds) > connection.MaxKinds {
			return connection.Exceeded(connection.MaxKinds, "kinds of objects in its inventories")
		}
		list = append(list, it)
	}
	// As they were written, they are in order, which makes it fast to put them.
	slices.SortStableFunc(list, func(a, b Item) int { return a.ID().Compare(b.ID()) })
	for _, it := range list {
		inv.Items.Put(it)
	}
	_, err = in.Token()
	return err
}

// text returns the size of the texts that are kept of an item, in bytes, without the UID and the commit.
func (i *Item) text() int {
	return len(i.Group) + len(i.Version) + len(i.Kind) + len(i.Namespace) + len(i.Name) + len(i.Hash) + len(i.Managed) + len(i.OthersState) + len(i.End) + len(i.Left)
}
