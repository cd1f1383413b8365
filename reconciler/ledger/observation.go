package ledger

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An Observation is a report of a member: a [ClusterSeen] or a [WorkSeen]. It is complete, not
// a delta, and immutable.
type Observation interface{ observation() }

// A ClusterSeen is the result of one probe of a cluster.
type ClusterSeen struct {
	Cluster string
	At      time.Time
	// Healthy says that the API server answered and was ready.
	Healthy bool
	// Error is the reason why the cluster is not healthy, without secrets; empty if it is
	// healthy.
	Error string
	// Unrenewed is the reason why replaced credentials are not used, without secrets; empty if
	// there are none.
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
	// Namespaces are the namespaces of the cluster; nil if they were not read.
	Namespaces []string
	// Holds are the placements with inventories on the cluster; nil if they were not read.
	Holds []InventorySeen
	// Owners are the fleets that these inventories name. Nil means that they were not read, so
	// that the previous ones are kept.
	Owners []Owner `json:",omitzero"`
}

// An InventorySeen is a placement with an inventory on a cluster.
type InventorySeen struct {
	Placement api.PlacementKey
	// Revision is the last revision that was applied completely, or that added an object.
	Revision placement.Revision
	Abandon  bool
}

// A WorkSeen is a member's report of one placement.
type WorkSeen struct {
	Cluster   string
	Placement api.PlacementKey
	At        time.Time
	// Revision is the revision of the reported work; zero if there is none.
	Revision placement.Revision
	// Removed says that no object of the placement is left on the cluster.
	Removed bool
	// Done says that every object of the revision was tried at least once.
	Done bool
	// Compared says that the objects were only compared, as in ReportDiff: their availability
	// is not known.
	Compared bool `json:",omitempty"`
	// Total counts the objects of the work.
	Total int
	// Untrackable counts the applied objects without a health check.
	Untrackable int
	// Exceptions are the objects that are not applied, not available, or differ, by ID.
	Exceptions []ObjectState
	// Drifts are the recorded drifts, by ID; if there are very many, only the newest.
	Drifts []Drift `json:",omitempty"`
	// Braked are the objects whose deletion is held, by ID.
	Braked []Braked `json:",omitempty"`
	// Deletions lists the objects deleted since the last report, oldest first.
	Deletions []Deletion `json:",omitempty"`
	// DeletionErrors are the objects that could not be deleted, by ID.
	DeletionErrors []DeletionError `json:",omitempty"`
	// Lingering are the objects that have a deletion timestamp and still exist, by ID.
	Lingering []api.ID `json:",omitempty"`
	// Collecting are the objects of Lingering that wait for the garbage collector to delete
	// their dependents, by ID.
	Collecting []api.ID `json:",omitempty"`
	// Finalizing are the objects of Lingering that have finalizers, by ID.
	Finalizing []Finalizing `json:",omitempty"`
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

// A Braked is an object whose deletion is held, and why.
type Braked struct {
	ID  api.ID
	Why string
}

// An ObjectState is a member's report of one object.
type ObjectState struct {
	ID       api.ID
	Version  string
	Envelope *api.EnvelopeIdentifier `json:",omitempty"`
	// Generation is the live object's generation; zero if there is none.
	Generation int64
	// Applied is true, or false with a reason and a message.
	Applied Verdict
	// Pending says that an object that is not applied waits for something that will come
	// without intervention: its CustomResourceDefinition, its namespace, an API server or an
	// admission webhook.
	Pending bool `json:",omitempty"`
	// Available has no meaning for an object that is not applied.
	Available Verdict
	// Failure is the reason why an applied object will not become available by itself, such as
	// pods whose image cannot be pulled; empty while it may become available.
	Failure string `json:",omitempty"`
	// Diffs are the differences between hub and member. Drift says that the object was owned
	// when they arose.
	Diffs []api.Difference `json:",omitempty"`
	Drift bool             `json:",omitempty"`
	// FirstSeen and LastSeen are when the difference was first and last seen.
	FirstSeen, LastSeen time.Time
}

// A Verdict is a condition without its type.
type Verdict struct {
	OK      bool
	Reason  string
	Message string
	Since   time.Time
}

func (ClusterSeen) observation() {}
func (WorkSeen) observation()    {}

// Applied reports whether every object of the revision is applied.
func (w *WorkSeen) Applied() bool {
	if w == nil || !w.Done {
		return false
	}
	for i := range w.Exceptions {
		if !w.Exceptions[i].Applied.OK {
			return false
		}
	}
	return true
}

// Available reports whether every object is applied and available.
func (w *WorkSeen) Available() bool {
	if !w.Applied() {
		return false
	}
	for i := range w.Exceptions {
		if !w.Exceptions[i].Available.OK {
			return false
		}
	}
	return true
}

// Failed returns the first object that was refused or, if there is none, the first that will
// not become available by itself; nil if there is neither.
func (w *WorkSeen) Failed() *ObjectState {
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

// HasFailed reports whether the object will not be applied, or not become available, by itself.
func (o *ObjectState) HasFailed() bool {
	if !o.Applied.OK {
		return !o.Pending
	}
	return !o.Available.OK && o.Failure != ""
}

// WithoutSuspended returns the report without the suspended objects, which do not count for the
// health of the cluster.
func (w *WorkSeen) WithoutSuspended() *WorkSeen {
	left := func(o ObjectState) bool { return o.Applied.Reason == api.Suspended }
	if w == nil || !slices.ContainsFunc(w.Exceptions, left) {
		return w
	}
	out := *w
	out.Exceptions = slices.DeleteFunc(slices.Clone(w.Exceptions), left)
	return &out
}

// Fold adds an observation, and reports whether anything has changed that matters to a plan or
// a report. It drops outdated observations, and those about a placement that does not hold the
// cluster. Fold is idempotent.
func (l *Ledger) Fold(o Observation) bool {
	switch o := o.(type) {
	case ClusterSeen:
		return l.foldCluster(o)
	case WorkSeen:
		return l.foldWork(o)
	}
	return false
}

func (l *Ledger) foldCluster(o ClusterSeen) bool {
	old := l.clusters[o.Cluster]
	if old != nil && o.At.Before(old.At) {
		return false
	}
	next := Cluster{ClusterSeen: o, Since: o.At}
	if len(o.Forbidden) > 0 {
		next.ForbiddenSince = o.At
		if old != nil && len(old.Forbidden) > 0 {
			next.ForbiddenSince = old.ForbiddenSince
		}
	}
	if o.Properties != nil {
		next.Observed = o.At
	}
	if old != nil {
		next.carryOver(old)
	}
	if o.Healthy {
		next.LastSeen = o.At
		if next.Joined.IsZero() {
			next.Joined = o.At
		}
	}
	if o.Owners != nil {
		l.findRivals(&next)
	}
	rebuilt := l.rebuild(&next)
	news := old == nil || !next.same(old)
	if news {
		next.version = l.next()
	}
	l.clusters[o.Cluster] = &next
	l.markUnsaved(clusterKey(o.Cluster))
	return rebuilt || news
}

// carryOver copies the facts that this observation did not read from the previous one.
func (c *Cluster) carryOver(old *Cluster) {
	c.LastSeen, c.Joined, c.version = old.LastSeen, old.Joined, old.version
	if c.Healthy == old.Healthy {
		c.Since = old.Since
	}
	if c.Properties == nil {
		c.Observed = old.Observed
	}
	if c.Owners == nil {
		c.Rivals = old.Rivals
	}
	c.ClusterSeen = c.After(old.ClusterSeen)
}

// After returns the observation with what only an earlier one has read.
func (o ClusterSeen) After(earlier ClusterSeen) ClusterSeen {
	o.UID = cmp.Or(o.UID, earlier.UID)
	if o.Properties == nil {
		o.Properties = earlier.Properties
	}
	if o.Namespaces == nil {
		o.Namespaces = earlier.Namespaces
	}
	if o.Holds == nil {
		o.Holds = earlier.Holds
	}
	if o.Owners == nil {
		o.Owners = earlier.Owners
	}
	return o
}

// same reports whether two records of a cluster are equal except for the time of observation.
func (c *Cluster) same(o *Cluster) bool {
	return c.Healthy == o.Healthy && c.Error == o.Error && c.Unrenewed == o.Unrenewed && slices.Equal(c.Forbidden, o.Forbidden) && c.UID == o.UID && c.Joined.Equal(o.Joined) &&
		maps.Equal(c.Properties, o.Properties) && slices.Equal(c.Owners, o.Owners) && slices.Equal(c.Rivals, o.Rivals) &&
		(c.Namespaces == nil) == (o.Namespaces == nil) && slices.Equal(c.Namespaces, o.Namespaces)
}

// rebuild adds bindings from a cluster's inventories that the ledger does not have. They have
// no policy, so that they are scheduled again; the scheduler prefers their clusters. Whether a
// cluster was available before its last update is not known; it is assumed, so that a failed
// update still stops the rollout. rebuild waits until the ID of the fleet is known.
func (l *Ledger) rebuild(c *Cluster) bool {
	if l.Pending() {
		return false
	}
	holds := c.Holds
	if c.Holds = nil; len(c.Rivals) > 0 {
		return false
	}
	changed := false
	for _, h := range holds {
		if l.placements[h.Placement] == nil {
			l.SetPlacement(h.Placement, Placement{Index: -1, Abandon: h.Abandon, Rebuilt: true})
		}
		if l.placements[h.Placement].entries[c.Cluster] == nil {
			l.Bind(h.Placement, placement.Binding{Cluster: c.Cluster, Assigned: h.Revision, AssignedAt: c.At, Risked: true})
			changed = true
		}
	}
	return changed
}

func (l *Ledger) foldWork(o WorkSeen) bool {
	p := l.placements[o.Placement]
	if p == nil {
		return false
	}
	e := p.entries[o.Cluster]
	if e == nil || e.Seen != nil && o.At.Before(e.Seen.At) {
		return false
	}
	if o.Removed && !e.Binding.Removing {
		return false // from an earlier removal; the placement exists again
	}
	next := *e
	next.Seen = o.since(e.Seen)
	switch {
	case o.Revision.Hash != e.Binding.Assigned.Hash || !o.Available() || o.Compared:
		next.AvailableSince = time.Time{}
	case e.AvailableSince.IsZero():
		next.AvailableSince = o.At
	}
	switch judged := o.WithoutSuspended(); {
	case o.Revision.Hash != e.Binding.Assigned.Hash || o.At.Before(e.Binding.AssignedAt):
	case judged.Available():
		next.UnavailableSince = time.Time{}
	case o.Done && e.UnavailableSince.IsZero():
		next.UnavailableSince = o.At
	}
	next.recordProgress(o)
	next.reported = true
	if key := entryKey(o.Placement, o.Cluster); sameDrifts(e.drifts(), o.Drifts) {
		l.markUnsaved(key)
	} else {
		l.markUrgent(key) // the stored observation would not show a reverted drift
	}
	if len(o.Deletions) == 0 && e.reported && e.Seen != nil && next.AvailableSince.Equal(e.AvailableSince) && !e.Seen.At.Before(e.Binding.AssignedAt) && next.Seen.same(e.Seen) {
		p.entries[o.Cluster] = &next // a repeated report without a visible change
		return false
	}
	l.setEntry(p, o.Cluster, &next)
	return true
}

// recordProgress records when the assigned revision was first observed to be applied, and to be
// available.
func (e *Entry) recordProgress(o WorkSeen) {
	if o.Revision.Hash != e.Binding.Assigned.Hash || o.At.Before(e.Binding.AssignedAt) || !o.Done {
		return
	}
	judged := o.WithoutSuspended()
	if e.AppliedAt.IsZero() && judged.Applied() {
		e.AppliedAt = o.At
	}
	if e.AvailableAt.IsZero() && judged.Available() {
		e.AvailableAt = o.At
	}
}

// since returns the observation with a time for every verdict. If the member has not sent one,
// it is the time of the first in a row of observations with the same verdict.
func (w WorkSeen) since(old *WorkSeen) *WorkSeen {
	w.Exceptions = slices.Clone(w.Exceptions)
	for i := range w.Exceptions {
		o := &w.Exceptions[i]
		was := old.exception(o.ID)
		o.Applied.since(was.Applied, w.At)
		if !o.Applied.OK {
			continue
		}
		if !was.Applied.OK {
			was.Available = Verdict{OK: true} // it was not an exception
		}
		o.Available.since(was.Available, w.At)
	}
	return &w
}

func (v *Verdict) since(was Verdict, at time.Time) {
	switch {
	case !v.Since.IsZero() || v.OK:
	case !was.OK && !was.Since.IsZero():
		v.Since = was.Since
	default:
		v.Since = at
	}
}

// exception returns the reported state of an object; zero if it was not an exception.
func (w *WorkSeen) exception(id api.ID) ObjectState {
	fine := ObjectState{Applied: Verdict{OK: true}, Available: Verdict{OK: true}}
	if w == nil {
		return fine
	}
	i, found := slices.BinarySearchFunc(w.Exceptions, id, func(o ObjectState, id api.ID) int { return o.ID.Compare(id) })
	if !found {
		return fine
	}
	return w.Exceptions[i]
}

// same reports whether two observations are equal except for their times.
func (w *WorkSeen) same(o *WorkSeen) bool {
	return w.Revision == o.Revision && w.Removed == o.Removed && w.Done == o.Done && w.Compared == o.Compared &&
		w.Total == o.Total && w.Untrackable == o.Untrackable &&
		reflect.DeepEqual(w.Exceptions, o.Exceptions) && sameDrifts(w.Drifts, o.Drifts) && slices.Equal(w.Braked, o.Braked) &&
		slices.Equal(w.DeletionErrors, o.DeletionErrors) && slices.Equal(w.Finalizing, o.Finalizing) &&
		slices.Equal(w.Lingering, o.Lingering) && slices.Equal(w.Collecting, o.Collecting)
}
