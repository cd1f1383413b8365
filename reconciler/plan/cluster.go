package plan

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// OnCluster is the plan for one placement on one cluster.
type OnCluster struct {
	// Binding is that of Entry if nothing in it has changed.
	Binding *placement.Binding
	Entry   *ledger.Entry // nil for a new binding
	// latest is shared with other clusters that have the same one, and nil if there is none: call Latest to read it.
	latest *placement.Revision
	// Content is the content of Latest; empty if there is none.
	Content *work.Rendered
	// Err is the reason why Latest has no content: a *work.OverrideError or *work.EnvelopeError.
	Err error
	// Waits is the reason why the cluster does not get Latest yet; empty if it does.
	Waits string
	// TimedOut says that the Failure is the availability timeout, and DeleteAllowed that a commit allows the deletions on
	// this cluster.
	TimedOut, DeleteAllowed bool
	// notRenderable says that the PreviousContent cannot be rendered.
	notRenderable bool
	// Deferred says that it waits for the end of a freeze or the opening of a window. Overdue says that it has waited for longer than
	// the window allows.
	Deferred, Overdue bool
	// work is the work of the cluster for the placement; nil if there is none yet.
	work *work.Work
	// PreviousContent is the content assigned before this plan, or before the removal began; nil if there is none, if it
	// cannot be rendered, or if it is not known.
	PreviousContent *work.Rendered
	// Circumstances is nil if there are none: call Unusual to read them.
	Circumstances *Circumstances
}

// Circumstances are kept apart from OnCluster because they are empty for nearly all clusters, and a fleet has many of them. They are
// immutable.
type Circumstances struct {
	// Failure is the reason why the assigned content will not become available by itself; empty if it is available,
	// progressing or not judged.
	Failure string
	// Suspended is the reason why the placement writes nothing to the cluster; empty if it does.
	Suspended string
	// Refusal is the reason why nothing at all is written to the cluster: it is set if another fleet or another
	// member has claimed the cluster.
	Refusal string
	// Deviation has the differences between the assigned content and the objects that the cluster is sent, because other
	// placements select the same objects.
	Deviation ledger.Deviation
	// Yielded are the objects left to other placements, by ID.
	Yielded []Yielded
	// provenContent is the assigned content if it is the proven one, or that of a staged update run: neither Latest nor
	// PreviousContent.
	provenContent *work.Rendered
	// deferredUntil is the end of a freeze or the opening of a window that the cluster waits for, if that is known.
	deferredUntil time.Time
	// suspendedSince is since when the placement writes nothing to the cluster; zero if it does.
	suspendedSince time.Time
	// suspendedObjects are the objects on the cluster that no placement writes.
	suspendedObjects []work.SuspendedObject
	// driftRule is the api.DriftAnnotation of the cluster.
	driftRule string
	// leftover is the content of the leftover revision before this plan; nil as PreviousContent.
	leftover *work.Rendered
	// loading is a commit after whose loading more of PreviousContent and leftover will be known; empty if there is none.
	loading string
}

// empty reports whether a cluster is in no circumstances.
func (s *Circumstances) empty() bool {
	return s.Failure == "" && s.Suspended == "" && s.Refusal == "" && s.Deviation.Empty() && len(s.Yielded) == 0 &&
		s.provenContent == nil && s.deferredUntil.IsZero() && s.suspendedSince.IsZero() && len(s.suspendedObjects) == 0 && s.driftRule == "" && s.leftover == nil && s.loading == ""
}

// equals reports whether circumstances are the same in memory.
func (s *Circumstances) equals(o *Circumstances) bool {
	return s == o || s.Failure == o.Failure && s.Suspended == o.Suspended && s.Refusal == o.Refusal && s.Deviation.Identical(o.Deviation) &&
		ledger.Identical(s.Yielded, o.Yielded) && s.provenContent == o.provenContent && s.deferredUntil == o.deferredUntil && s.suspendedSince == o.suspendedSince &&
		ledger.Identical(s.suspendedObjects, o.suspendedObjects) && s.driftRule == o.driftRule && s.leftover == o.leftover && s.loading == o.loading
}

var noCircumstances Circumstances

// Unusual returns the circumstances of the cluster, which may be empty.
func (c *OnCluster) Unusual() *Circumstances {
	if c.Circumstances == nil {
		return &noCircumstances
	}
	return c.Circumstances
}

