// Package work renders the content of a placement for one cluster.
//
// A [Renderer] is created once for a placement at a commit: it opens envelopes, sorts the
// objects and finds the overrides that apply. Its For method then renders the content for one
// cluster. Clusters with the same content share the result, so that rendering for a hundred
// thousand bindings costs next to nothing unless overrides apply to the clusters.
package work

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Work is the desired content of one cluster for one placement.
type Work struct {
	Placement api.PlacementKey
	Revision  placement.Revision
	// Strategy is always that of the commit in force; it is not rolled out. Its defaults are set.
	Strategy api.ApplyStrategy
	// Drift is the newest api.DriftAnnotation of the placement; empty if there is none.
	Drift string
	// ClusterDrift is the newest api.DriftAnnotation of the cluster; empty if it has none.
	ClusterDrift string
	// Manifests are in canonical order, and every ID occurs once.
	Manifests []*Manifest
	// Awaited is the newest content of the placement for the cluster, in canonical order, if
	// the rollout has not reached the cluster and its objects differ from Manifests. Until then
	// no placement deletes any of them: one that gives an object up hands it over.
	Awaited []*Manifest
	// Keep leaves everything that the cluster has of the placement as it is, since the desired
	// content is not known at the moment. Manifests is then empty.
	Keep bool
	// Remove says that the placement is to be removed from the cluster. Manifests is then
	// empty.
	Remove bool
	// Abandon says that objects stay on the cluster when the placement is removed.
	Abandon bool
	// AllowDelete says that a commit allows deletions that would otherwise be blocked.
	AllowDelete bool
	// DeletionBlocks are the deletions that need a commit which allows them; nil if one does.
	DeletionBlocks []DeletionBlock
	// Cause is the reason for deleting objects that the placement gives up.
	Cause Cause
	// Suspended is the reason why the placement writes nothing to the cluster; empty if it
	// does. Its objects are still watched and compared.
	Suspended string
	// SuspendedObjects are the suspended objects of the cluster, of all placements, by ID.
	SuspendedObjects []SuspendedObject
}

// Unreleased reports whether the placement writes nothing to the cluster yet, and only keeps
// what is handed over to it.
func (w *Work) Unreleased() bool {
	return w.Revision == placement.Revision{} && w.Keep && len(w.Manifests) == 0
}

// A Cause is why objects are deleted.
type Cause struct {
	// Commit is the commit that led to the deletion; empty if it is not known.
	Commit string
	// Why is the reason, as a clause without a full stop.
	Why string
}

// A SuspendedObject is an object that is watched and not written.
type SuspendedObject struct {
	ID  api.ID
	Why string
}

// SuspendedReason returns why an object is suspended; empty if it is not.
func (w *Work) SuspendedReason(id api.ID) string {
	if w.Suspended != "" {
		return w.Suspended
	}
	i, found := slices.BinarySearchFunc(w.SuspendedObjects, id, func(s SuspendedObject, id api.ID) int { return s.ID.Compare(id) })
	if !found {
		return ""
	}
	return w.SuspendedObjects[i].Why
}

// A Manifest is one object for one or more clusters. It is immutable and shared between works
// of equal content.
type Manifest struct {
	*api.Object
	// Envelope is the envelope of the object; nil if there is none.
	Envelope *api.EnvelopeIdentifier
	// Encrypted is what is encrypted in the object; nil if nothing is. Such an object is not
	// applied, and stays on the cluster as it is there.
	Encrypted *api.Ciphertext
	// Overridden says that overrides have changed the object.
	Overridden bool
}

// Identifier returns the manifest's identifier in a status, with its envelope.
func (m *Manifest) Identifier() api.ResourceIdentifier {
	id := m.Object.Identifier()
	id.Envelope = m.Envelope
	return id
}

// A Release identifies a chart of a placement: a HelmChart or a ClusterHelmChart, or an entry of helmCharts in a kustomization,
// which an overlay may build.
type Release struct {
	Envelope api.EnvelopeIdentifier
	Chart    string
}

// Release returns the chart that an object is from; false if it is from none.
func (m *Manifest) Release() (r Release, is bool) {
	if m.Envelope != nil {
		r.Envelope = *m.Envelope
	}
	r.Chart = m.Object.Release
	return r, r.Chart != "" || m.Envelope != nil && m.Envelope.Type.IsChart()
}

// Hook returns when an object of a chart is applied; false if it is no hook of a chart.
func (m *Manifest) Hook() (api.Hook, bool) {
	if _, is := m.Release(); !is {
		return api.Hook{}, false
	}
	return api.HookOf(m.Object.Content.Object)
}

// Sorted returns the manifests in canonical order.
func Sorted(manifests []*Manifest) []*Manifest {
	return placement.Sorted(manifests, func(m *Manifest) *api.Object { return m.Object })
}

// Equal reports whether two works are equivalent for a member. Of Awaited only the IDs are
// compared.
func (w *Work) Equal(o *Work) bool {
	return w.Placement == o.Placement && w.Revision.Hash == o.Revision.Hash && w.Revision.Commit == o.Revision.Commit &&
		w.Keep == o.Keep && w.Remove == o.Remove && w.Abandon == o.Abandon && w.AllowDelete == o.AllowDelete &&
		w.Cause == o.Cause && w.Drift == o.Drift && w.ClusterDrift == o.ClusterDrift && w.Suspended == o.Suspended &&
		equalLists(w.DeletionBlocks, o.DeletionBlocks, DeletionBlock.Equal) && slices.Equal(w.SuspendedObjects, o.SuspendedObjects) && equalStrategies(w.Strategy, o.Strategy) &&
		equalLists(w.Manifests, o.Manifests, sameContent) && equalLists(w.Awaited, o.Awaited, sameID)
}

// Find returns the work of a placement among works that are sorted by placement, as those of a plan are; nil if there is none.
func Find(works []*Work, p api.PlacementKey) *Work {
	i, found := slices.BinarySearchFunc(works, p, func(w *Work, p api.PlacementKey) int { return w.Placement.Compare(p) })
	if !found {
		return nil
	}
	return works[i]
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
