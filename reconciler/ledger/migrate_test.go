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
)

// fileOf creates a state directory with a file of an older schema.
func fileOf(t *testing.T, schema int) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "ledger.db")
	if err := os.WriteFile(path, read(t, fmt.Sprintf("testdata/schema-%d/ledger.db", schema)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

// migratedFrom opens a file of an older schema, and checks the copy that is kept.
func migratedFrom(t *testing.T, schema int) (dir string, s Store, l *Ledger) {
	t.Helper()
	dir, path := fileOf(t, schema)
	s = open(t, dir)
	l, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	copied, err := loadBytes(t, read(t, fmt.Sprintf("%s.schema-%d", path, schema)))
	if err != nil || dump(t, copied) != dump(t, l) {
		t.Errorf("the copy differs from the migrated file: %v\n%s", err, dump(t, copied))
	}
	return dir, s, l
}

// Records of the previous schema are migrated without loss.
func TestSchemaFourIsMigrated(t *testing.T) {
	dir, s, l := migratedFrom(t, 4)
	if p := l.Placement(web); l.InForce() != "v2" || l.Cluster("east").UID != "uid-of-east" || p.Generation != 1 ||
		p.Entry("east").Binding.Assigned != v(1) || p.Entry("west").Binding.Assigned != v(1) {
		t.Errorf("not what was written:\n%s", dump(t, l))
	}
	err := s.(*boltStore).db.View(func(tx *bbolt.Tx) error {
		if got := string(tx.Bucket(bucket).Get(schemaKey)); got != fmt.Sprint(schema) {
			t.Errorf("the schema is %s after the migration", got)
		}
		return nil
	})
	l.Declare("v3", at(9), contents(map[string]string{"a": "1"}))
	l.SetEvents([]Event{happened("east", "up", 9)})
	want := dump(t, l)
	if err := errors.Join(err, s.Save(l), s.Close()); err != nil {
		t.Fatal(err)
	}
	if again, err := open(t, dir).Load(); err != nil || dump(t, again) != want {
		t.Errorf("after the next start: %v\n%s", err, dump(t, again))
	}
}

// A file, a backup or a shared ledger with a schema that was never released is refused and not
// changed. Only the error about a file says to start with an empty state directory.
func TestSchemasBeforeTheFirstReleaseAreRefused(t *testing.T) {
	const want, directory = "schema 3, the oldest that can be read is 4", "state directory"
	_, path := fileOf(t, 4)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(schemaKey, []byte("3")) })
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := loadBytes(t, read(t, path)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), directory) {
		t.Errorf("a file of schema 3: %v", err)
	}
	s := open(t, t.TempDir())
	backup := strings.Replace(exported(t, s), fmt.Sprintf(`"schema":%d`, schema), `"schema":3`, 1)
	if err := s.Import(strings.NewReader(backup), true); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), directory) {
		t.Errorf("a backup of schema 3: %v", err)
	}
	objects := newFakeObjects()
	objects.values[indexName] = []byte(`{"schema":3}`)
	if _, err := OpenShared(objects, "one", nil).Load(); err == nil || !strings.Contains(err.Error(), want+"): stop the replicas and delete the Secrets") {
		t.Errorf("a shared ledger of schema 3: %v", err)
	}
}

// A damaged file of an older schema is refused and not changed.
func TestDamagedOlderFileIsRefused(t *testing.T) {
	_, path := fileOf(t, 4)
	whole := read(t, path)
	at := bytes.Index(whole, []byte(`"Generation":1`))
	if at < 0 {
		t.Fatal("the file does not have the record in clear")
	}
	data := bytes.Clone(whole)
	data[at+len(`"Generation":`)] = '4'
	if _, err := loadBytes(t, data); err == nil || !strings.Contains(err.Error(), "gitfleet state reset moves it aside") {
		t.Errorf("a damaged file of schema 4: %v", err)
	}
}
