// Package placement decides which objects go to which clusters.
//
// Select returns the objects of the hub that a placement selects, Schedule the clusters it
// gets, and Explain the reasons. They are functions of their arguments: no client, no clock, no
// state. The order of the input does not matter.
//
// When a cluster moves to new content is decided by package rollout, and what the content is by
// package work. The values that a ledger records of all of them are declared here: Binding,
// Revision, and Run for staged update runs.
package placement

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Cluster is a member cluster in the form that the scheduler uses.
type Cluster struct {
	Name   string
	Labels map[string]string
	Taints []api.Taint
	// Properties are the known properties; a missing one is unknown, not zero.
	Properties map[string]resource.Quantity
	// Malformed are properties whose value is not a quantity. Scheduling treats them as
	// missing, and messages name them.
	Malformed map[string]string
	// Namespaces are the namespaces that exist on the cluster, sorted; nil means that they have not
	// been read.
	Namespaces []string
	// NamespacesUnknown says that the namespaces could not be read. A ResourcePlacement then
	// treats the cluster as one without its namespace.
	NamespacesUnknown bool
	// Ineligible is the reason why the cluster gets no new placements; empty if it does get
	// them. IneligibleKind is the part of it that clusters with the same reason share, without
	// the time of the last answer; empty if they share all of it.
	Ineligible, IneligibleKind string
}

// absence is the reason why an ineligible cluster is absent.
func (c *Cluster) absence() string { return cmp.Or(c.IneligibleKind, c.Ineligible) }

// SetProperty sets a property, replacing its previous value. A value that is not a quantity
// makes it Malformed. The cluster's Properties must not be nil.
func (c *Cluster) SetProperty(name, value string) {
	q, err := api.ParseQuantity(value)
	if err == nil {
		c.Properties[name] = q
		delete(c.Malformed, name)
		return
	}
	if c.Malformed == nil {
		c.Malformed = map[string]string{}
	}
	c.Malformed[name] = value
	delete(c.Properties, name)
}

// A Revision identifies the content of one placement for one cluster.
type Revision struct {
	// Commit is a commit that has the content.
	Commit string
	// Hash is the hash of the content. Equal hashes mean equal content.
	Hash string
	// Labels are the labels of the cluster that overrides used, as sorted key=value pairs
	// separated by commas. With other labels the same commit may have other content.
	Labels string `json:",omitempty"`
}

// A Score ranks a cluster within one placement. Spread comes before Affinity; of equal scores a
// cluster that the placement holds under an earlier policy wins, then the larger name.
type Score struct {
	Affinity int32
	Spread   int32
}

// Equal reports whether two scores, which may be nil, are equal.
func (s *Score) Equal(o *Score) bool { return s == o || s != nil && o != nil && *s == *o }

// A Stop is a failed update that stops the rollout of a placement.
type Stop struct {
	// Cluster is where the update failed, and Failed the revision it was updated to.
	Cluster string
	Failed  Revision
}

// A Binding records that a placement holds a cluster, and the state of its rollout there.
type Binding struct {
	Cluster string `json:"-"` // in a ledger it belongs to the key
	// Policy is the hash of the policy that selected the cluster.
	Policy string `json:",omitempty"`
	// Score is the score when the cluster was selected; nil if it was not scored.
	Score *Score `json:",omitempty"`
	// Reason is the reason of the decision when the cluster was selected.
	Reason string `json:",omitempty"`
	// Order is its position among the clusters in the order they were chosen, from 1; it orders
	// the decisions of a PickN placement.
	Order int `json:",omitempty"`

	// The flags stand together, so that they take less memory.

	// Unscheduled says that the cluster is no longer selected and waits for removal.
	Unscheduled bool `json:",omitempty"`
	// Removing says that the rollout has started to remove the content of an Unscheduled
	// cluster. A request to Schedule leaves such bindings out, so that the cluster may be
	// selected again.
	Removing bool `json:",omitempty"`
	// Inherited says that the cluster had another name when it was selected. Until it is selected
	// under its name, a removal releases the objects instead of deleting them.
	Inherited bool `json:",omitempty"`

	// Evicted says that the removal is an eviction: the cluster is not selected again before it is over.
	Evicted bool `json:",omitempty"`

	// AllowDelete says that the commit of Assigned allows the deletions it causes.
	AllowDelete bool `json:",omitempty"`
	// Risked says that the cluster was available when Assigned last changed, and has not been
	// since. The rollout sets and clears it.
	Risked bool `json:",omitempty"`
	// WasAvailable says that the cluster has counted as available since Assigned last changed, or that
	// this is not known. The rollout sets and clears it.
	WasAvailable bool `json:",omitempty"`
	// Deferred reports whether a freeze or a closed window keeps newer content from the cluster.
	Deferred bool `json:"Held,omitempty"`

	// Assigned is the revision the cluster should have; zero until the rollout releases one.
	Assigned Revision `json:",omitzero"`
	// AssignedAt is when Assigned last changed.
	AssignedAt time.Time `json:",omitzero"`
	// Index is the number of the placement's content when it was assigned, from 0.
	Index int32 `json:",omitempty"`
	// SameAs is the number of the newest content that renders to the same objects for the cluster, if it is greater than Index.
	SameAs int32 `json:",omitempty"`
	// BoundAt is when the cluster was selected; zero if it was not recorded.
	BoundAt time.Time `json:",omitzero"`
	// Circumstances is nil if there are none: call Unusual to read them. In a ledger they are stored among the other fields.
	Circumstances *Circumstances `json:"-"`
}

// Circumstances are kept apart from their binding because few bindings have any, and a fleet has many bindings. They are immutable.
type Circumstances struct {
	// RemovedBy is the head commit when Removing was set or the placement was deleted; empty if
	// neither happened or it was not recorded.
	RemovedBy string `json:",omitempty"`
	// Leftover is the revision that was still being removed from the cluster when another placement
	// was renamed to this one; nil if there is none. The next plan hands over the objects of it
	// that other placements want. It is immutable.
	Leftover *Revision `json:",omitempty"`
	// FreeAt is when a freeze or a closed window last ended that had kept newer content from the cluster; zero if none has.
	FreeAt time.Time `json:",omitzero"`
}

// Unusual returns the circumstances of the binding, which may be empty.
func (b *Binding) Unusual() Circumstances {
	if b.Circumstances == nil {
		return Circumstances{}
	}
	return *b.Circumstances
}

// Change changes the circumstances. Those of copies of the binding stay.
func (b *Binding) Change(by func(*Circumstances)) {
	next := b.Unusual()
	switch by(&next); next {
	case b.Unusual():
	case Circumstances{}:
		b.Circumstances = nil
	default:
		b.Circumstances = &next
	}
}

// Equal reports whether two bindings are equal.
func (b Binding) Equal(o Binding) bool {
	same := b.Unusual() == o.Unusual() && b.Score.Equal(o.Score)
	b.Score, o.Score, b.Circumstances, o.Circumstances = nil, nil, nil, nil
	return same && b == o
}

// HasRevision reports whether the rollout has assigned a revision.
func (b Binding) HasRevision() bool { return b.Assigned != Revision{} }
