package ledger

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gitfleet/gitfleet/reconciler/ledger/segment"
)

// Contents counts the objects in the index, and separately those left by earlier saves. It
// returns an error for a ledger that cannot be read.
func TestContentsOfASharedLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newFakeObjects()
		s := OpenShared(objects, "one", nil)
		if found, err := s.Contents(); err != nil || found != (Contents{}) {
			t.Errorf("before it is begun: %+v, %v", found, err)
		}
		if _, err := s.Load(); err != nil {
			t.Fatal(err)
		}
		if err := s.Save(bound()); err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, value := range objects.values {
			size += len(value)
		}
		left := segment.ID{Term: 9, Number: 9}.Part(0)
		objects.values[left] = []byte("left over")
		before := objects.writes
		found, err := s.Contents()
		if err != nil {
			t.Fatal(err)
		}
		want := Contents{Placements: len(bound().Placements()), Objects: 2, Bytes: size, Largest: objects.largest, Unused: 1}
		if found != want {
			t.Errorf("found %+v, want %+v", found, want)
		}
		if objects.writes != before || objects.values[left] == nil {
			t.Error("reading the contents changed them")
		}
		delete(objects.values, s.index.Segments[0].Part(0))
		var damaged *DamagedError
		if _, err := s.Contents(); !errors.As(err, &damaged) {
			t.Errorf("without its segment: %v", err)
		}
	})
}
