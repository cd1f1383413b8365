package ledger

import (
	"errors"
	"testing"
	"testing/synctest"
)

// If somebody deletes the index, the leader writes the whole ledger again.
func TestDeletedIndexIsCreatedAnew(t *testing.T) {
	objects := newFakeObjects()
	s, _ := openLoaded(t, objects, func() { t.Error("deposed, and nobody else is there") })
	l := bound()
	mustSave(t, s, l)
	delete(objects.values, indexName)
	l.SetInForce("c9")
	var err error
	for range 2 { // the first Save finds that it is missing
		err = s.Save(l)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(objects.values), 1+partsOf(t, objects); got != want {
		t.Errorf("%d objects are left, %d are named", got, want)
	}
	after, err := OpenShared(objects, "two", nil).Load()
	if err != nil || dump(t, after) != dump(t, l) {
		t.Errorf("loaded %v\n%s\nwant\n%s", err, dump(t, after), dump(t, l))
	}
}

// A replica that finds segments but no index does not treat the ledger as new, and deletes
// nothing.
func TestMissingIndexIsNoFirstStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newFakeObjects()
		s := OpenShared(objects, "one", nil)
		if _, err := s.Load(); err != nil {
			t.Fatal(err)
		}
		if err := s.Save(bound()); err != nil {
			t.Fatal(err)
		}
		delete(objects.values, indexName)
		before := len(objects.values)
		var damaged *DamagedError
		next := OpenShared(objects, "two", nil)
		if _, err := next.Load(); !errors.As(err, &damaged) {
			t.Errorf("loaded without an index: %v", err)
		}
		if _, err := next.Read(); !errors.As(err, &damaged) {
			t.Errorf("read without an index: %v", err)
		}
		if got := len(objects.values); got != before {
			t.Errorf("%d objects are left of %d", got, before)
		}
	})
}

// If the index is deleted and another replica creates a new one, the leader is deposed.
func TestIndexBegunByAnotherReplicaDeposes(t *testing.T) {
	objects := newFakeObjects()
	s, l := openLoaded(t, objects, nil)
	l.SetInForce("c1")
	mustSave(t, s, l)
	delete(objects.values, indexName)
	l.SetInForce("c2")
	if err := s.Save(l); err == nil {
		t.Fatal("saved without an index")
	}
	clear(objects.values)
	if _, err := OpenShared(objects, "two", nil).Load(); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(l); !errors.Is(err, ErrDeposed) {
		t.Errorf("saved over another replica: %v", err)
	}
}