// change replaces the circumstances of the cluster by a changed copy.
func (c *OnCluster) change(change func(*Circumstances)) {
	next := *c.Unusual()
	change(&next)
	c.setCircumstances(&next)
}

// setCircumstances replaces the circumstances of the cluster by a copy of these, which may be empty.
func (c *OnCluster) setCircumstances(next *Circumstances) {
	if c.Circumstances = nil; !next.empty() {
		own := *next
		c.Circumstances = &own
	}
}

// DeferredUntil returns the end of a freeze or the opening of a window that the cluster waits for; zero if that is not known.
func (c *OnCluster) DeferredUntil() time.Time { return c.Unusual().deferredUntil }

// Yielded is an object that two placements select on a cluster and that the other one owns.
type Yielded struct {
	*work.Manifest
	// To is the owner, and Origin its position in Git; zero if the owner is no longer in the commit in force.
	To     api.PlacementKey
	Origin api.Origin
	// Passing says that the owner gives the object up once its rollout reaches the cluster.
	Passing bool
}

// noContent is the content of a cluster without a newest revision.
var noContent = &work.Rendered{}

// Latest returns the newest revision for the cluster, assigned once the rollout allows it. Its Hash is empty if there is none.
func (c *OnCluster) Latest() placement.Revision {
	if c.latest == nil {
		return placement.Revision{}
	}
	return *c.latest
}

// SetLatest replaces the newest revision for the cluster.
func (c *OnCluster) SetLatest(r placement.Revision) { c.latest = &r }

// UpToDate reports whether the latest content is assigned to the cluster.
func (c *OnCluster) UpToDate() bool { return c.Binding.Assigned.Hash == c.Latest().Hash }

// holdsLatest reports whether all of the latest content was applied once, even if somebody has changed objects since.
func (c *OnCluster) holdsLatest() bool {
	return c.UpToDate() && c.Entry != nil && c.Entry.Binding.Assigned == c.Binding.Assigned && !c.Entry.AppliedAt().IsZero()
}

// Unbuilt reports whether the newest content cannot be rendered because of what overlays have for this cluster. The cluster
// keeps its revision, and the rollout goes on without it.
func (c *OnCluster) Unbuilt() bool {
	if c.Err == nil {
		return false
	}
	var failed *work.EnvelopeError
	return errors.As(c.Err, &failed) && failed.Overlays && !c.UpToDate()
}

// Leaves reports whether an object of the content is left to another placement.
func (c *OnCluster) Leaves(id api.ID) bool {
	return slices.ContainsFunc(c.Unusual().Yielded, func(y Yielded) bool { return y.ID == id })
}

// BlockedDeletions are the deletions that the member blocks, by ID; pending says that a commit has allowed them since.
func (c *OnCluster) BlockedDeletions() (blocked []protocol.BlockedDeletion, pending bool) {
	seen := c.LastKnown()
	return seen.Unusual().BlockedDeletions, seen != nil && c.DeleteAllowed
}

func (c *OnCluster) blocksDeletions() bool {
	blocked, _ := c.BlockedDeletions()
	return len(blocked) > 0
}

// Seen returns the newest report of the member about the assigned revision, or nil if it has sent none since the assignment.
func (c *OnCluster) Seen() *protocol.WorkState { return c.Entry.SeenOf(c.Binding) }

// LastKnown returns what is known of the assigned revision on the cluster; nil if the member has not reported since the assignment.
// While the reports are not complete, because the member reconnects, it is what the last complete one said; see
// ledger.Entry.CompleteOf. A rollout must not rely on what was available before: see placementPlanner.rolloutStatus.
func (c *OnCluster) LastKnown() *protocol.WorkState {
	seen, complete := c.Seen(), c.Entry.CompleteOf(c.Binding)
	if complete == nil || complete.Compared != seen.Compared {
		return seen
	}
	return complete
}

func selected(c *OnCluster) bool { return !c.Binding.Unscheduled && !c.Binding.Removing }

// isSuspended reports whether all objects that a report leaves out as suspended still are. Otherwise the member has to
// report again: what is not known of them is not available.
func (c *OnCluster) isSuspended(w *protocol.WorkState) bool {
	return c.Unusual().Suspended != "" || !slices.ContainsFunc(w.Exceptions, func(o protocol.ObjectState) bool {
		now := func(s work.SuspendedObject) bool { return s.ID == o.ID }
		return o.Applied.Reason == api.Suspended && !slices.ContainsFunc(c.Unusual().suspendedObjects, now)
	})
}

