package ledger

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger/segment"
)

// unreadObjects are objects of which some cannot be read.
type unreadObjects struct {
	*fakeObjects
	get func(name string) error // returns the error of a read; nil if it succeeds
}

func (o *unreadObjects) Get(name string) ([]byte, string, error) {
	if o.get != nil {
		if err := o.get(name); err != nil {
			return nil, "", err
		}
	}
	return o.fakeObjects.Get(name)
}

// once returns an error for the first n reads of objects whose names begin with a prefix.
func once(prefix string, n int, err error) func(string) error {
	return func(name string) error {
		if !strings.HasPrefix(name, prefix) || n == 0 {
			return nil
		}
		n--
		return err
	}
}

// A save that merges segments and cannot read one of them writes nothing, and reports it. The
// ledger stays unsaved, and the next save writes everything. A segment that is missing for one
// read only does no harm.
func TestMergeThatCannotReadASegment(t *testing.T) {
	timeout, missing := errors.New("the read timed out"), apierrors.NewNotFound(secrets, "segment")
	byName := func(gets ...func(string) error) func(string) error {
		return func(name string) error {
			var all []error
			for _, get := range gets {
				all = append(all, get(name))
			}
			return errors.Join(all...)
		}
	}
	tests := map[string]struct {
		get   func(string) error
		saved bool // by the first save
	}{
		"all is read":               {nil, true},
		"once":                      {once(segment.Prefix, 1, timeout), false},
		"missing once":              {once(segment.Prefix, 1, missing), true},
		"missing, and so the index": {byName(once(segment.Prefix, 1, missing), once(indexName, 1, timeout)), false},
		"forbidden once":            {once(segment.Prefix, 1, apierrors.NewForbidden(secrets, "segment", errors.New("no"))), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := &unreadObjects{fakeObjects: newFakeObjects()}
			s := OpenShared(objects, "one", func() { t.Error("deposed, and nobody else is there") })
			l, err := s.Load()
			if err != nil {
				t.Fatal(err)
			}
			gone := api.PlacementKey{Name: "gone"}
			l.SetPlacement(gone, Placement{Generation: 1})
			l.SetPlacement(web, Placement{Generation: 1})
			mustSave(t, s, l)
			l.Forget(gone)
			l.Bind(web, placement.Binding{Cluster: "east", Assigned: v(2), Reason: strings.Repeat("large enough to merge ", 10)})
			l.SetInForce("c2")
			before, segments := objects.writes, len(s.index.Segments)

			objects.get = test.get
			err = s.Save(l)
			if (err == nil) != test.saved || err != nil && !strings.HasPrefix(err.Error(), "save ledger: ") {
				t.Fatalf("saved: %v, want %t", err, test.saved)
			}
			if !test.saved && (!l.Unsaved() || !l.Urgent() || objects.writes != before) {
				t.Errorf("unsaved %t, urgent %t, %d writes", l.Unsaved(), l.Urgent(), objects.writes-before)
			}
			if found := reread(t, objects.fakeObjects); !test.saved && (found.InForce() != "" || found.Placement(gone) == nil) {
				t.Errorf("a failed save has written\n%s", dump(t, found))
			}
			objects.get = nil
			mustSave(t, s, l)
			if got, want := dump(t, reread(t, objects.fakeObjects)), dump(t, l); got != want || l.Unsaved() {
				t.Errorf("found\n%s\nwant\n%s", got, want)
			}
			if got := len(s.index.Segments); got != segments || len(objects.values) != 1+partsOf(t, objects.fakeObjects) {
				t.Errorf("%d segments and %d objects are left", got, len(objects.values))
			}
		})
	}
}

// reread returns the ledger as another replica reads it.
func reread(t *testing.T, objects *fakeObjects) *Ledger {
	t.Helper()
	l, err := OpenShared(objects, "reader", nil).Read()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A new segment is merged with those before it that are at most twice as large, so that each
// segment is more than twice as large as all that follow it.
func TestSegmentsStayFew(t *testing.T) {
	objects := newFakeObjects()
	s, l := openLoaded(t, objects, nil)
	for n := range 40 {
		l.SetPlacement(api.PlacementKey{Name: strings.Repeat("x", n+1)}, Placement{Generation: int64(n)})
		mustSave(t, s, l)
		for i := range s.index.Segments[1:] {
			if a, b := s.index.Segments[i], s.index.Segments[i+1]; a.Bytes <= b.Bytes {
				t.Fatalf("after save %d a segment of %d bytes is before one of %d", n, a.Bytes, b.Bytes)
			}
		}
	}
	if got := len(s.index.Segments); got > 6 {
		t.Errorf("there are %d segments", got)
	}
	if dump(t, reread(t, objects)) != dump(t, l) {
		t.Error("not what was saved")
	}
}

// While an error keeps the ledger from being read, nothing is known about it, and a replica does
// not take it over.
func TestUnreadableLedgerIsNotTakenOver(t *testing.T) {
	for name, get := range map[string]func(string) error{
		"the index": once(indexName, -1, errors.New("no answer")), "a segment": once(segment.Prefix, -1, errors.New("no answer")),
	} {
		objects := &unreadObjects{fakeObjects: newFakeObjects()}
		leader, _ := openLoaded(t, objects.fakeObjects, func() { t.Errorf("%s: the leader is deposed", name) })
		l := bound()
		mustSave(t, leader, l)
		objects.get = get
		other := OpenShared(objects, "two", nil)
		_, loadErr := other.Load()
		_, readErr := other.Read()
		_, fleetErr := other.Fleet()
		_, contentsErr := other.Contents()
		for what, err := range map[string]error{"load": loadErr, "read": readErr, "fleet": fleetErr, "contents": contentsErr} {
			if err == nil || err.Error() != "read ledger: no answer" {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		l.SetInForce("c9")
		mustSave(t, leader, l)
	}
}
