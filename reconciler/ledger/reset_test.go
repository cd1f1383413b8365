package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gitfleet/gitfleet/reconciler/ledger/segment"
)

// asideAt is when ledgers are reset.
var asideAt = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// inspected checks what Inspect says of a directory, in which it writes nothing.
func inspected(t *testing.T, dir string, inUse, damaged bool) {
	t.Helper()
	path := filepath.Join(dir, "ledger.db")
	before, _ := os.ReadFile(path)
	got, err := Inspect(dir)
	if got != inUse || IsDamaged(err) != damaged || (err != nil) != damaged {
		t.Errorf("in use: %t, %v; want %t, and damaged %t", got, err, inUse, damaged)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was written to")
	}
}

// savedDir returns a directory with a ledger, and its bytes.
func savedDir(t *testing.T) (dir string, whole []byte) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	if err := errors.Join(s.Save(bound()), s.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, read(t, filepath.Join(dir, "ledger.db"))
}

// A ledger is in use while it is open. Damage of its records is found too.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	inspected(t, dir, false, false)
	if err := os.WriteFile(filepath.Join(dir, "ledger.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inspected(t, dir, false, false)
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	inspected(t, dir, true, false)
	if err := errors.Join(store.Save(bound()), store.Close()); err != nil {
		t.Fatal(err)
	}
	inspected(t, dir, false, false)
	whole := read(t, filepath.Join(dir, "ledger.db"))
	for name, data := range damages(whole) {
		if err := os.WriteFile(filepath.Join(dir, "ledger.db"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		inspected(t, dir, false, true)
	}
}

// damages are files that are damaged in their header, in their pages, and in a record.
func damages(whole []byte) map[string][]byte {
	record := bytes.Clone(whole)
	for at := 0; ; at++ {
		next := bytes.Index(record[at:], []byte(`"Assigned"`))
		if next < 0 {
			break
		}
		at += next
		record[at+1] = 'a'
	}
	lost := append(bytes.Clone(whole[:2*os.Getpagesize()]), make([]byte, len(whole)-2*os.Getpagesize())...) // the library panics
	return map[string][]byte{"no database": []byte("this is no database"), "cut off": whole[:len(whole)/2], "a changed record": record, "lost pages": lost}
}

// A damaged ledger is moved aside with its bytes, and a new one is begun. One that can be read stays,
// unless it is forced; one that is in use, and a file that cannot be read, always stay.
func TestReset(t *testing.T) {
	dir, whole := savedDir(t)
	path := filepath.Join(dir, "ledger.db")
	if _, err := Reset(t.TempDir(), true, asideAt); !errors.Is(err, ErrNoLedger) {
		t.Errorf("a directory without a ledger: %v", err)
	}
	if _, err := Reset(dir, false, asideAt); !errors.Is(err, ErrNotDamaged) || !bytes.Equal(read(t, path), whole) {
		t.Errorf("a ledger that can be read: %v", err)
	}
	s := open(t, dir)
	if _, err := Reset(dir, true, asideAt); !errors.Is(err, ErrInUse) {
		t.Errorf("a ledger in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	reset := func(data []byte, force bool, name string) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		aside, err := Reset(dir, force, asideAt)
		if err != nil || filepath.Base(aside) != name {
			t.Fatalf("moved to %s, %v; want %s", aside, err, name)
		}
		want[aside] = data
		s := open(t, dir)
		l, err := s.Load()
		if err = errors.Join(err, s.Close()); err != nil || len(l.Placements()) > 0 {
			t.Errorf("the new ledger: %v\n%s", err, dump(t, l))
		}
		for path, data := range want {
			if !bytes.Equal(read(t, path), data) {
				t.Errorf("%s is not what was moved there", path)
			}
		}
	}
	names := []string{"", "-2", "-3", "-4"}
	for n, data := range slices.Collect(maps.Values(damages(whole))) {
		reset(data, false, "ledger.db.aside-20261128T120000Z"+names[n])
	}
	reset(whole, true, "ledger.db.aside-20261128T120000Z-5")

	unreadable := t.TempDir()
	if err := os.Mkdir(filepath.Join(unreadable, "ledger.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Reset(unreadable, true, asideAt); err == nil || IsDamaged(err) || errors.Is(err, ErrNotDamaged) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// A ledger of a newer version is not damaged, and stays unless it is forced.
func TestResetOfANewerVersion(t *testing.T) {
	for name, change := range map[string]func(tx *bbolt.Tx) error{
		"schema": func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(schemaKey, []byte("99")) },
		"kind of record": func(tx *bbolt.Tx) error {
			return write(tx, map[string][]byte{"y\x00east": []byte("{}")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := savedDir(t)
			db, err := bbolt.Open(filepath.Join(dir, "ledger.db"), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(change), db.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := Reset(dir, false, asideAt); err == nil || !strings.HasPrefix(err.Error(), "the ledger is not damaged: ") || !strings.Contains(err.Error(), "newer gitfleet") {
				t.Errorf("without force: %v", err)
			}
			if _, err := Reset(dir, true, asideAt); err != nil {
				t.Errorf("with force: %v", err)
			}
		})
	}
}

// The shared ledger of a newer version is not damaged, also if its index has another form or its records are of an unknown kind.
func TestSharedLedgerOfANewerVersionIsNotDamaged(t *testing.T) {
	seg, parts, err := segment.Pack(segment.ID{Term: 1, Number: 1}, map[string][]byte{"y\x00east": []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	known, err := json.Marshal(index{Schema: schema, Segments: []segment.Segment{seg}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(known), `{"schema":99}`, `{"segments":{"first":1},"schema":99}`} {
		objects := newFakeObjects()
		objects.values[indexName], objects.values[seg.Part(0)] = []byte(text), parts[0]
		_, err := OpenShared(objects, "one", nil).Load()
		if _, other := errors.AsType[*SchemaError](err); !other || IsDamaged(err) || !strings.Contains(err.Error(), "newer gitfleet") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A file that somebody has moved aside while a daemon waited for its lock is not used.
func TestAFileThatWasMovedIsNotUsed(t *testing.T) {
	dir, _ := savedDir(t)
	s := open(t, dir).(*boltStore)
	defer s.Close()
	if err := os.Rename(s.path, s.path+".aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.checkFile(); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
}

// The records of a fleet that cannot be decoded are damage.
func TestAFleetThatCannotBeDecodedIsDamage(t *testing.T) {
	s := open(t, t.TempDir()).(*boltStore)
	err := s.db.Update(func(tx *bbolt.Tx) error {
		return write(tx, map[string][]byte{fleetKey: []byte("{")})
	})
	if _, fault := s.Fleet(); err != nil || !IsDamaged(fault) {
		t.Errorf("%v, %v", err, fault)
	}
}

// A fault while a file is mapped that cannot be read is an error of the file system.
func TestAFaultOfTheDiskIsNotDamage(t *testing.T) {
	dir, _ := savedDir(t)
	if err := faultOf(dir, "fault"); err == nil || IsDamaged(err) {
		t.Errorf("a directory, which cannot be read: %v", err)
	}
	if err := faultOf(filepath.Join(dir, "ledger.db"), "fault"); !IsDamaged(err) {
		t.Errorf("a file that can be read: %v", err)
	}
}

// A damaged shared ledger is replaced by an empty one, and its objects are copied first. Whoever wrote
// it is deposed. One that can be read stays, unless it is forced.
func TestResetOfASharedLedger(t *testing.T) { synctest.Test(t, resetShared) }

func resetShared(t *testing.T) {
	for what, damage := range map[string]func(*fakeObjects){
		"a changed segment": func(o *fakeObjects) { o.values["segment-1-0-0"] = []byte("?") },
		"a lost segment":    func(o *fakeObjects) { delete(o.values, "segment-1-0-0") },
		"a damaged index":   func(o *fakeObjects) { o.values[indexName] = []byte("?") },
		"a lost index":      func(o *fakeObjects) { delete(o.values, indexName) },
		"nothing":           nil,
	} {
		objects := newFakeObjects()
		person := OpenShared(objects, "person", nil)
		if _, err := person.Reset(true, asideAt); !errors.Is(err, ErrNoLedger) {
			t.Errorf("no ledger: %v", err)
		}
		leader, l := openLoaded(t, objects, nil)
		l.SetInForce("c1")
		mustSave(t, leader, l)
		if damage == nil {
			before := maps.Clone(objects.values)
			if _, err := person.Reset(false, asideAt); !errors.Is(err, ErrNotDamaged) || !maps.EqualFunc(before, objects.values, bytes.Equal) {
				t.Errorf("a ledger that can be read: %v", err)
			}
		} else {
			damage(objects)
		}
		want := maps.Clone(objects.values)
		aside, err := person.Reset(damage == nil, asideAt)
		if err != nil || aside != "aside-20261128t120000z-" {
			t.Fatalf("%s: copied to %s, %v", what, aside, err)
		}
		if empty, err := OpenShared(objects, "next", nil).Load(); err != nil || len(empty.Placements()) > 0 || empty.InForce() != "" {
			t.Errorf("%s: afterwards %v", what, err)
		}
		for name, value := range want {
			if !bytes.Equal(objects.values[aside+name], value) {
				t.Errorf("%s: there is no copy of %s", what, name)
			}
		}
		if len(objects.values) != len(want)+1 {
			t.Errorf("%s: %v are left, want the copies and an index", what, slices.Sorted(maps.Keys(objects.values)))
		}
		l.SetInForce("c2")
		if err := leader.Save(l); err == nil {
			t.Errorf("%s: the replica that wrote the ledger before still does", what)
		}
	}
}
