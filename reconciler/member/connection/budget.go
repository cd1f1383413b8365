package connection

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/member/memory"
)

// The budget of one member: far above what a cluster needs, and small enough that a server which
// never stops answering cannot take the memory of all others.
const (
	// MaxPages is the maximum number of pages of one list.
	MaxPages = 10_000
	// MaxEmptyPages is the maximum number of consecutive pages of a list without an object.
	MaxEmptyPages = 100
	// MaxItems is the maximum number of objects of a list that is read page by page and not kept.
	MaxItems = 5_000_000
	// MaxKeptItems is the maximum number of objects of one list, or of a cluster, that are kept: those
	// with the managed-by label, namespaces, and the items of all inventories.
	MaxKeptItems = 200_000
	// MaxKeptText is the maximum size of the names and messages that are kept of one list, or of a
	// cluster, in bytes.
	MaxKeptText = 64 << 20
	// MaxNamespaceName is the maximum length of the name of a namespace, and MaxNamespaceText the maximum size of the names of all
	// of a cluster, in bytes.
	MaxNamespaceName = 63
	MaxNamespaceText = MaxKeptItems * MaxNamespaceName
	// ItemBytes is what is kept of an object besides its text, about.
	ItemBytes = 200
	// MaxInventories is the maximum size of the ConfigMaps of inventories of a cluster, and MaxUnpacked
	// that of what they decompress to, in bytes. That is read without being kept as a whole.
	MaxInventories = 64 << 20
	MaxUnpacked    = 256 << 20
	// MaxPlacements is the maximum number of placements that may have an inventory on a cluster. The ledger keeps an entry of several KiB
	// for each of them, even if no commit declares the placement.
	MaxPlacements = 10_000
	// MaxPosition is the maximum length of the text that continues a list, and of a resource version, in bytes. Requests
	// repeat them, and so do the errors of requests.
	MaxPosition = 16 << 10
	// MaxKinds is the maximum number of kinds in the inventories of a cluster. Each is watched.
	MaxKinds = 1_000
	// MaxGroupVersions is the maximum number of versions of API groups that a cluster serves, and
	// MaxResources that of kinds and subresources, whose names and verbs take at most MaxResourceText, in bytes.
	MaxGroupVersions = 2_000
	MaxResources     = 20_000
	MaxResourceText  = 16 << 20
	// MaxName is the maximum length of the name or the UID of an object, in bytes. Of most kinds, API servers accept no more than
	// 253. What has a longer one is left out.
	MaxName = 1_000
)

// errShared is the error of the member of which most is kept, once too much is kept of all members.
var errShared = &exceededError{limit: "its part of the memory that all clusters share"}

// Keep counts what is kept of a member, in bytes; see memory.Share. An error is one of IsExceeded.
func Keep(share *memory.Share, bytes int) error {
	if !share.Keep(int64(bytes)) {
		return errShared
	}
	return nil
}

// GivenUp returns the error of a member that is given up because of an error of IsExceeded.
func GivenUp(err error) error {
	return fmt.Errorf("the cluster is given up for now: %w; it is tried again with growing delays, and other clusters are not affected", Plain(err))
}

// A Listing is the position in a list that is read page by page, within the budget. Its options are
// those of the next request.
type Listing struct {
	metav1.ListOptions
	// Kept says that what was read is kept. Until Done, it counts for Memory, if that is set.
	Kept   bool
	Memory *memory.Share

	pages, empty, items, text int
	counted                   int // for Memory
}

// Next continues after a page with some items, and reports whether there are more pages.
func (l *Listing) Next(page metav1.ListInterface, items int) (more bool, err error) {
	next := page.GetContinue()
	l.pages, l.empty, l.items = l.pages+1, l.empty+1, l.items+items
	if items > 0 {
		l.empty = 0
	}
	most := MaxItems
	if l.Kept {
		most = MaxKeptItems
	}
	switch {
	case l.items > most:
		return false, Exceeded(most, "objects in one list")
	case len(next) > MaxPosition || len(page.GetResourceVersion()) > MaxPosition:
		return false, Exceeded(MaxPosition, "bytes for a position in a list")
	case next == "":
		l.Continue = ""
		return false, nil
	case l.pages >= MaxPages:
		return false, Exceeded(MaxPages, "pages of one list")
	case l.empty >= MaxEmptyPages || next == l.Continue && items == 0:
		return false, Exceeded(l.empty, "consecutive pages of a list without an object")
	}
	l.Continue = next
	return true, nil
}

// Keep counts text that is kept of an item.
func (l *Listing) Keep(text int) error {
	if l.text += text; l.text > MaxKeptText {
		return Exceeded(MaxKeptText>>20, "MiB of names and messages in one list")
	}
	l.counted += text + ItemBytes
	return Keep(l.Memory, text+ItemBytes)
}

// Done says that what was read is dropped, or counted elsewhere.
func (l *Listing) Done() {
	l.Memory.Keep(int64(-l.counted))
	l.counted = 0
}
