// Package protocol has the values that the reconcile loop and the agents of member clusters exchange.
//
// An agent starts with a [MemberRecord] and is sent a [Membership] and [DriftDecisions], besides works. It answers
// with an [Observation] of its cluster or of one work. The loop keeps these in its ledger; neither side changes them.
package protocol

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An Observation is a report of a member: a [ClusterSeen] or a [WorkSeen]. It is complete, not
// a delta, and immutable.
type Observation interface{ observation() }

func (ClusterSeen) observation() {}
func (WorkSeen) observation()    {}

// A ClusterSeen is the result of one probe of a cluster. Its texts have no secrets.
type ClusterSeen struct {
	Cluster string
	At      time.Time
	Healthy bool   // the API server answered and was ready
	Error   string // why the cluster is not healthy; empty if it is
	// Unrenewed is the reason why the configured credentials are not used, but those from before; empty if they are.
	Unrenewed string `json:",omitempty"`
	// Forbidden are the permissions that the work needs and the cluster does not grant, such as
	// "create, patch deployments.apps"; empty if none are known to be missing. If Healthy is
	// false, they are the reason.
	Forbidden []string `json:",omitempty"`
	// UID is the UID of the kube-system namespace, which identifies the cluster independently
	// of its name. It is empty if it was never read.
	UID string
	// Properties are the observed properties by KubeFleet's names; a missing one is unknown.
	Properties map[string]string
	// Unread is why some of the properties or the namespaces could not be read; empty if all were.
	Unread     string   `json:",omitempty"`
	Namespaces []string // of the cluster; nil if they were not read
	// Inventories are those on the cluster; nil if they were not read.
	Inventories []InventorySeen `json:"Holds"`
	// Owners are the fleets that these inventories name. Nil means that they were not read, so
	// that the previous ones are kept.
	Owners []Owner `json:",omitzero"`
	// Claimant is the member that the claim on the cluster names; empty if there is no claim of this
	// fleet. It was read with Owners.
	Claimant string `json:",omitempty"`
	// Version is the resource version of the namespaces; zero if it was never read.
	Version uint64 `json:",omitempty"`
	// Restored is the last time that the cluster was restored to an earlier state; zero if that was
	// never noticed.
	Restored Restore `json:",omitzero"`
}

// A Restore says that a cluster, or what gitfleet stores there, was restored to an earlier state.
type Restore struct {
	At  time.Time // it was noticed
	Why string    // what shows it
}

// Equal reports whether two restores are the same.
func (r Restore) Equal(o Restore) bool { return r.At.Equal(o.At) && r.Why == o.Why }

// An InventorySeen is a placement with an inventory on a cluster.
type InventorySeen struct {
	Placement api.PlacementKey
	// Revision is the last revision that was applied completely, or that added an object.
	Revision placement.Revision
	Abandon  bool
}

// A WorkSeen is a member's report of one placement. Lists of objects are sorted by ID.
type WorkSeen struct {
	Cluster   string
	Placement api.PlacementKey
	At        time.Time
	// Wrote says that the member has written an object, or has tried to, since the last report.
	Wrote bool
	// Inventory is the serial number of the inventory; zero if it was never written.
	Inventory uint64
	WorkState
}

// A WorkState is what a WorkSeen says about the objects of a placement on a cluster. It is the same on all clusters where the
// placement has nothing unusual.
type WorkState struct {
	Revision placement.Revision `json:",omitzero"`  // of the reported work; zero if there is none
	Removed  bool               `json:",omitempty"` // no object of the placement is left on the cluster
	Done     bool               `json:",omitempty"` // every object of the revision was tried at least once
	// Compared says that the objects were only compared, as in ReportDiff: their availability
	// is not known.
	Compared    bool          `json:",omitempty"`
	Total       int           `json:",omitempty"` // the objects of the work
	Untrackable int           `json:",omitempty"` // the applied objects without a health check
	Exceptions  []ObjectState `json:",omitempty"` // the objects that are not applied, not available, or differ
	// Incidents is nil for most works: call Unusual to read them.
	Incidents *Incidents `json:",omitempty"`
}

