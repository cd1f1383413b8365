package ledger

import (
	"testing"
	"unsafe"

	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A fleet of 1,000 clusters with 1,000 placements has a million entries. A field that is empty for nearly all of them belongs to
// their Circumstances or to the Incidents of what was seen.
func TestSizeOfEntries(t *testing.T) {
	if size := unsafe.Sizeof(Entry{}); size > 256 {
		t.Errorf("an entry takes %d bytes", size)
	}
	if size := unsafe.Sizeof(protocol.WorkState{}); size > 112 {
		t.Errorf("what was seen takes %d bytes", size)
	}
}
