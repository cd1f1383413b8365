package inventory

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Write is one write of an inventory. Prepare and Finish run in the goroutine that owns the store. Send may run in any other
// goroutine in between, and the inventory must not change until Finish has returned.
type Write struct {
	conn   *connection.Conn
	inv    *Inventory
	digest digest
	serial uint64
	parts  []partWrite
	// surplus are the names of ConfigMaps of the last write that are not needed any more. Of these, deleted may be gone.
	surplus []string
	deleted int
	err     error
}

// A partWrite is a ConfigMap of a Write, and what the server has of it; nil if it was not written.
type partWrite struct {
	name    string
	body    []byte
	written *metav1.PartialObjectMetadata
}

// Save writes an inventory, unless the cluster already has it.
func (st *Store) Save(ctx context.Context, inv *Inventory) error {
	w, err := st.Prepare(ctx, inv)
	if w == nil {
		return err
	}
	w.Send(ctx)
	return st.Finish(ctx, w)
}

// Prepare returns the write of an inventory; nil if the cluster already has it, or if it cannot be written.
func (st *Store) Prepare(ctx context.Context, inv *Inventory) (*Write, error) {
	st.Adopt(inv)
	raw, d, err := inv.pack()
	if err != nil {
		return nil, fmt.Errorf("write inventory of %s: %w", inv.Placement(), err)
	}
	if (d == inv.written || isBundled(st, inv)) && !st.NamesOther(inv) {
		return nil, nil
	}
	if err := st.ensureClaim(ctx); err != nil {
		return nil, fmt.Errorf("write inventory of %s: %w", inv.Placement(), err)
	}
	if err := st.createNamespace(ctx); err != nil {
		return nil, fmt.Errorf("write inventory of %s: %w", inv.Placement(), err)
	}
	w := &Write{conn: st.conn, inv: inv, digest: d, serial: nextSerial(st, inv.Placement())}
	name := nameOf(st.cfg.Fleet, inv.Placement())
	parts := max(1, (len(raw)+partSize-1)/partSize)
	for part := range parts {
		body, err := encodePart(st, w, partName(name, part), part, parts, raw[part*partSize:min(len(raw), (part+1)*partSize)])
		if err != nil {
			return nil, fmt.Errorf("write inventory of %s: %w", inv.Placement(), err)
		}
		w.parts = append(w.parts, partWrite{name: partName(name, part), body: body})
	}
	for part := parts; part < int(inv.parts); part++ {
		w.surplus = append(w.surplus, partName(name, part))
	}
	st.attempted.set(inv.Placement(), w.serial)
	return w, nil
}

func encodePart(st *Store, w *Write, name string, part, parts int, chunk []byte) ([]byte, error) {
	return encodeConfigMap(st, name, strconv.Itoa(part), map[string]any{
		api.PlacementAnnotation: w.inv.Placement().String(), digestKey: w.digest.String(), partsKey: strconv.Itoa(parts), serialKey: strconv.FormatUint(w.serial, 10),
	}, chunk)
}

// Send sends a write. Finish says whether it failed.
func (w *Write) Send(ctx context.Context) {
	// The first part has the digest of the whole and is written last. So the digest of an
	// interrupted write does not match, and that inventory is not used.
	for n := len(w.parts) - 1; n >= 0; n-- {
		part := &w.parts[n]
		err := inNamespace(ctx, w.conn, func() (err error) {
			part.written, err = w.conn.Patch(ctx, ConfigMaps, configMapID(part.name), part.body, true)
			return err
		})
		if err != nil {
			part.written, w.err = nil, fmt.Errorf("write inventory of %s: %w", w.inv.Placement(), err)
			return
		}
	}
	for _, name := range w.surplus {
		w.deleted++
		if _, err := w.conn.Delete(ctx, ConfigMaps, configMapID(name), "", metav1.DeletePropagationBackground); err != nil {
			w.err = fmt.Errorf("shorten inventory of %s: %w", w.inv.Placement(), err)
			return
		}
	}
}

// Finish records what a write that was sent has changed, and returns its error. With the last inventory that was announced, the
// announcement is deleted, and with the last one that was in the bundle, that.
func (st *Store) Finish(ctx context.Context, w *Write) error {
	for _, part := range w.parts {
		if part.written != nil {
			st.put(w.inv.Placement(), part.written)
		}
	}
	for _, name := range w.surplus[:w.deleted] {
		// also if the request failed: it may have been deleted all the same, and that must not look like a deletion by
		// somebody else
		st.drop(configMapID(name))
	}
	if w.err != nil {
		w.inv.parts = max(w.inv.parts, int32(len(w.parts))) // they may be there
		return w.err
	}
	w.inv.parts, w.inv.written = int32(len(w.parts)), w.digest
	w.inv.setOwner(st.membership.owner())
	w.inv.applied = appliedAt(st, configMapID(w.parts[0].name))
	wrote(st, w.inv, w.serial)
	delete(st.alone, w.parts[0].name)
	leaveBundle(ctx, st, w.inv.Placement())
	withdraw(ctx, st, w.inv.Placement())
	return nil
}
