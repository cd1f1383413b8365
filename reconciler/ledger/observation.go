package ledger

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An Observation is what a member says: a [ClusterSeen] or a [WorkSeen]. It is
// whole, never a delta, and never changed once made.
type Observation interface{ observation() }

// A ClusterSeen is the result of one probe of a cluster.
type ClusterSeen struct {
	Cluster string
	At      time.Time
	// Healthy says that the API server answered and was ready.
	Healthy bool
	// Error is why it is not healthy, without secrets; empty if it is.
	Error string
	// Unrenewed is why the credentials that replace those in use are not used, without
	// secrets; empty if there are none.
	Unrenewed string `json:",omitempty"`
	// Forbidden are the permissions that the cluster does not grant and the work needs,
	// such as "create, patch deployments.apps"; empty if none is known to be missing. If
	// Healthy is false, they are the reason.
	Forbidden []string `json:",omitempty"`
	// UID is that of the kube-system namespace: the cluster's identity,
	// whatever its name. Empty if it was never read.
	UID string
	// Properties are observed, by KubeFleet's names; a missing one is unknown.
	Properties map[string]string
	// Namespaces are those that exist there; nil if nobody looked.
	Namespaces []string
	// Holds are the placements that own something there, by the inventories on
	// the cluster itself; nil if nobody looked.
	Holds []Held
	// Owners are the fleets that these inventories name; nil if nobody looked, and that
	// somebody did is remembered.
	Owners []Owner `json:",omitzero"`
}

// A Held is a placement that owns something on a cluster.
type Held struct {
	Placement api.PlacementKey
	// Revision is the last one that was applied in full, or that brought an
	// object.
	Revision placement.Revision
	Abandon  bool
}

// A WorkSeen is all that a member says of one placement.
type WorkSeen struct {
	Cluster   string
	Placement api.PlacementKey
	At        time.Time
	// Revision is that of the work it speaks of; zero if there is none.
	Revision placement.Revision
	// Removed says that nothing the placement owned is left on the cluster.
	Removed bool
	// Done says that every object of the revision was tried once.
	Done bool
	// Compared says that the objects were only compared, as ReportDiff asks for:
	// nothing is known of their availability.
	Compared bool `json:",omitempty"`
	// Total counts the objects of the work.
	Total int
	// Untrackable counts the applied objects whose availability nobody can
	// tell.
	Untrackable int
	// Exceptions are the objects that are not both applied and available, or
	// differ, sorted by ID.
	Exceptions []ObjectState
	// Drifts are what is remembered of objects that others changed, sorted by ID;
	// of very many only the newest.
	Drifts []Drift `json:",omitempty"`
	// Braked are objects that should go and stay, because the deletion brake
	// holds them, sorted by ID.
	Braked []Braked `json:",omitempty"`
	// Deletions lists the objects deleted since the last report, oldest first.
	Deletions []Deletion `json:",omitempty"`
	// DeletionErrors are objects that should go, and that the cluster does not let
	// go, sorted by ID.
	DeletionErrors []DeletionError `json:",omitempty"`
	// Lingering are objects that were deleted and are still there, because
	// something has to be finished first, sorted by ID.
	Lingering []api.ID `json:",omitempty"`
	// Collecting are those of Lingering of which the cluster's garbage collector is
	// to delete first what was made of them, sorted by ID.
	Collecting []api.ID `json:",omitempty"`
	// Finalizing are those of Lingering that carry finalizers, sorted by ID.
	Finalizing []Finalizing `json:",omitempty"`
}

// A DeletionError is why an object could not be deleted.
type DeletionError struct {
	ID      api.ID
	Message string
}

// A Finalizing is an object that was deleted, and the finalizers that keep it there,
// separated by commas.
type Finalizing struct {
	ID         api.ID
	Finalizers string
}

// A Braked is an object whose deletion is held, and why.
type Braked struct {
	ID  api.ID
	Why string
}

// An ObjectState is what a member says of one object.
type ObjectState struct {
	ID       api.ID
	Version  string
	Envelope *api.EnvelopeIdentifier `json:",omitempty"`
	// Generation is the live object's; zero if there is none.
	Generation int64
	// Applied is false with a reason and a message, or true.
	Applied Verdict
	// Pending says that an object that is not applied waits for what comes by
	// itself: its CustomResourceDefinition, its namespace, an API server or an
	// admission webhook that answers.
	Pending bool `json:",omitempty"`
	// Available says nothing of an object that is not applied.
	Available Verdict
	// Failure is why an applied object will not become available by itself, such
	// as pods whose image cannot be pulled; empty while it may.
	Failure string `json:",omitempty"`
	// Diffs are how hub and member differ; Drift tells that the object was
	// ours when it came to differ.
	Diffs []api.Difference `json:",omitempty"`
	Drift bool             `json:",omitempty"`
	// FirstSeen and LastSeen are of the difference.
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

// Failed is the first object that failed: one that is refused or, if there is none,
// one that will not become available by itself; nil if there is neither.
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

// HasFailed reports whether the object will not become applied or available by
// itself.
func (o *ObjectState) HasFailed() bool {
	if !o.Applied.OK {
		return !o.Pending
	}
	return !o.Available.OK && o.Failure != ""
}

// Judged is the observation without the objects that somebody has suspended:
// they speak neither for nor against the cluster.
func (w *WorkSeen) Judged() *WorkSeen {
	left := func(o ObjectState) bool { return o.Applied.Reason == api.Suspended }
	if w == nil || !slices.ContainsFunc(w.Exceptions, left) {
		return w
	}
	out := *w
	out.Exceptions = slices.DeleteFunc(slices.Clone(w.Exceptions), left)
	return &out
}

// Fold takes in what was seen. It reports whether anything changed that a plan
// or a person could tell; an observation older than the one it has, or of
// something nobody holds, is dropped. Folding one twice is folding it once.
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
		next.recall(old)
	}
	if o.Healthy {
		next.LastSeen = o.At
		if next.Joined.IsZero() {
			next.Joined = o.At
		}
	}
	if o.Owners != nil {
		l.judge(&next)
	}
	rebuilt := l.rebuild(&next)
	news := old == nil || !next.same(old)
	if news {
		next.version = l.next()
	}
	l.clusters[o.Cluster] = &next
	l.saw(clusterKey(o.Cluster))
	return rebuilt || news
}

