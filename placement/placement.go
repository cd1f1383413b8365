// Package placement decides what goes where.
//
// Select answers which objects of the hub a placement names, Schedule which
// clusters it takes, and Explain why. They are plain functions of their
// arguments: no client, no clock, no state. The same input gives the same
// answer, in whatever order it is listed.
package placement

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Cluster is all that a scheduler may know of a member cluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	Taints []api.Taint
	// Properties are those known by a quantity; a missing one is unknown, not
	// zero.
	Properties map[string]resource.Quantity
	// Malformed are properties whose value is no quantity. Scheduling treats
	// them as missing and names them.
	Malformed map[string]string
	// Namespaces are those that exist there; nil means that nobody looked.
	Namespaces map[string]bool
	// NamespacesUnknown says that somebody looked and could not tell. A
	// ResourcePlacement then takes it for a cluster without its namespace.
	NamespacesUnknown bool
	// Ineligible is why the cluster takes nothing new; empty if it does.
	Ineligible string
}

// A Revision is the content one cluster gets from one placement.
type Revision struct {
	// Commit is where the content is found.
	Commit string
	// Hash is of the content: equal hashes, equal content.
	Hash string
	// Labels are those of the cluster's labels of which overrides made the
	// content, as key=value, sorted and separated by commas: with others the
	// commit gives something else.
	Labels string `json:",omitempty"`
}

// A Score ranks a cluster within one placement. Spread outranks Affinity; of
// equals one that the placement holds already wins, then the larger name.
type Score struct {
	Affinity int32
	Spread   int32
}

// A Stop is a failed update that stops the rollout of a placement.
type Stop struct {
	// Cluster is where the update failed, and Failed what it was updated to.
	Cluster string
	Failed  Revision
}

// A Binding says that a placement holds a cluster, and how far it got there.
type Binding struct {
	Cluster string
	// Policy is the hash of the policy that chose it.
	Policy string
	// Score is that of the moment it was chosen; nil if it was not scored.
	Score *Score
	// Reason is the decision's text of the moment it was chosen.
	Reason string
	// Order is its turn among the clusters chosen, from 1 upwards; it puts the
	// decisions of a PickN placement in the order they were made.
	Order int
	// Unscheduled says that it is no longer wanted and waits to be removed.
	Unscheduled bool
	// Removing says that the rollout has let its content be removed. A request
	// to Schedule leaves such bindings out: the cluster may be chosen anew.
	Removing bool

	// RemovedBy is the commit that was in force when Removing was set or the
	// placement was deleted; empty if neither happened or it was not recorded.
	RemovedBy string `json:",omitempty"`

	// AllowDelete says that the commit which brought Assigned allows whatever it
	// deletes.
	AllowDelete bool

	// Assigned is what the cluster shall hold; zero until the rollout releases
	// it.
	Assigned Revision
	// AssignedAt is when Assigned last changed.
	AssignedAt time.Time
	// Index is which of the placement's contents Assigned was then, counted from
	// 0.
	Index int
	// BoundAt is when the cluster was chosen; zero if that was before it was recorded.
	BoundAt time.Time `json:",omitzero"`
	// Risked says that the cluster was available when Assigned last changed,
	// and has not been since. The rollout sets and clears it.
	Risked bool
}

// Released reports whether the rollout has let the cluster have content.
func (b Binding) Released() bool { return b.Assigned != Revision{} }

// A Decision is the verdict on one cluster for one placement.
type Decision struct {
	Cluster  string
	Selected bool
	// Score is nil for a cluster that was not scored.
	Score *Score
	// Reason is a sentence, never empty.
	Reason string
}