// Incidents are what few works have: drift, and deletions that were made, are blocked or are not finished. They are immutable.
type Incidents struct {
	// Drifts are the recorded drifts; if there are very many, only the newest.
	Drifts []Drift `json:",omitempty"`
	// BlockedDeletions are stored under their first name, so that ledgers of earlier versions can be read.
	BlockedDeletions []BlockedDeletion `json:"Braked,omitempty"`
	Deletions        []Deletion        `json:",omitempty"` // since the last report, oldest first
	DeletionErrors   []DeletionError   `json:",omitempty"`
	// Lingering are the objects that have a deletion timestamp and still exist. Of these, Collecting
	// wait for the garbage collector to delete their dependents, and Finalizing have finalizers.
	Lingering  []api.ID     `json:",omitempty"`
	Collecting []api.ID     `json:",omitempty"`
	Finalizing []Finalizing `json:",omitempty"`
	// Terminating says since when and why objects of Lingering still exist, as far as that is known.
	Terminating []Terminating `json:",omitempty"`
	// Waiting are the objects that are deleted once others are gone.
	Waiting []DeletionWait `json:",omitempty"`
}

// Unusual returns the incidents; empty for a nil report.
func (w *WorkState) Unusual() Incidents {
	if w == nil || w.Incidents == nil {
		return Incidents{}
	}
	return *w.Incidents
}

// OrNil returns the incidents; nil if there are none.
func (in Incidents) OrNil() *Incidents {
	if len(in.Drifts)+len(in.BlockedDeletions)+len(in.Deletions)+len(in.DeletionErrors)+len(in.Lingering)+len(in.Waiting) == 0 {
		return nil
	}
	return &in
}

// A Terminating is an object that was deleted and still exists, since when, and why according to its
// conditions; empty if those do not say.
type Terminating struct {
	ID    api.ID
	Since time.Time
	Why   string `json:",omitempty"`
}

// A DeletionWait says that some objects of a placement, such as Example, are deleted once another object
// is gone, which may be one of another placement.
type DeletionWait struct {
	Objects int
	Example api.ID
	For     api.ID
	Of      api.PlacementKey
}

// A DeletionError is why an object could not be deleted.
type DeletionError struct {
	ID      api.ID
	Message string
}

// A Finalizing is an object that was deleted, and its finalizers, separated by commas.
type Finalizing struct {
	ID         api.ID
	Finalizers string
}

// A BlockedDeletion is an object whose deletion needs a commit that allows it, and why.
type BlockedDeletion struct {
	ID  api.ID
	Why string
}

// An ObjectState is a member's report of one object.
type ObjectState struct {
	ID         api.ID
	Version    string
	Envelope   *api.EnvelopeIdentifier `json:",omitempty"`
	Generation int64                   // of the live object; zero if there is none
	Applied    Verdict                 // true, or false with a reason and a cause
	// Pending says that an object that is not applied waits for something that will come
	// without intervention: its CustomResourceDefinition, its namespace, an API server or an
	// admission webhook. Of an applied object it says that the objects of its kind were not listed yet.
	Pending   bool    `json:",omitempty"`
	Available Verdict // without a meaning for an object that is not applied
	// Failure is the reason why an applied object will not become available by itself, such as
	// pods whose image cannot be pulled; empty while it may become available.
	Failure string `json:",omitempty"`
	// Pod is the pod that Failure and the cause of Available name as an example; empty if they name none.
	Pod string `json:",omitempty"`
	// Diffs are the differences between hub and member. Drift says that the object was owned
	// when they arose.
	Diffs []api.Difference `json:",omitempty"`
	Drift bool             `json:",omitempty"`
	// FirstSeen and LastSeen are when the difference was first and last seen.
	FirstSeen, LastSeen time.Time
}

// A Verdict is a condition without its type.
type Verdict struct {
	OK     bool
	Reason string
	// Cause is what has to be known beside the reason, and Sentence what is said around it.
	Cause    string       `json:"Message"`
	Sentence api.Sentence `json:",omitempty"`
	Since    time.Time
}

