package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// RemoveTogether takes inventories out of the announcement and the bundle, with one request for each, before they are deleted. The
// other inventories there are written one by one if they do not fit in one ConfigMap: they have grown since.
func RemoveTogether(ctx context.Context, st *Store, gone ...*Inventory) error {
	if err := forgetAnnounced(ctx, st, gone...); err != nil {
		return fmt.Errorf("remove the announcement: %w", err)
	}
	return forgetBundled(ctx, st, gone...)
}

// forgetBundled removes placements from the bundle.
func forgetBundled(ctx context.Context, st *Store, gone ...*Inventory) error {
	if !slices.ContainsFunc(gone, func(inv *Inventory) bool { return st.bundle.has(inv.Placement()) }) {
		return nil
	}
	left := slices.Clone(st.bundle.counting)
	for _, inv := range gone {
		left.Drop(inv.Placement())
	}
	if len(left) == 0 {
		return deleteBundle(ctx, st)
	}
	err := writeBundle(ctx, st, left)
	if !errors.Is(err, errTooLarge) {
		return err
	}
	if err := saveAlone(ctx, st, left...); err != nil {
		return err
	}
	return deleteBundle(ctx, st)
}

// saveAlone writes inventories into ConfigMaps of their own, so that what the announcement and the bundle have of them does not count.
func saveAlone(ctx context.Context, st *Store, all ...*Inventory) error {
	for _, inv := range all {
		inv.Invalidate()
		if err := st.Save(ctx, inv); err != nil {
			return err
		}
	}
	return nil
}

// IsTogether reports whether the announcement or the bundle on the cluster has, or may have, the inventory of a placement.
func IsTogether(st *Store, p api.PlacementKey) bool {
	return st.bundle.has(p) || st.inAnnouncement[p]
}

// forgetAnnounced removes placements from the announcement with one request, before their inventories are deleted.
func forgetAnnounced(ctx context.Context, st *Store, gone ...*Inventory) error {
	has := slices.ContainsFunc(gone, func(inv *Inventory) bool { return st.inAnnouncement[inv.Placement()] })
	if st.announced == nil || len(st.announced) > 0 && !has {
		return nil
	}
	left := maps.Clone(st.announced)
	for _, inv := range gone {
		delete(left, inv.Placement())
	}
	if len(left) == 0 {
		return deleteAnnouncement(ctx, st)
	}
	var list []encoded
	var others []*Inventory
	for _, a := range left {
		list, others = append(list, a.encoded(slices.Collect(a.inv.Items.All()))), append(others, a.inv)
	}
	raw, err := packAdditions(list)
	if err != nil {
		return err
	}
	if len(raw) > partSize {
		if err := saveAlone(ctx, st, others...); err != nil {
			return err
		}
		return deleteAnnouncement(ctx, st)
	}
	if err := writeTogether(ctx, st, announcementID(st.cfg.Fleet), announcementPart, raw); err != nil {
		return err
	}
	st.announced, st.inAnnouncement = left, keysOf(left)
	return nil
}

// Delete removes an empty inventory from the cluster.
func (st *Store) Delete(ctx context.Context, inv *Inventory) error {
	if err := RemoveTogether(ctx, st, inv); err != nil {
		return fmt.Errorf("remove inventory of %s: %w", inv.Placement(), err)
	}
	name := nameOf(st.cfg.Fleet, inv.Placement())
	for part := max(1, int(inv.parts)) - 1; part >= 0; part-- {
		if err := st.deletePart(ctx, partName(name, part)); err != nil {
			return fmt.Errorf("remove inventory of %s: %w", inv.Placement(), err)
		}
	}
	inv.written, inv.parts, inv.serial = 0, 0, 0
	Forget(st, inv.Placement())
	return nil
}

// deletePart deletes one part. The part is forgotten even if the request fails: it may have been
// deleted all the same, and that must not look like a deletion by somebody else.
func (st *Store) deletePart(ctx context.Context, name string) error {
	id := configMapID(name)
	st.drop(id)
	_, err := st.conn.Delete(ctx, ConfigMaps, id, "", metav1.DeletePropagationBackground)
	return err
}
