package inventory

import (
	"context"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Has reports whether an object is a ConfigMap of the store.
func (st *Store) Has(id api.ID) bool { return st.parts.Of(id) != nil }

// Changed returns the placements whose inventories somebody else has changed or deleted by changing
// an object, sorted. suspect says that the values of the object may have changed although its ownership
// has not.
func (st *Store) Changed(id api.ID, suspect bool) []api.PlacementKey {
	known := st.parts.Of(id)
	if known == nil {
		return nil
	}
	if l := st.cfg.Live.Of(id); l != nil && (l.Managed == known.of.Value().managed && !suspect || l.Terminating) {
		return nil
	}
	if id == bundleID(st.cfg.Fleet) {
		var all []api.PlacementKey
		for _, inv := range st.bundle.counting {
			all = append(all, inv.Placement())
		}
		return all
	}
	return []api.PlacementKey{known.of.Value().placement}
}

// WrittenByOthers returns those of some objects that are inventories or claims with our fleet
// name and that others have written. Another gitfleet owns the same fields as we do, so that
// only the version shows this. Who writes an announcement or a bundle writes the claim or inventories, too.
func (st *Store) WrittenByOthers(objects map[api.ID]bool) []api.ID {
	together := []api.ID{announcementID(st.cfg.Fleet), bundleID(st.cfg.Fleet)}
	return slices.DeleteFunc(slices.Collect(maps.Keys(objects)), func(id api.ID) bool {
		if id.Kind != "ConfigMap" || id.Group != "" || id.Namespace != api.Namespace || slices.Contains(together, id) {
			return true
		}
		l, p := st.cfg.Live.Of(id), st.parts.Of(id)
		if l == nil {
			return p == nil
		}
		return l.Fleet != st.cfg.Fleet || p != nil && p.of.Value().managed == l.Managed && p.version >= l.Version
	})
}

// LostToOther reports whether one of some objects is an inventory that others have written and
// that belongs to another fleet, so that the cluster must no longer be written.
func (st *Store) LostToOther(ctx context.Context, objects map[api.ID]bool) bool {
	if st.membership.ID == "" || len(st.WrittenByOthers(objects)) == 0 {
		return false
	}
	at := listingOf(st)
	defer at.Done()
	list, err := st.list(ctx, at)
	if err != nil {
		return true // until the cluster is known to be ours
	}
	for i := range list {
		if o := st.ownerOf(list[i].GetAnnotations(), ""); o.ID != "" && st.membership.isOther(o) {
			return true
		}
	}
	return false
}