// Message is the message of the condition.
func (v Verdict) Message() string { return v.Sentence.Message(v.Cause) }

// Applied reports whether every object of the revision is applied.
func (w *WorkState) Applied() bool {
	return w != nil && w.Done && !slices.ContainsFunc(w.Exceptions, func(o ObjectState) bool { return !o.Applied.OK })
}

// Available reports whether every object is applied and available.
func (w *WorkState) Available() bool {
	return w.Applied() && !slices.ContainsFunc(w.Exceptions, func(o ObjectState) bool { return !o.Available.OK })
}

// Failed returns the first object that was refused or, if there is none, the first that will
// not become available by itself; nil if there is neither.
func (w *WorkState) Failed() *ObjectState {
	var unavailable *ObjectState
	for i := range w.Exceptions {
		switch o := &w.Exceptions[i]; {
		case !o.HasFailed():
		case !o.Applied.OK:
			return o
		case unavailable == nil:
			unavailable = o
		}
	}
	return unavailable
}

// Object returns the reported state of an object, which is fine if it was not an exception, or if there is no report.
func (w *WorkState) Object(id api.ID) ObjectState {
	if w != nil {
		i, found := slices.BinarySearchFunc(w.Exceptions, id, func(o ObjectState, id api.ID) int { return o.ID.Compare(id) })
		if found {
			return w.Exceptions[i]
		}
	}
	return ObjectState{Applied: Verdict{OK: true}, Available: Verdict{OK: true}}
}

// Completed returns what is known after a report in which not every object was tried: the last complete report before it, with the
// objects that are now known to be worse, and the deletions of each kind if the newer report has any.
func (w *WorkState) Completed(last *WorkState) *WorkState {
	var worse []ObjectState
	for i := range w.Exceptions {
		o := &w.Exceptions[i]
		if was := last.Object(o.ID); o.isWorse(&was) {
			worse = append(worse, *o)
		}
	}
	in := w.Unusual()
	deleting := len(in.BlockedDeletions)+len(in.DeletionErrors)+len(in.Lingering)+len(in.Waiting) > 0
	if len(worse) == 0 && !deleting {
		return last
	}
	out := *last
	if deleting {
		known := in.completed(last.Unusual())
		out.Incidents = &known
	}
	if len(worse) > 0 {
		out.Exceptions = slices.Concat(worse, last.Exceptions)
		slices.SortStableFunc(out.Exceptions, func(a, b ObjectState) int { return a.ID.Compare(b.ID) })
		out.Exceptions = slices.CompactFunc(out.Exceptions, func(a, b ObjectState) bool { return a.ID == b.ID })
	}
	return &out
}

// completed returns the incidents of a report that is not complete, with the deletions of the last complete one of a kind of which it has none:
// blocked or failed ones, objects that linger, and those that wait.
func (in Incidents) completed(last Incidents) Incidents {
	if len(in.BlockedDeletions) == 0 {
		in.BlockedDeletions = slices.DeleteFunc(slices.Clone(last.BlockedDeletions), func(b BlockedDeletion) bool { return slices.Contains(in.Lingering, b.ID) })
	}
	if len(in.DeletionErrors) == 0 {
		in.DeletionErrors = slices.DeleteFunc(slices.Clone(last.DeletionErrors), func(e DeletionError) bool { return slices.Contains(in.Lingering, e.ID) })
	}
	if len(in.Lingering) == 0 {
		in.Lingering, in.Collecting, in.Finalizing, in.Terminating = last.Lingering, last.Collecting, last.Finalizing, last.Terminating
	}
	if len(in.Waiting) == 0 {
		in.Waiting = last.Waiting
	}
	return in
}

// isWorse reports whether the object is known to have changed for the worse since an earlier report.
func (o *ObjectState) isWorse(was *ObjectState) bool {
	switch {
	case o.Pending:
		return false
	case !o.Applied.OK:
		return was.Applied.OK || was.Pending
	}
	return was.Applied.OK && (was.Available.OK && !o.Available.OK || was.Failure == "" && o.Failure != "")
}

