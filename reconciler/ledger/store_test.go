package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// stores are all stores of a ledger. reopen returns the store as a new process would open it.
var stores = map[string]func(testing.TB) (s Store, reopen func() Store){
	"memory": func(testing.TB) (Store, func() Store) {
		s := Memory()
		return s, func() Store { return s }
	},
	"file": func(t testing.TB) (Store, func() Store) {
		dir := t.TempDir()
		s := open(t, dir)
		return s, func() Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir)
			return s
		}
	},
	"shared": func(testing.TB) (Store, func() Store) {
		objects := newFakeObjects()
		return OpenShared(objects, "one", nil), func() Store { return OpenShared(objects, "one", nil) }
	},
}

func open(t testing.TB, dir string) Archive {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// After any changes of a ledger, Load returns exactly what was saved.
func TestStoresKeepALedger(t *testing.T) {
	for name, make := range stores {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				s, reopen := make(t)
				keepsALedger(t, rt, s, reopen)
			})
		})
	}
}

// keepsALedger tests the contract of Store on an empty store.
func keepsALedger(t testing.TB, rt *rapid.T, s Store, reopen func() Store) {
	l, err := s.Load()
	if err != nil || !l.Empty() {
		rt.Fatalf("a new store has %v, %v", l, err)
	}
	saved := dump(t, l)
	for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
		change(rt, l, i)
		if !rapid.Bool().Draw(rt, "save") {
			continue
		}
		if err := s.Save(l); err != nil {
			rt.Fatal(err)
		}
		saved = dump(t, l)
		if rapid.Bool().Draw(rt, "restart") {
			s = reopen()
			if l, err = s.Load(); err != nil {
				rt.Fatal(err)
			}
			if got := dump(t, l); got != saved {
				rt.Fatalf("loaded\n%s\nsaved\n%s", got, saved)
			}
		}
	}
	after, err := reopen().Load()
	if err != nil {
		rt.Fatal(err)
	}
	if got := dump(t, after); got != saved {
		rt.Fatalf("loaded\n%s\nsaved\n%s", got, saved)
	}
}

var subjects = []Subject{
	{Placement: web}, {Placement: quay, Cluster: "east"}, {Cluster: "west"},
	{Object: api.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Cluster: "east"},
}

// change makes one random change of a ledger.
func change(t *rapid.T, l *Ledger, minute int) {
	key := rapid.SampledFrom([]api.PlacementKey{web, quay}).Draw(t, "placement")
	cluster := rapid.SampledFrom([]string{"east", "west"}).Draw(t, "cluster")
	n := rapid.IntRange(1, 3).Draw(t, "n")
	switch rapid.IntRange(0, 13).Draw(t, "change") {
	case 0:
		l.SetPlacement(key, Placement{Generation: int64(n), SpecHash: "spec", Created: noon, Index: n, Content: "content", Abandon: n == 2})
	case 1:
		if l.Placement(key) != nil {
			l.Bind(key, placement.Binding{Cluster: cluster, Assigned: v(n), AssignedAt: at(minute), Score: &placement.Score{Affinity: int32(n)}})
		}
	case 2:
		l.Unbind(key, cluster)
	case 3:
		l.Forget(key)
	case 4:
		l.SetTransitions(key, rapid.SampledFrom([]string{"", cluster}).Draw(t, "of"), map[string]Transition{"Applied": {"False", at(minute)}})
	case 5:
		l.SetDeviation(key, cluster, Deviation{Yields: []Yield{{ID: api.ID{Kind: "Namespace", Name: "web"}, To: quay, Passing: n == 1}}}, at(n))
	case 6:
		o := failing(cluster, n, minute)
		o.Placement, o.Incidents = key, &protocol.Incidents{BlockedDeletions: []protocol.BlockedDeletion{{ID: api.ID{Kind: "Namespace", Name: "web"}, Why: "a namespace"}}}
		l.Fold(o)
	case 7:
		l.Fold(protocol.ClusterSeen{Cluster: cluster, At: at(minute), Healthy: n > 1, Properties: map[string]string{"nodes": "3"}, Namespaces: []string{"web"}})
	case 9:
		l.Suspend(Suspension{Subject: subjects[n], By: "alice", Reason: "an incident", Since: at(minute), Until: at(minute + n)})
	case 10:
		l.Resume(subjects[n], at(n))
		for _, s := range l.ExpiredSuspensions(at(minute)) {
			l.Resume(s.Subject, at(minute))
		}
	case 11:
		l.ResumeRollout(key, at(minute))
	case 12:
		l.Declare(v(n).Commit, at(minute), contents(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"1", "2"}), 0, 3).Draw(t, "declared")))
	case 13:
		l.SetEvents(AppendEvents(l.Events(), []Event{{Kind: "MemberCluster", Name: cluster, Reason: "Seen", Message: fmt.Sprint(n), First: at(minute), Last: at(minute), Count: 1}}))
	case 8:
		SetRepository(l, Repository{InForce: v(n).Commit, Refused: v(minute).Commit, Why: "not YAML", Unreadable: rapid.SampledFrom([]string{"", "timeout"}).Draw(t, "unreadable"), NotAccepted: "not signed"})
		l.ForgetCluster(cluster)
	}
}

// A failed save has written nothing, and the next one writes everything.
func TestFailedSaveIsMadeUpFor(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := bound()
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
	before := dump(t, l)
	l.Unbind(web, "east")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(l); err == nil {
		t.Fatal("a closed store saves")
	}
	s = open(t, dir)
	if old, err := s.Load(); err != nil || dump(t, old) != before {
		t.Errorf("after a failed save: %v\n%s", err, dump(t, old))
	}
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
	if now, err := s.Load(); err != nil || dump(t, now) != dump(t, l) {
		t.Errorf("the next save did not make up for it: %v\n%s", err, dump(t, now))
	}
}

