package inventory

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/gzipped"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

const (
	// bundlePart is the value of label on a bundle.
	bundlePart = "bundle"
	// minBundled is the number of inventories that are written together at least.
	minBundled = 3
	// maxBundledItems is the maximum number of objects in such an inventory.
	maxBundledItems = 100
)

// bundleID returns the ID of the ConfigMap with the bundle of a fleet.
func bundleID(fleet string) api.ID {
	return fleetConfigMap("inventories-", fleet)
}

// SaveTogether writes inventories into the bundle with one request. It returns those that the caller has to write one by one
// unless the cluster has them: large ones, those that have or may have a ConfigMap of their own, and all changed ones if they are too
// few to rewrite the bundle or if the server refuses it. If the server does not answer, err applies to every inventory that is not
// returned.
func SaveTogether(ctx context.Context, st *Store, all []*Inventory) (rest []*Inventory, err error) {
	changed, content := List{}, slices.Clone(st.bundle.counting)
	for _, inv := range all {
		st.Adopt(inv)
		switch {
		case inv.parts > 0 || inv.Items.Len() > maxBundledItems || isDamaged(st, inv.Placement()):
			rest = append(rest, inv)
		case !isBundled(st, inv):
			changed.Put(inv)
			content.Put(inv)
		}
	}
	if len(changed) == 0 {
		return rest, nil
	}
	few := !st.bundle.damaged && (len(changed) < minBundled || len(content) > 2*len(changed))
	if !few {
		err = writeBundle(ctx, st, content)
	}
	switch {
	case few, err != nil && !connection.IsUnreachable(err):
		return slices.DeleteFunc(slices.Clone(all), func(inv *Inventory) bool { return changed.Of(inv.Placement()) == nil && !slices.Contains(rest, inv) }), nil
	case err != nil:
		return slices.DeleteFunc(slices.Clone(all), func(inv *Inventory) bool { return changed.Of(inv.Placement()) != nil }), fmt.Errorf("write inventories: %w", err)
	}
	return rest, nil
}

// isBundled reports whether the bundle on the cluster has an inventory as it is.
func isBundled(st *Store, inv *Inventory) bool {
	if st.bundle.counting.Of(inv.Placement()) != inv || inv.written == 0 || st.NamesOther(inv) || isDamaged(st, inv.Placement()) {
		return false
	}
	written, err := inv.writeBundled(io.Discard, inv.serial)
	return err == nil && written == inv.written
}

// writeBundled writes an inventory as it is in a bundle, and returns the digest of that.
func (inv *Inventory) writeBundled(w io.Writer, serial uint64) (digest, error) {
	e, sum := inv.encoded(), sha256.New()
	e.Serial = serial
	err := json.NewEncoder(io.MultiWriter(w, sum)).Encode(e)
	return digestOfSum(sum.Sum(nil)), err
}

var errTooLarge = errors.New("inventories do not fit in one ConfigMap")

// writeBundle replaces the bundle on the cluster by inventories. After an error, it may have been
// replaced all the same. An inventory that may have a ConfigMap of its own keeps its serial number, so that its entry in the bundle
// does not count if that ConfigMap exists.
func writeBundle(ctx context.Context, st *Store, list List) error {
	digests, serials := make([]digest, len(list)), make([]uint64, len(list))
	raw, err := gzipped.Encode(func(w io.Writer) error {
		out, separator := bufio.NewWriter(w), byte('[')
		for i, inv := range list {
			st.Adopt(inv)
			if serials[i] = inv.serial; inv.parts == 0 {
				serials[i] = nextSerial(st, inv.Placement())
			}
			out.WriteByte(separator)
			var err error
			if digests[i], err = inv.writeBundled(out, serials[i]); err != nil {
				return err
			}
			separator = ','
		}
		out.WriteString("]\n")
		return out.Flush()
	})
	if err != nil {
		return err
	}
	if len(raw) > partSize {
		return fmt.Errorf("%d %w", len(list), errTooLarge)
	}
	if err := st.ensureClaim(ctx); err != nil {
		return err
	}
	same := make([]bool, len(list))
	for i, inv := range list {
		p := inv.Placement()
		st.attempted.set(p, max(st.attempted.Of(p), serials[i]))
		same[i] = isBundled(st, inv)
	}
	if err := writeTogether(ctx, st, bundleID(st.cfg.Fleet), bundlePart, raw); err != nil {
		for _, inv := range list { // if the response was lost
			if p := inv.Placement(); st.bundle.counting.Of(p) == nil {
				st.bundle.addOther(p)
			}
		}
		st.bundle.digest = ""
		return err
	}
	st.bundle = bundle{counting: slices.Clone(list), digest: digestOf(raw).String()}
	at := appliedAt(st, bundleID(st.cfg.Fleet))
	for i, inv := range list {
		if inv.parts == 0 {
			if !same[i] {
				inv.applied = at
			}
			inv.written = digests[i]
			inv.setOwner(st.membership.owner())
			wrote(st, inv, serials[i])
			withdraw(ctx, st, inv.Placement())
		}
	}
	return nil
}

// addBundled adds the inventories in the bundle on the cluster that count, if there is one, and returns their owners.
// chunks are the ConfigMaps by name.
func addBundled(st *Store, chunks map[string]*unstructured.Unstructured, all *List, left *unpacking) (owners []protocol.Owner, err error) {
	o := chunks[bundleID(st.cfg.Fleet).Name]
	if o == nil {
		return nil, nil
	}
	st.put(api.PlacementKey{}, o)
	list, err := listIn(o, left)
	if stop := left.stops(err); stop != nil {
		return nil, stop
	}
	if err != nil {
		logDamaged(st, o, err)
		st.bundle.damaged = true
		owner := st.ownerOf(o.GetAnnotations(), "")
		if o.GetAnnotations()[digestKey] != "" || owner.ID != "" {
			st.damaged = append(st.damaged, owner)
		}
		return nil, nil
	}
	st.bundle.digest = o.GetAnnotations()[digestKey]
	at := appliedAt(st, bundleID(st.cfg.Fleet))
	var counting List // others may have written one twice
	for _, inv := range list {
		p := inv.Placement()
		if serialIn(chunks, nameOf(st.cfg.Fleet, p)) >= inv.serial {
			st.bundle.addOther(p)
			continue
		}
		if inv.written, err = inv.writeBundled(io.Discard, inv.serial); err != nil {
			return nil, fmt.Errorf("read inventories: %w", err)
		}
		owner := st.ownerOf(o.GetAnnotations(), inv.Revision().Commit)
		inv.setOwner(owner)
		inv.applied, owners = at, append(owners, owner)
		all.Put(inv)
		counting.Put(inv)
	}
	st.bundle.counting = counting
	return owners, nil
}

// leaveBundle records that the bundle counts for a placement no longer, since its inventory has a ConfigMap of its
// own. After the last one it deletes the bundle. If that fails, nothing in it counts all the same, and the next write of
// an inventory tries again.
func leaveBundle(ctx context.Context, st *Store, p api.PlacementKey) {
	if st.bundle.has(p) {
		st.bundle.addOther(p)
	}
	if len(st.bundle.counting) == 0 && len(st.bundle.others) > 0 {
		deleteBundle(ctx, st) //nolint:errcheck // nothing in it counts, and the next write of an inventory tries again
	}
}

func deleteBundle(ctx context.Context, st *Store) error {
	id := bundleID(st.cfg.Fleet)
	if _, err := st.conn.Delete(ctx, ConfigMaps, id, "", metav1.DeletePropagationBackground); err != nil {
		return err
	}
	st.bundle = bundle{}
	st.drop(id)
	return nil
}