// Identifier names the object as KubeFleet's status does.
func (o *ObjectState) Identifier() api.ResourceIdentifier {
	return api.ResourceIdentifier{
		Group: o.ID.Group, Version: o.Version, Kind: o.ID.Kind, Namespace: o.ID.Namespace, Name: o.ID.Name, Envelope: o.Envelope,
	}
}

// HasFailed reports whether the object will not be applied, or not become available, by itself.
func (o *ObjectState) HasFailed() bool {
	if !o.Applied.OK {
		return !o.Pending
	}
	return !o.Available.OK && o.Failure != ""
}

// FailedObjects is the number of objects that have failed.
func (w *WorkState) FailedObjects() (n int) {
	for i := range w.Exceptions {
		if w.Exceptions[i].HasFailed() {
			n++
		}
	}
	return n
}

// PatchDetails returns the differences without the actors.
func (o *ObjectState) PatchDetails() []api.PatchDetail {
	var out []api.PatchDetail
	for _, d := range o.Diffs {
		out = append(out, d.PatchDetail)
	}
	return out
}

// WithoutSuspended returns the report without the suspended objects, which do not count for the
// health of the cluster.
func (w *WorkState) WithoutSuspended() *WorkState {
	suspended := func(o ObjectState) bool { return o.Applied.Reason == api.Suspended }
	if w == nil || !slices.ContainsFunc(w.Exceptions, suspended) {
		return w
	}
	out := *w
	out.Exceptions = slices.DeleteFunc(slices.Clone(w.Exceptions), suspended)
	return &out
}

// After returns the observation with what only an earlier one has read.
func (o ClusterSeen) After(earlier ClusterSeen) ClusterSeen {
	o.UID, o.Version = cmp.Or(o.UID, earlier.UID), cmp.Or(o.Version, earlier.Version)
	if o.Restored.At.IsZero() {
		o.Restored = earlier.Restored
	}
	if o.Properties == nil {
		o.Properties, o.Unread = earlier.Properties, earlier.Unread
	}
	if o.Namespaces == nil {
		o.Namespaces = earlier.Namespaces
	}
	if o.Inventories == nil {
		o.Inventories = earlier.Inventories
	}
	if o.Owners == nil {
		o.Owners, o.Claimant = earlier.Owners, earlier.Claimant
	}
	return o
}

// A Deletion lists the objects of a placement that a member has deleted in a row for the same
// reason.
type Deletion struct {
	At          time.Time
	Commit, Why string   // those of the work; see work.Cause
	Objects     []api.ID // the first MostDeletedObjects
	Total       int
}

// MostDeletedObjects is the maximum number of objects that a Deletion lists, and
// MostDeletions the maximum number of deletions in a report, which drops the oldest.
const (
	MostDeletedObjects = 5
	MostDeletions      = 20
)

// After returns the report with the deletions of an earlier report inserted before its own, and
// with its writes. The earlier report was never folded.
func (w WorkSeen) After(earlier WorkSeen) WorkSeen {
	w.Wrote = w.Wrote || earlier.Wrote
	if before := earlier.Unusual().Deletions; len(before) > 0 {
		in := w.Unusual()
		all := slices.Concat(before, in.Deletions)
		in.Deletions = all[max(0, len(all)-MostDeletions):]
		w.Incidents = &in
	}
	return w
}

// Deleted returns the deletions that an earlier report does not have. earlier may be nil.
func (w *WorkState) Deleted(earlier *WorkState) []Deletion {
	before := earlier.Unusual().Deletions
	return slices.DeleteFunc(slices.Clone(w.Unusual().Deletions), func(d Deletion) bool {
		return slices.ContainsFunc(before, d.equal)
	})
}

func (d Deletion) equal(o Deletion) bool {
	return d.At.Equal(o.At) && d.Commit == o.Commit && d.Why == o.Why && d.Total == o.Total && slices.Equal(d.Objects, o.Objects)
}
