package ledger

import (
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
}

// A Held is a placement that owns something on a cluster.
type Held struct {
	Placement api.PlacementKey
	// Revision is the last one that was applied in full.
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
	// Total counts the objects of the work.
	Total int
	// Untrackable counts the applied objects whose availability nobody can
	// tell.
	Untrackable int
	// Exceptions are the objects that are not both applied and available, or
	// differ, sorted by ID.
	Exceptions []ObjectState
	// Braked are objects that should go and stay, because the deletion brake
	// holds them, sorted by ID.
	Braked []Braked `json:",omitempty"`
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
	// Available says nothing of an object that is not applied.
	Available Verdict
	// Diffs are how hub and member differ; Drift tells that the object was
	// ours when it came to differ.
	Diffs []api.PatchDetail `json:",omitempty"`
	Drift bool              `json:",omitempty"`
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
	next := Cluster{ClusterSeen: o, Since: o.At}
	if old != nil {
		if o.At.Before(old.At) {
			return false
		}
		if o.Healthy == old.Healthy {
			next.Since = old.Since
		}
		next.LastSeen, next.Joined = old.LastSeen, old.Joined
		if o.UID == "" {
			next.UID = old.UID
		}
		if o.Properties == nil {
			next.Properties = old.Properties
		}
		if o.Namespaces == nil {
			next.Namespaces = old.Namespaces
		}
	}
	if o.Healthy {
		next.LastSeen = o.At
		if next.Joined.IsZero() {
			next.Joined = o.At
		}
	}
	rebuilt := l.rebuild(o)
	next.Holds = nil
	l.clusters[o.Cluster] = &next
	l.touch(clusterKey(o.Cluster))
	return rebuilt || old == nil || old.Healthy != next.Healthy || old.Error != next.Error ||
		old.UID != next.UID || !sameMap(old.Properties, next.Properties)
}

// rebuild takes in what a cluster says it holds and the ledger has forgotten.
// Such bindings name no policy: a scheduler prefers them, and judges them anew.
func (l *Ledger) rebuild(o ClusterSeen) bool {
	changed := false
	for _, h := range o.Holds {
		if l.placements[h.Placement] == nil {
			l.Note(h.Placement, Placement{Index: -1, Abandon: h.Abandon})
		}
		if l.placements[h.Placement].entries[o.Cluster] == nil {
			l.Bind(h.Placement, placement.Binding{Cluster: o.Cluster, Assigned: h.Revision, AssignedAt: o.At})
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
	next := *e
	next.Seen = &o
	switch {
	case o.Revision.Hash != e.Binding.Assigned.Hash || !o.Available():
		next.AvailableSince = time.Time{}
	case e.AvailableSince.IsZero():
		next.AvailableSince = o.At
	}
	p.entries[o.Cluster] = &next
	l.touch(entryKey(o.Placement, o.Cluster))
	return true
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}
