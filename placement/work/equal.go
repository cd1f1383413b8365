package work

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Equal reports whether two works are equivalent for a member. Of Awaited only the IDs are
// compared.
func (w *Work) Equal(o *Work) bool {
	return w.Placement == o.Placement && w.Revision.Hash == o.Revision.Hash && w.Revision.Commit == o.Revision.Commit &&
		w.Keep == o.Keep && w.Remove == o.Remove && w.Abandon == o.Abandon && w.AllowDelete == o.AllowDelete &&
		w.Cause == o.Cause && w.Drift == o.Drift && w.ClusterDrift == o.ClusterDrift && w.Suspended == o.Suspended &&
		equalLists(w.Holds, o.Holds, Hold.Equal) && slices.Equal(w.SuspendedObjects, o.SuspendedObjects) && equalStrategies(w.Strategy, o.Strategy) &&
		equalLists(w.Manifests, o.Manifests, sameContent) && equalLists(w.Awaited, o.Awaited, sameID)
}

// equalLists compares two lists, which usually share their memory.
func equalLists[T any](a, b []T, equal func(x, y T) bool) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.EqualFunc(a, b, equal))
}

func equalStrategies(a, b api.ApplyStrategy) bool {
	force := func(s api.ApplyStrategy) bool {
		return s.ServerSideApplyConfig != nil && s.ServerSideApplyConfig.ForceConflicts
	}
	if force(a) != force(b) {
		return false
	}
	a.ServerSideApplyConfig, b.ServerSideApplyConfig = nil, nil
	return a == b
}

// sameContent reports whether two manifests have the same object with the same content. The
// lists of works of one revision can differ, since objects can be left to other placements.
func sameContent(a, b *Manifest) bool { return a == b || a.ID == b.ID && a.Hash == b.Hash }

func sameID(a, b *Manifest) bool { return a.ID == b.ID }
