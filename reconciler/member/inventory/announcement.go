package inventory

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/gzipped"
)

// An announcement is a ConfigMap that lists what is about to be applied for the first time for several
// placements, so that their inventories, each of which is written anyway after that, need not be written before,
// too. A cluster that joins a fleet of a hundred placements is thus written to a hundred times less.
//
// Of each placement it has the serial number that the next write of its inventory gets, and it counts for the
// placement as long as the inventory on the cluster has a lower one. It is deleted with the last inventory that is
// written, and has nothing of a placement whose inventory is deleted, since that would begin to count again. It has
// the labels of inventories, so that one list request reads both.

// announcementPart is the value of label on an announcement.
const announcementPart = "announcement"

// announcementID returns the ID of the announcement of a fleet name.
func announcementID(fleet string) api.ID {
	return fleetConfigMap("announcement-", fleet)
}

// Announce writes an announcement of items that were added to inventories. It reports false if there is an
// earlier one that still counts, if this one would be too large for a ConfigMap, or if it could not be written:
// the inventories are then to be written with their new items.
func Announce(ctx context.Context, st *Store, all []*Inventory, added map[api.PlacementKey][]Item) bool {
	if len(st.announced) > 0 {
		return false
	}
	entries, list := make(map[api.PlacementKey]announced, len(all)), make([]encoded, 0, len(all))
	for _, inv := range all {
		p := inv.Placement()
		entries[p] = announced{inv, nextSerial(st, p)}
		list = append(list, entries[p].encoded(added[p]))
	}
	raw, err := packAdditions(list)
	if err != nil || len(raw) > partSize || st.ensureClaim(ctx) != nil {
		return false
	}
	st.announced = map[api.PlacementKey]announced{} // if the response is lost, it may be there, and is deleted later
	if writeTogether(ctx, st, announcementID(st.cfg.Fleet), announcementPart, raw) != nil {
		return false
	}
	st.announced, st.inAnnouncement = entries, keysOf(entries)
	return true
}

// packAdditions returns the bytes of an announcement.
func packAdditions(list []encoded) ([]byte, error) {
	slices.SortFunc(list, func(a, b encoded) int { return a.Placement.Compare(b.Placement) })
	return gzipped.Encode(func(w io.Writer) error { return json.NewEncoder(w).Encode(list) })
}

// writeTogether writes a ConfigMap of several placements. part is the value of label on it.
func writeTogether(ctx context.Context, st *Store, id api.ID, part string, raw []byte) error {
	body, err := encodeConfigMap(st, id.Name, part, map[string]any{digestKey: digestOf(raw).String()}, raw)
	if err != nil {
		return err
	}
	return st.withNamespace(ctx, func() error {
		written, err := st.conn.Patch(ctx, ConfigMaps, id, body, true)
		if err == nil {
			st.put(api.PlacementKey{}, written)
		}
		return err
	})
}

// addAnnounced adds to inventories the items of the announcement on the cluster, if there is one, as far as it
// counts. The inventories are then written anew.
func addAnnounced(st *Store, o *unstructured.Unstructured, all *List, left *unpacking) error {
	if o == nil {
		return nil
	}
	st.put(api.PlacementKey{}, o)
	st.announced, st.inAnnouncement = map[api.PlacementKey]announced{}, map[api.PlacementKey]bool{}
	additions, err := listIn(o, left)
	if stop := left.stops(err); stop != nil {
		return stop
	}
	if err != nil {
		st.cfg.Log.Error("announcement of new objects is damaged; what is new in it and was applied is found again once it is applied again",
			"cluster", st.cfg.Cluster, "object", o.GetName(), "err", err)
		return nil
	}
	owner := st.ownerOf(o.GetAnnotations(), "")
	for _, a := range additions {
		p := a.Placement()
		st.inAnnouncement[p] = true
		inv := all.Of(p)
		if inv != nil && inv.serial >= a.serial {
			continue
		}
		serial := a.serial
		if inv == nil {
			a.setOwner(owner)
			a.serial = 0
			all.Put(a)
			st.announced[p] = announced{a, serial}
			continue
		}
		st.announced[p] = announced{inv, serial}
		for it := range a.Items.All() {
			if inv.Items.Of(it.ID()) == nil {
				inv.Items.Put(it)
			}
		}
		inv.SetRevision(a.Revision())
		inv.Abandon = a.Abandon
		inv.Invalidate()
	}
	return nil
}

// withdraw removes a placement from the announcement in memory once its inventory is written: the serial number of the
// inventory voids the entry on the cluster. After the last one it deletes the ConfigMap. If that fails, nothing in the
// ConfigMap counts all the same, and the next write of an inventory tries again.
func withdraw(ctx context.Context, st *Store, p api.PlacementKey) {
	delete(st.announced, p)
	if st.announced != nil && len(st.announced) == 0 {
		deleteAnnouncement(ctx, st) //nolint:errcheck // nothing in it counts, and the next write of an inventory tries again
	}
}

// keysOf returns the placements of an announcement.
func keysOf(additions map[api.PlacementKey]announced) map[api.PlacementKey]bool {
	keys := make(map[api.PlacementKey]bool, len(additions))
	for p := range additions {
		keys[p] = true
	}
	return keys
}

func deleteAnnouncement(ctx context.Context, st *Store) error {
	id := announcementID(st.cfg.Fleet)
	if _, err := st.conn.Delete(ctx, ConfigMaps, id, "", metav1.DeletePropagationBackground); err != nil {
		return err
	}
	st.announced, st.inAnnouncement = nil, nil
	st.drop(id)
	return nil
}
