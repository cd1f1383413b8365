package ledger

import (
	"testing"
	"unsafe"
)

// A fleet of 1,000 clusters with 1,000 placements has a million entries. A field that is empty for nearly all of them belongs to
// their Circumstances.
func TestSizeOfEntries(t *testing.T) {
	if size := unsafe.Sizeof(Entry{}); size > 352 {
		t.Errorf("an entry takes %d bytes", size)
	}
}
