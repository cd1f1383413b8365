package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gitfleet/gitfleet/reconciler/ledger/segment"
)

// A reader that is slower than the leader's saves gets an error that says so, and not one about
// a damaged ledger. It succeeds once it is fast enough.
func TestReaderThatIsOvertaken(t *testing.T) {
	for _, overtaken := range []int{1, readAttempts - 1, readAttempts} {
		synctest.Test(t, func(t *testing.T) {
			objects := newFakeObjects()
			s := OpenShared(objects, "one", nil)
			l, err := s.Load()
			if err != nil {
				t.Fatal(err)
			}
			l.SetInForce("c0")
			if err := s.Save(l); err != nil {
				t.Fatal(err)
			}
			saves := 0
			var overtake func(name string)
			overtake = func(name string) { // replaces the segment that is being read
				if strings.HasPrefix(name, segment.Prefix) && saves < overtaken {
					saves++
					l.SetInForce(fmt.Sprintf("c%d", saves))
					objects.reading = nil // Save reads the segments that it merges
					if err := s.Save(l); err != nil {
						t.Error(err)
					}
					objects.reading = overtake
				}
			}
			objects.reading = overtake
			found, err := OpenShared(objects, "reader", nil).Read()
			var damaged *DamagedError
			switch {
			case errors.As(err, &damaged):
				t.Errorf("overtaken by %d saves: %v", overtaken, err)
			case overtaken == readAttempts && err == nil:
				t.Error("a reader that was always overtaken has read something")
			case overtaken < readAttempts && (err != nil || found.InForce() != l.InForce()):
				t.Errorf("overtaken by %d saves: %v", overtaken, err)
			}
		})
	}
}

// The newest segment is read first, since the next save replaces it. Its records still take
// precedence over older ones.
func TestNewestSegmentIsReadFirst(t *testing.T) {
	objects := newFakeObjects()
	s, _ := openLoaded(t, objects, nil)
	l := bound()
	mustSave(t, s, l)
	l.SetInForce("c9")
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
	if len(s.index.Segments) != 2 {
		t.Fatalf("the segments are %v, want two", s.index.Segments)
	}
	var read []string
	objects.reading = func(name string) { read = append(read, name) }
	found, err := OpenShared(objects, "reader", nil).read()
	if err != nil || string(found.records[headKey]) != `"c9"` {
		t.Errorf("read the head %s, %v", found.records[headKey], err)
	}
	if want := s.index.Segments[1].Part(0); len(read) < 2 || read[1] != want {
		t.Errorf("read %v, want %s after the index", read, want)
	}
}
