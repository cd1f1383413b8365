package work

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A DeletionBlock blocks the deletion of objects that a placement gives up until a commit allows it.
type DeletionBlock struct {
	// Why is the reason, as a clause without a full stop.
	Why string
	// Kind is the kind of the objects whose deletion is blocked; the zero value means any.
	Kind api.GroupKind
	// Except are namespaces, sorted, in which no deletion is blocked.
	Except []string
}

// Covers reports whether the block covers an object.
func (b *DeletionBlock) Covers(id api.ID) bool {
	if _, excepted := slices.BinarySearch(b.Except, id.Namespace); excepted {
		return false
	}
	return b.Kind == api.GroupKind{} || b.Kind == id.GroupKind()
}

// Equal reports whether both blocks are the same.
func (b DeletionBlock) Equal(o DeletionBlock) bool {
	return b.Why == o.Why && b.Kind == o.Kind && slices.Equal(b.Except, o.Except)
}

// DeletionBlocked returns why an object that the placement gives up is not deleted; empty if it may be
// deleted. The reason is that of the first block that covers the object. If the placement gives
// up a Namespace or a CustomResourceDefinition at the same time (with), the deletion of
// objects in that namespace or of that kind is blocked together with it.
func (w *Work) DeletionBlocked(id api.ID, with []api.ID) string {
	if why := w.covered(id); why != "" {
		return why
	}
	for _, o := range with {
		if !contains(o, id) {
			continue
		}
		if why := w.covered(o); why != "" {
			return o.Kind + " " + o.Name + " goes as well, and " + why
		}
	}
	return ""
}

func (w *Work) covered(id api.ID) string {
	for i := range w.DeletionBlocks {
		if w.DeletionBlocks[i].Covers(id) {
			return w.DeletionBlocks[i].Why
		}
	}
	return ""
}

// The kinds whose deletion deletes other objects.
var (
	namespaceKind  = api.GroupKind{Kind: "Namespace"}
	definitionKind = api.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// Contains reports whether deleting objects of a kind deletes others with them: namespaces and
// definitions.
func Contains(kind api.GroupKind) bool { return kind == namespaceKind || kind == definitionKind }

// contains reports whether deleting o deletes the object as well. Of a definition only the
// group is known.
func contains(o, id api.ID) bool {
	switch o.GroupKind() {
	case namespaceKind:
		return id.Namespace == o.Name
	case definitionKind:
		return id.Group != "" && strings.HasSuffix(o.Name, "."+id.Group)
	}
	return false
}
