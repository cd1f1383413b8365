package ledger

import (
	"testing"
)

// A ledger is in use while it is open, and InUse writes nothing.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	inUse := func(want bool) {
		t.Helper()
		if got, err := InUse(dir); err != nil || got != want {
			t.Errorf("in use: %t (%v), want %t", got, err, want)
		}
	}
	inUse(false)
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	inUse(true)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	inUse(false)
}