// Only one process can open a state directory.
func TestSecondProcessIsTurnedAway(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "another gitfleet uses this state directory") {
		t.Errorf("opened twice: %v", err)
	}
}

// A file, a backup or a shared ledger with records of another version is refused and not changed.
func TestOtherSchemasAreRefused(t *testing.T) {
	for other, want := range map[string]string{
		"99": "written by a newer gitfleet (schema 99, this one knows 5)",
		"4":  "written by a gitfleet that was never released (schema 4, this one knows 5)",
	} {
		dir := t.TempDir()
		s := open(t, dir)
		if err := s.Save(bound()); err != nil {
			t.Fatal(err)
		}
		backup := strings.Replace(exported(t, s), `"schema":5`, `"schema":`+other, 1)
		err := s.(*boltStore).db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(schemaKey, []byte(other)) })
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "ledger.db")
		before := read(t, path)
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("a file: %v", err)
		}
		if !bytes.Equal(read(t, path), before) {
			t.Error("the file was written to")
		}
		if err := open(t, t.TempDir()).Import(strings.NewReader(backup), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a backup: %v", err)
		}
		objects := newFakeObjects()
		objects.values[indexName] = []byte(`{"schema":` + other + `}`)
		if _, err := OpenShared(objects, "one", nil).Load(); err == nil || !strings.Contains(err.Error(), want) || string(objects.values[indexName]) != `{"schema":`+other+`}` {
			t.Errorf("a shared ledger: %v", err)
		}
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A truncated or modified file is refused with advice. It is never loaded in part.
func TestDamagedFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := New()
	for i := range 40 {
		key := api.PlacementKey{Name: strings.Repeat("p", i+1)}
		l.SetPlacement(key, Placement{Generation: int64(i)})
		l.Bind(key, placement.Binding{Cluster: "east", Assigned: v(i)})
	}
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
	l.Forget(api.PlacementKey{Name: "ppp"})
	if err := errors.Join(s.Save(l), s.Close()); err != nil {
		t.Fatal(err)
	}
	whole, want := read(t, filepath.Join(dir, "ledger.db")), dump(t, l)

	refused := 0
	try := func(what string, at int, data []byte) {
		got, err := loadBytes(t, data)
		switch {
		case err == nil && dump(t, got) != want:
			t.Errorf("%s at %d of %d: believed\n%s", what, at, len(whole), dump(t, got))
		case err != nil:
			refused++
			if !strings.Contains(err.Error(), "gitfleet state reset moves it aside") && !strings.Contains(err.Error(), "newer gitfleet") {
				t.Errorf("%s at %d: the error does not say what to do: %v", what, at, err)
			}
		}
	}
	for at := 512; at < len(whole); at += 4096 {
		try("cut off", at, whole[:at])
	}
	for at := 0; at < len(whole); at += 457 {
		data := bytes.Clone(whole)
		data[at] ^= 0x11
		try("changed", at, data)
	}
	if refused < 10 {
		t.Errorf("of all damages only %d were found", refused)
	}
}

// loadBytes loads a ledger from the bytes of a file.
func loadBytes(t testing.TB, data []byte) (*Ledger, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ledger.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Load()
}

// A file of an earlier version has the checksum among the records. It is read, and has it elsewhere once it is saved.
func TestTheChecksumLeavesTheRecords(t *testing.T) {
	s := open(t, t.TempDir()).(*boltStore)
	l := bound()
	err := errors.Join(s.Save(l), s.db.Update(func(tx *bbolt.Tx) error {
		sum := sumIn(tx).bytes()
		return errors.Join(tx.DeleteBucket(sumBucket), tx.Bucket(bucket).Put(sumKey, sum))
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, among := range []bool{true, false} {
		if _, err := s.Load(); err != nil {
			t.Fatal(err)
		}
		s.db.View(func(tx *bbolt.Tx) error {
			if is := tx.Bucket(bucket).Get(sumKey) != nil; is != among {
				t.Errorf("among the records: %t, want %t", is, among)
			}
			return nil
		})
		l.SetInForce("another")
		if err := s.Save(l); err != nil {
			t.Fatal(err)
		}
	}
}

// A save of one record writes the pages on the way to it, the root page and the list of free pages, and no others.
func TestASaveWritesOnePath(t *testing.T) {
	s := open(t, t.TempDir()).(*boltStore)
	l, key := New(), api.PlacementKey{Name: "web"}
	l.SetPlacement(key, Placement{})
	for c := range 5000 {
		l.Bind(key, placement.Binding{Cluster: fmt.Sprintf("c%04d", c), Assigned: placement.Revision{Commit: "c1", Hash: "h1"}})
	}
	save := func() {
		if err := s.Save(l); err != nil {
			t.Fatal(err)
		}
	}
	for l.Unsaved() {
		save()
	}
	depth := 0
	s.db.View(func(tx *bbolt.Tx) error {
		depth = tx.Bucket(bucket).Stats().Depth
		return nil
	})
	before := s.db.Stats()
	l.Bind(key, placement.Binding{Cluster: "c0007", Assigned: placement.Revision{Commit: "c2", Hash: "h2"}})
	save()
	after := s.db.Stats()
	if pages := after.TxStats.GetPageCount() - before.TxStats.GetPageCount(); depth < 3 || pages > int64(depth)+3 {
		t.Errorf("%d pages were written, want at most three beside a path of %d", pages, depth)
	}
}
