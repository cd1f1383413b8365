// Package work renders what one cluster holds for one placement.
//
// A [Renderer] is made once for a placement at a commit: it opens envelopes,
// fixes the order and finds the overrides that concern the placement. Its For
// then answers for one cluster. The answer is shared, not copied, between
// clusters that get the same content, so asking for each of a hundred thousand
// bindings costs next to nothing where no override is about the cluster.
package work

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Work is all that one cluster should hold for one placement.
type Work struct {
	Placement api.PlacementKey
	Revision  placement.Revision
	// Strategy is always the newest; it is not rolled out. Its fields are
	// defaulted.
	Strategy api.ApplyStrategy
	// Manifests are in canonical order, and every ID occurs once.
	Manifests []*Manifest
	// Awaited is what the placement is to hold there in the end, by manifests in
	// canonical order, where that is not what it holds now. Until its turn comes
	// nobody deletes any of that: whoever gives it up passes it on to be kept.
	Awaited []*Manifest
	// Keep leaves alone what the cluster holds for the placement: what it should
	// hold cannot be told at the moment. Manifests is empty then.
	Keep bool
	// Remove says that nothing of the placement is to be left. Manifests is
	// empty then.
	Remove bool
	// Abandon says that what was placed stays where it is when the placement
	// goes.
	Abandon bool
	// AllowDelete says that a person has allowed deletions that the deletion
	// brake would hold.
	AllowDelete bool
	// Holds keep what is given up from being deleted; nil if a person has allowed
	// it.
	Holds []Hold
	// Cause is why objects that the placement gives up there are deleted.
	Cause Cause
	// Suspended is why nothing at all is written for the placement, as long as it
	// is not empty: what is there is watched and compared.
	Suspended string
	// Spared are objects of the cluster, whoever's they are, that are not written,
	// by ID.
	Spared []Spared
}

// Unreleased reports whether the placement is to write nothing there yet: it
// only keeps what is passed on to it.
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

// A Spared object is left as it is.
type Spared struct {
	ID  api.ID
	Why string
}

// Spares returns why an object is left as it is; empty if it is not.
func (w *Work) Spares(id api.ID) string {
	if w.Suspended != "" {
		return w.Suspended
	}
	i, found := slices.BinarySearchFunc(w.Spared, id, func(s Spared, id api.ID) int { return s.ID.Compare(id) })
	if !found {
		return ""
	}
	return w.Spared[i].Why
}

// A Manifest is one object for one or more clusters. It is never changed, and
// shared between works of equal content.
type Manifest struct {
	*api.Object
	// Envelope is what the object came out of; nil if it stood alone.
	Envelope *api.EnvelopeIdentifier
}

// Identifier returns the manifest's name in a status, its envelope included.
func (m *Manifest) Identifier() api.ResourceIdentifier {
	id := m.Object.Identifier()
	id.Envelope = m.Envelope
	return id
}
