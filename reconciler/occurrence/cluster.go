package occurrence

import (
	"cmp"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A ClusterState is a placement on a cluster at one moment.
type ClusterState struct {
	Binding *placement.Binding // nil if the placement does not hold the cluster
	// Complete is the newest complete report about the assigned revision; nil if there is none. See ledger.Entry.CompleteOf. Unlike for
	// ledger.Entry.AppliedAt and AvailableAt, suspended objects count: content is applied once all of it is.
	Complete *protocol.WorkState
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

var noBinding placement.Binding

// Since returns what has happened since an earlier state.
func (is ClusterState) Since(was ClusterState) (c ClusterChange) {
	now, before := cmp.Or(is.Binding, &noBinding), cmp.Or(was.Binding, &noBinding)
	c.Assigned = now.HasRevision() && !now.Removing && now.Assigned.Hash != before.Assigned.Hash
	c.Removing = now.Removing && !before.Removing
	if c.Assigned {
		was.Complete = nil
	}
	if is.Complete == was.Complete {
		return c
	}
	available, wasAvailable := is.Complete.Available(), was.Complete.Available()
	c.Applied = is.Complete.Applied() && !was.Complete.Applied()
	c.Available, c.Unavailable = available && !wasAvailable, wasAvailable && !available
	if o, known := failedObject(is.Complete), failedObject(was.Complete); o != nil && (known == nil || known.ID != o.ID) {
		c.Failed = o
	}
	return c
}

// failedObject returns the object because of which the content of a report has failed; nil if it has not.
func failedObject(seen *protocol.WorkState) *protocol.ObjectState {
	if seen == nil {
		return nil
	}
	return seen.Failed()
}