// recall takes over from before what was not looked at this time.
func (c *Cluster) recall(old *Cluster) {
	c.LastSeen, c.Joined, c.version = old.LastSeen, old.Joined, old.version
	if c.Healthy == old.Healthy {
		c.Since = old.Since
	}
	if c.UID == "" {
		c.UID = old.UID
	}
	if c.Properties == nil {
		c.Properties, c.Observed = old.Properties, old.Observed
	}
	if c.Namespaces == nil {
		c.Namespaces = old.Namespaces
	}
	if c.Owners == nil {
		c.Owners, c.Rivals = old.Owners, old.Rivals
	}
	if c.Holds == nil {
		c.Holds = old.Holds
	}
}

// same reports whether nobody could tell two states of a cluster apart but by
// when it was looked at.
func (c *Cluster) same(o *Cluster) bool {
	return c.Healthy == o.Healthy && c.Error == o.Error && c.Unrenewed == o.Unrenewed && slices.Equal(c.Forbidden, o.Forbidden) && c.UID == o.UID && c.Joined.Equal(o.Joined) &&
		maps.Equal(c.Properties, o.Properties) && slices.Equal(c.Owners, o.Owners) && slices.Equal(c.Rivals, o.Rivals) &&
		(c.Namespaces == nil) == (o.Namespaces == nil) && slices.Equal(c.Namespaces, o.Namespaces)
}

// rebuild takes in what a cluster says it holds and the ledger has forgotten.
// Such bindings name no policy: a scheduler prefers them, and judges them anew.
// Whether a cluster was available before its last update is not known; it is
// taken to have been, so that an update that has failed still stops the others.
// As long as the ID of the fleet is open, that waits.
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
			l.Note(h.Placement, Placement{Index: -1, Abandon: h.Abandon, Found: true})
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
		return false // of an earlier removal: something is wanted there again
	}
	next := *e
	next.Seen = o.since(e.Seen)
	switch {
	case o.Revision.Hash != e.Binding.Assigned.Hash || !o.Available() || o.Compared:
		next.AvailableSince = time.Time{}
	case e.AvailableSince.IsZero():
		next.AvailableSince = o.At
	}
	switch judged := o.Judged(); {
	case o.Revision.Hash != e.Binding.Assigned.Hash || o.At.Before(e.Binding.AssignedAt):
	case judged.Available():
		next.UnavailableSince = time.Time{}
	case o.Done && e.UnavailableSince.IsZero():
		next.UnavailableSince = o.At
	}
	next.arrive(o)
	next.heard = true
	if key := entryKey(o.Placement, o.Cluster); sameDrifts(e.drifts(), o.Drifts) {
		l.saw(key)
	} else {
		l.touch(key) // what was put back is seen nowhere any more
	}
	if len(o.Deletions) == 0 && e.heard && e.Seen != nil && next.AvailableSince.Equal(e.AvailableSince) && !e.Seen.At.Before(e.Binding.AssignedAt) && next.Seen.same(e.Seen) {
		p.entries[o.Cluster] = &next // heard again; nobody could tell
		return false
	}
	l.put(p, o.Cluster, &next)
	return true
}

// arrive records when the assigned revision was first observed to be applied, and when to
// be available.
func (e *Entry) arrive(o WorkSeen) {
	if o.Revision.Hash != e.Binding.Assigned.Hash || o.At.Before(e.Binding.AssignedAt) || !o.Done {
		return
	}
	judged := o.Judged()
	if e.AppliedAt.IsZero() && judged.Applied() {
		e.AppliedAt = o.At
	}
	if e.AvailableAt.IsZero() && judged.Available() {
		e.AvailableAt = o.At
	}
}

// since returns the observation with a time on every verdict: where the member
// gave none, that of the first observation in a row with the same verdict.
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
			was.Available = Verdict{OK: true} // it said nothing
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

// exception finds what was said of an object; nothing if it was fine.
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

// same reports whether nobody could tell two observations apart but by their
// time.
func (w *WorkSeen) same(o *WorkSeen) bool {
	return w.Revision == o.Revision && w.Removed == o.Removed && w.Done == o.Done && w.Compared == o.Compared &&
		w.Total == o.Total && w.Untrackable == o.Untrackable &&
		reflect.DeepEqual(w.Exceptions, o.Exceptions) && sameDrifts(w.Drifts, o.Drifts) && slices.Equal(w.Braked, o.Braked) &&
		slices.Equal(w.DeletionErrors, o.DeletionErrors) && slices.Equal(w.Finalizing, o.Finalizing) &&
		slices.Equal(w.Lingering, o.Lingering) && slices.Equal(w.Collecting, o.Collecting)
}
