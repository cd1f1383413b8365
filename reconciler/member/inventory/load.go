package inventory

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/compact"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Load reads the inventories on the cluster. One that cannot be decoded is logged and not
// changed, and nothing is deleted because of it. A ConfigMap with the label of an inventory and
// without its annotations belongs to no fleet.
func (st *Store) Load(ctx context.Context) (all List, err error) {
	at := listingOf(st)
	defer at.Done()
	list, err := st.list(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("read inventories: %w", err)
	}
	chunks := map[string]*unstructured.Unstructured{}
	for i := range list {
		chunks[list[i].GetName()] = &list[i]
	}
	st.damaged, st.claim, st.announced, st.bundle, st.parts = nil, nil, nil, bundle{}, compact.Map[part]{}
	st.attempted, st.alone = nil, map[string]uint64{}
	owners := []protocol.Owner{}
	if o := chunks[claimID(st.cfg.Fleet).Name]; o != nil {
		st.setClaim(o)
		owners = append(owners, st.claim.owner)
	}
	st.conn.Memory().Keep(int64(-st.counted)) // of the load before
	left := newUnpacking(ctx)
	left.memory = st.conn.Memory()
	defer func() { st.counted = left.counted }()
	for i := range list {
		first := &list[i]
		if first.GetLabels()[label] != "0" {
			continue
		}
		inv, err := join(first, chunks, left)
		if stop := left.stops(err); stop != nil {
			return nil, stop
		}
		if err != nil {
			logDamaged(st, first, err)
			st.alone[first.GetName()] = serialOf(first)
			owner := st.ownerOf(first.GetAnnotations(), "")
			if _, ours := first.GetAnnotations()[partsKey]; ours || owner.ID != "" {
				st.damaged = append(st.damaged, owner)
			}
			continue
		}
		owner := st.ownerOf(first.GetAnnotations(), inv.Revision().Commit)
		inv.setOwner(owner)
		inv.serial, owners = serialOf(first), append(owners, owner)
		all.Put(inv)
		for n := range int(inv.parts) {
			st.put(inv.Placement(), chunks[partName(first.GetName(), n)])
		}
		inv.applied = appliedAt(st, configMapID(first.GetName()))
	}
	bundled, err := addBundled(st, chunks, &all, left)
	if err != nil {
		return nil, err
	}
	st.owners = sortedOwners(slices.Concat(owners, bundled, st.damaged))
	if err := addAnnounced(st, chunks[announcementID(st.cfg.Fleet).Name], &all, left); err != nil {
		return nil, err
	}
	st.setBack = st.cfg.Serials.compare(all)
	if len(st.damaged) > 0 {
		st.setBack = slices.DeleteFunc(st.setBack, func(p api.PlacementKey) bool { return all.Of(p) == nil }) // they may be damaged
	}
	return all, nil
}

// SetBackSince reports whether one of the inventories of a store is missing on the cluster, or has a lower serial number than
// when it was last read or written. It reads metadata alone.
func SetBackSince(ctx context.Context, st *Store, all List) (bool, error) {
	serials, digest := map[string]uint64{}, ""
	at := connection.Listing{Kept: true, ListOptions: metav1.ListOptions{
		LabelSelector: api.ManagedByLabel + "=" + st.cfg.Fleet + "," + label + " in (0," + bundlePart + ")", Limit: 500,
	}}
	for {
		page, err := st.conn.Page(ctx, ConfigMaps.GroupVersionResource, api.Namespace, &at.ListOptions)
		if err != nil {
			return false, fmt.Errorf("read inventories: %w", err)
		}
		for i := range page.Items {
			if serials[page.Items[i].Name] = serialOf(&page.Items[i]); page.Items[i].Name == bundleID(st.cfg.Fleet).Name {
				digest = page.Items[i].Annotations[digestKey]
			}
		}
		more, err := at.Next(page, len(page.Items))
		if err != nil {
			return false, fmt.Errorf("read inventories: %w", err)
		}
		if !more {
			break
		}
	}
	for _, inv := range all {
		p := inv.Placement()
		if inv.serial > 0 && st.bundle.counting.Of(p) == nil && serials[nameOf(st.cfg.Fleet, p)] < inv.serial {
			return true, nil
		}
	}
	return len(st.bundle.counting) > 0 && (digest == "" || st.bundle.digest != "" && digest != st.bundle.digest), nil
}