// recordAssignment records in the binding what an assignment says of the content that the cluster keeps, or gets. index is the
// number of the newest content.
func (c *OnCluster) recordAssignment(a rollout.Assignment, index int) {
	b := c.Binding
	if !a.Changed && a.Hash == c.Latest().Hash && index > int(max(b.Index, b.SameAs)) {
		b.SameAs = int32(index)
	}
	b.Risked, b.WasAvailable = a.Risked, a.WasAvailable
}

// setFailure records that the assigned content has failed. After a timeout the message names what the cluster was
// waiting for.
func (c *OnCluster) setFailure(f rollout.Failure) {
	why := f.Reason
	if c.TimedOut = f.TimedOut; f.TimedOut {
		why += c.awaited()
	}
	c.change(func(in *Circumstances) { in.Failure = why })
}

// awaited names the first object that is not applied or not available, after a colon; empty if none is.
func (c *OnCluster) awaited() string {
	for _, o := range c.Seen().WithoutSuspended().Exceptions {
		switch {
		case !o.Applied.OK:
			return ": " + o.ID.String() + ": " + o.Applied.Cause
		case !o.Available.OK:
			return ": " + o.ID.String() + ": " + o.Available.Cause
		}
	}
	return ""
}

// failure describes the first object that failed, with the reason; empty if none did.
func (c *OnCluster) failure(w *protocol.WorkState) string {
	if o := w.Failed(); o != nil {
		return o.ID.String() + ": " + cmp.Or(o.Failure, o.Applied.Cause)
	}
	if c.UpToDate() && len(c.Content.Refused) > 0 {
		return c.Content.Refused[0].ID.String() + ": " + c.Content.Refused[0].Cause
	}
	for _, y := range c.Unusual().Deviation.Yields {
		if !y.Passing {
			return y.ID.String() + ": the placement " + y.To.String() + " has it on this cluster"
		}
	}
	return ""
}

func (c *OnCluster) renderError() string {
	if c.Err != nil {
		return c.Err.Error()
	}
	return "the assigned content can no longer be rendered"
}

// keepBinding replaces the binding by that of the ledger if both are the same, and by a copy of its own otherwise.
func (c *OnCluster) keepBinding() {
	if c.Entry != nil && c.Entry.Binding.Equal(*c.Binding) {
		c.Binding = &c.Entry.Binding
	} else {
		own := *c.Binding
		c.Binding = &own
	}
}

// equals reports whether two plans for a cluster, with the same record in the ledger, are equal. Plans with rare content are
// never the same.
func (c *OnCluster) equals(o *OnCluster) bool {
	rare := func(c *OnCluster) bool {
		return c.Entry == nil || c.work == nil || c.Err != nil || c.Unusual().provenContent != nil || c.Unusual().leftover != nil || len(c.Unusual().Yielded) > 0
	}
	return c.Entry == o.Entry && !rare(c) && !rare(o) && *c.Binding == *o.Binding && c.Latest() == o.Latest() && sameRendered(c.Content, o.Content) &&
		c.Waits == o.Waits && c.TimedOut == o.TimedOut && c.Unusual().equals(o.Unusual()) && c.DeleteAllowed == o.DeleteAllowed && sameWork(c.work, o.work) &&
		sameRendered(c.PreviousContent, o.PreviousContent) &&
		c.notRenderable == o.notRenderable && c.Deferred == o.Deferred && c.Overdue == o.Overdue
}

// sameRendered reports whether two contents, which may be nil, are the same in memory.
func sameRendered(a, b *work.Rendered) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Hash == b.Hash && ledger.Identical(a.Manifests, b.Manifests) && ledger.Identical(a.Refused, b.Refused) &&
		slices.Equal(a.ClusterOverrides, b.ClusterOverrides) && slices.Equal(a.Overrides, b.Overrides)
}

// sameWork reports whether two works are equal and have the same manifests in memory: those of another commit may have
// moved to another file, which is not part of their equality.
func sameWork(a, b *work.Work) bool {
	return a == b || a != nil && b != nil && slices.Equal(a.Manifests, b.Manifests) && slices.Equal(a.Awaited, b.Awaited) && a.Equal(b)
}
