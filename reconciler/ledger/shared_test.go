package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A fault is what happens to a change: it is refused, it takes effect although the response is
// an error, or it takes effect only after the next read, after an error.
type fault int

const (
	none fault = iota
	refuse
	loseAnswer
	delay
)

// fakeObjects are Objects in memory. fail, if set, returns the fault of each change.
type fakeObjects struct {
	values   map[string][]byte
	versions map[string]int
	clock    int
	fail     func(name string) fault
	delayed  []func() error
	reading  func(name string) // called before each read, if set

	writes, written, largest int
}

func newFakeObjects() *fakeObjects {
	return &fakeObjects{values: map[string][]byte{}, versions: map[string]int{}}
}

var secrets = apischema.GroupResource{Resource: "secrets"}

var errLost = errors.New("the answer was lost")

func (f *fakeObjects) Get(name string) ([]byte, string, error) {
	if f.reading != nil {
		f.reading(name)
	}
	defer f.makeDelayed()
	value, ok := f.values[name]
	if !ok {
		return nil, "", apierrors.NewNotFound(secrets, name)
	}
	return bytes.Clone(value), strconv.Itoa(f.versions[name]), nil
}

// makeDelayed applies the delayed changes whose version is still current.
func (f *fakeObjects) makeDelayed() {
	for _, do := range f.delayed {
		f.clock++
		_ = do()
	}
	f.delayed = nil
}

func (f *fakeObjects) Create(name string, value []byte) (string, error) {
	return f.change(name, func() error {
		if _, ok := f.values[name]; ok {
			return apierrors.NewAlreadyExists(secrets, name)
		}
		return f.put(name, value)
	})
}

func (f *fakeObjects) Update(name string, value []byte, version string) (string, error) {
	return f.change(name, func() error {
		if f.values[name] == nil {
			return apierrors.NewNotFound(secrets, name)
		}
		if strconv.Itoa(f.versions[name]) != version {
			return apierrors.NewConflict(secrets, name, errors.New("it was changed"))
		}
		return f.put(name, value)
	})
}

func (f *fakeObjects) Delete(name string) error {
	_, err := f.change(name, func() error {
		delete(f.values, name)
		return nil
	})
	return err
}

func (f *fakeObjects) List() ([]string, error) { return slices.Sorted(maps.Keys(f.values)), nil }

func (f *fakeObjects) put(name string, value []byte) error {
	f.values[name] = bytes.Clone(value)
	f.versions[name] = f.clock
	f.writes++
	f.written += len(value)
	f.largest = max(f.largest, len(value))
	return nil
}

func (f *fakeObjects) change(name string, do func() error) (string, error) {
	var wrong fault
	if f.fail != nil {
		wrong = f.fail(name)
	}
	switch wrong {
	case refuse:
		return "", errors.New("refused")
	case delay:
		f.delayed = append(f.delayed, do)
		return "", errLost
	}
	f.clock++
	if err := do(); err != nil {
		return "", err
	}
	if wrong == loseAnswer {
		return "", errLost
	}
	return strconv.Itoa(f.clock), nil
}

// Whatever writes fail and whatever responses are lost, the objects have the ledger of exactly
// one save: the last successful one, or one that failed after it.
func TestSharedStoreIsAllOrNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		objects := newFakeObjects()
		s := OpenShared(objects, "one", func() { rt.Fatal("deposed, and nobody else is there") })
		l, err := s.Load()
		if err != nil {
			rt.Fatal(err)
		}
		objects.fail = func(string) fault {
			return rapid.SampledFrom([]fault{none, none, none, none, refuse, loseAnswer, delay}).Draw(rt, "fault")
		}
		possible := map[string]bool{dump(t, l): true}
		for i := range rapid.IntRange(1, 20).Draw(rt, "steps") {
			change(rt, l, i)
			if err := s.Save(l); err == nil {
				possible = map[string]bool{}
			}
			possible[dump(t, l)] = true
			found, err := OpenShared(objects, "reader", nil).Read()
			if err != nil {
				rt.Fatal(err)
			}
			if got := dump(t, found); !possible[got] {
				rt.Fatalf("found\n%s\nwant one of\n%v", got, slices.Collect(maps.Keys(possible)))
			}
		}
		objects.fail = nil
		objects.makeDelayed()
		err = s.Save(l)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) { // the update of the index took effect late
			err = s.Save(l)
		}
		if err != nil {
			rt.Fatalf("with nothing in the way: %v", err)
		}
		after, err := OpenShared(objects, "two", nil).Load()
		if err != nil {
			rt.Fatal(err)
		}
		if got, want := dump(t, after), dump(t, l); got != want {
			rt.Fatalf("loaded\n%s\nsaved\n%s", got, want)
		}
		if got, want := len(objects.values), 1+partsOf(t, objects); got > want {
			rt.Fatalf("%d objects are left, %d are named: %v", got, want, slices.Sorted(maps.Keys(objects.values)))
		}
	})
}

