package occurrence

import (
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A ClusterState is a placement on a cluster at one moment.
type ClusterState struct {
	Binding *placement.Binding // nil if the placement does not hold the cluster
	// Seen is the newest report about the assigned revision; nil if there is none. Unlike for ledger.Entry.AppliedAt and AvailableAt,
	// suspended objects count: content is applied once all of it is.
	Seen *protocol.WorkState
}

// A ClusterChange is what has happened to a placement on a cluster.
type ClusterChange struct {
	// Assigned says that another revision was assigned, and Removing that the removal has begun.
	Assigned, Removing bool
	// Applied and Available say that the assigned revision has become that, and Unavailable that it is not available any more.
	Applied, Available, Unavailable bool
	// Failed is the object that was refused or, if none was, that will not become available by itself; nil if none has failed, or if it had
	// failed before.
	Failed *protocol.ObjectState
}

// Since returns what has happened since an earlier state.
func (is ClusterState) Since(was ClusterState) (c ClusterChange) {
	if is.Binding == nil {
		return c
	}
	c.Assigned, c.Removing = assigned(was.Binding, is.Binding), removing(was.Binding, is.Binding)
	if c.Assigned {
		was.Seen = nil
	}
	if is.Seen == was.Seen {
		return c
	}
	available, before := is.Seen.Available(), was.Seen.Available()
	c.Applied = is.Seen.Applied() && !was.Seen.Applied()
	c.Available, c.Unavailable = available && !before, before && !available
	if o, known := failedObject(is.Seen), failedObject(was.Seen); o != nil && (known == nil || known.ID != o.ID) {
		c.Failed = o
	}
	return c
}

// assigned reports whether another revision was assigned. was is nil if the placement did not hold the cluster.
func assigned(was, is *placement.Binding) bool {
	return is.HasRevision() && !is.Removing && (was == nil || was.Assigned.Hash != is.Assigned.Hash)
}

// removing reports whether the removal has begun. was is nil if the placement did not hold the cluster.
func removing(was, is *placement.Binding) bool {
	return is.Removing && (was == nil || !was.Removing)
}

// failedObject returns the object because of which the content of a report has failed; nil if it has not.
func failedObject(seen *protocol.WorkState) *protocol.ObjectState {
	if seen == nil || !seen.Done {
		return nil
	}
	return seen.Failed()
}
