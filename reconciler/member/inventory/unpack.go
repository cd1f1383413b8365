package inventory

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/memory"
)

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