// An update of the index that times out may take effect later, even after the index was read
// again. Its segment is kept until the result is known.
func TestLateUpdateOfTheIndexKeepsItsSegment(t *testing.T) {
	objects := newFakeObjects()
	s, l := openLoaded(t, objects, nil)
	l.SetInForce("c1")
	mustSave(t, s, l)
	objects.fail = func(name string) fault {
		if name == indexName {
			return delay
		}
		return none
	}
	l.SetInForce("c2")
	if err := s.Save(l); err == nil {
		t.Fatal("saved, but the index was not updated")
	}
	if _, err := OpenShared(objects, "reader", nil).Read(); err != nil {
		t.Errorf("while it is not known: %v", err)
	}
	objects.fail = nil
	objects.makeDelayed()
	if found, err := OpenShared(objects, "reader", nil).Read(); err != nil || found.InForce() != "c2" {
		t.Fatalf("after the late update: %v", err)
	}
	l.SetInForce("c3")
	var err error
	for range 2 { // the first Save finds the late update
		err = s.Save(l)
	}
	if found, readErr := OpenShared(objects, "reader", nil).Read(); err != nil || readErr != nil || found.InForce() != "c3" {
		t.Errorf("the next save: %v, %v", err, readErr)
	}
	if got, want := len(objects.values), 1+partsOf(t, objects); got != want {
		t.Errorf("%d objects are left, %d are named", got, want)
	}
}

// openLoaded opens a shared ledger as the replica "one", and loads it.
func openLoaded(t *testing.T, objects *fakeObjects, deposed func()) (*Shared, *Ledger) {
	t.Helper()
	s := OpenShared(objects, "one", deposed)
	l, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

func mustSave(t *testing.T, s *Shared, l *Ledger) {
	t.Helper()
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
}

// partsOf returns the number of objects in the index.
func partsOf(t *testing.T, objects *fakeObjects) int {
	t.Helper()
	x, _, err := OpenShared(objects, "reader", nil).readIndex()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, seg := range x.Segments {
		n += seg.Parts
	}
	return n
}

// A replica from which another one has taken over cannot save any more, and is notified.
func TestDeposedReplicaSavesNothing(t *testing.T) {
	objects := newFakeObjects()
	deposed := 0
	old := OpenShared(objects, "old", func() { deposed++ })
	l, err := old.Load()
	if err != nil {
		t.Fatal(err)
	}
	l.SetInForce("c1")
	if err := old.Save(l); err != nil {
		t.Fatal(err)
	}
	next := OpenShared(objects, "next", nil)
	taken, err := next.Load()
	if err != nil || taken.InForce() != "c1" {
		t.Fatalf("the next replica found %q, %v", taken.InForce(), err)
	}
	taken.SetInForce("c2")
	if err := next.Save(taken); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l.SetInForce("c3")
		if err := old.Save(l); !errors.Is(err, ErrDeposed) {
			t.Errorf("the deposed replica saved: %v", err)
		}
	}
	if found, err := next.Read(); err != nil || found.InForce() != "c2" {
		t.Errorf("found %q, %v, want c2", found.InForce(), err)
	}
	if deposed == 0 {
		t.Error("the deposed replica was not told")
	}
	// The same replica begins a new term after a restart.
	again := OpenShared(objects, "next", nil)
	if _, err := again.Load(); err != nil {
		t.Fatal(err)
	}
	taken.SetInForce("c4")
	if err := next.Save(taken); !errors.Is(err, ErrDeposed) {
		t.Errorf("the former process of the same name saved: %v", err)
	}
}

// If two replicas both find no ledger, only one of them creates it.
func TestOnlyOneReplicaBeginsALedger(t *testing.T) {
	objects := newFakeObjects()
	var ledgers []*Ledger
	stores := []*Shared{OpenShared(objects, "one", nil), OpenShared(objects, "two", nil)}
	for _, s := range stores {
		l, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		l.SetInForce(s.holder)
		ledgers = append(ledgers, l)
	}
	for range 3 {
		if err := stores[0].Save(ledgers[0]); !errors.Is(err, ErrDeposed) {
			t.Errorf("the first replica began a ledger too: %v", err)
		}
	}
	if err := stores[1].Save(ledgers[1]); err != nil {
		t.Fatal(err)
	}
	if found, err := stores[0].Read(); err != nil || found.InForce() != "two" {
		t.Errorf("found %v, %v", found, err)
	}
}

// A thousand placements on a hundred clusters fit: every object is well below the limit of an
// API server, saving one report is cheap, and there are few objects.
func TestSharedStoreHoldsALargeFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	objects := newFakeObjects()
	s := OpenShared(objects, "one", nil)
	l, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	const placements, clusters = 1000, 100
	at := time.Unix(1_700_000_000, 0)
	seen := func(p, c, untrackable int) {
		l.Fold(protocol.WorkSeen{Cluster: fmt.Sprintf("c%04d", c), Placement: api.PlacementKey{Name: fmt.Sprintf("p%04d", p)}, At: at, WorkState: protocol.WorkState{Done: true, Untrackable: untrackable}})
	}
	for p := range placements {
		key := api.PlacementKey{Name: fmt.Sprintf("p%04d", p)}
		l.SetPlacement(key, Placement{Content: fmt.Sprintf("%064x", p)})
		for c := range clusters {
			l.Bind(key, placement.Binding{Cluster: fmt.Sprintf("c%04d", c), AssignedAt: at, Assigned: placement.Revision{Commit: strings.Repeat("c", 40), Hash: fmt.Sprintf("%064x", p*c)}})
			seen(p, c, 1)
		}
	}
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
	whole := objects.written
	objects.written, objects.writes = 0, 0
	const saves = 200
	for i := range saves {
		at = at.Add(time.Second)
		for c := range clusters {
			seen(i, c, i%2+2)
		}
		if err := s.Save(l); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("whole %d bytes; then %d bytes in %d writes for %d saves; %d objects, the largest %d bytes",
		whole, objects.written, objects.writes, saves, len(objects.values), objects.largest)
	if objects.largest > 700<<10 {
		t.Errorf("an object has %d bytes", objects.largest)
	}
	if objects.written > 2*whole {
		t.Errorf("%d saves of a rollout wrote %d bytes, the whole ledger has %d", saves, objects.written, whole)
	}
	if got := len(objects.values); got > 60 {
		t.Errorf("there are %d objects", got)
	}
	after, err := OpenShared(objects, "two", nil).Load()
	if err != nil || dump(t, after) != dump(t, l) {
		t.Errorf("the ledger that was loaded is not the one that was saved (%v)", err)
	}
}

// A damaged or missing segment is an error; the ledger is never loaded in part.
func TestDamagedSharedLedgerIsRefused(t *testing.T) {
	synctest.Test(t, damageSharedLedger)
}

func damageSharedLedger(t *testing.T) {
	objects := newFakeObjects()
	s := OpenShared(objects, "one", nil)
	if _, err := s.Load(); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(bound()); err != nil {
		t.Fatal(err)
	}
	for name, value := range objects.values {
		for what, damage := range map[string]func(){
			"cut off": func() { objects.values[name] = value[:len(value)/2] },
			"changed": func() { objects.values[name] = append([]byte{value[0] ^ 0x11}, value[1:]...) },
			"gone":    func() { delete(objects.values, name) },
		} {
			damage()
			var damaged *DamagedError
			if _, err := OpenShared(objects, "two", nil).Load(); !errors.As(err, &damaged) {
				t.Errorf("%s %s: %v", name, what, err)
			}
			objects.values[name] = value
		}
	}
}

// The backup of a file can be imported into a shared store. It replaces nothing unless
// requested, and deposes the writing replica only if it is imported.
func TestBackupMovesToASharedStore(t *testing.T) {
	file := open(t, t.TempDir())
	if err := file.Save(bound()); err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	if err := file.Export(&backup); err != nil {
		t.Fatal(err)
	}
	objects := newFakeObjects()
	if err := OpenShared(objects, "person", nil).Import(bytes.NewReader(backup.Bytes()), false); err != nil {
		t.Fatal(err)
	}
	leader := OpenShared(objects, "leader", nil)
	l, err := leader.Load()
	if err != nil || dump(t, l) != dump(t, bound()) {
		t.Fatalf("loaded %v\n%s", err, dump(t, l))
	}
	if err := OpenShared(objects, "person", nil).Import(bytes.NewReader(backup.Bytes()), false); err == nil {
		t.Error("a ledger was replaced without being asked to")
	}
	l.SetInForce("c8")
	if err := leader.Save(l); err != nil {
		t.Errorf("an import that was refused deposed the leader: %v", err)
	}
	if err := OpenShared(objects, "person", nil).Import(bytes.NewReader(backup.Bytes()), true); err != nil {
		t.Error(err)
	}
	l.SetInForce("c9")
	if err := leader.Save(l); !errors.Is(err, ErrDeposed) {
		t.Errorf("the leader wrote over what was imported: %v", err)
	}
}
