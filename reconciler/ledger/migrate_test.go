package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// asWritten puts the file that a gitfleet of an older schema wrote into a state
// directory.
func asWritten(t *testing.T, schema int) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "ledger.db")
	if err := os.WriteFile(path, read(t, fmt.Sprintf("testdata/schema-%d/ledger.db", schema)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

// broughtUpToDate opens a file of an older gitfleet. What it was before stays
// beside it.
func broughtUpToDate(t *testing.T, schema int) (dir string, s Store, l *Ledger) {
	t.Helper()
	dir, path := asWritten(t, schema)
	s = open(t, dir)
	l, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	copied, err := loadBytes(t, read(t, fmt.Sprintf("%s.schema-%d", path, schema)))
	if err != nil || dump(t, copied) != dump(t, l) {
		t.Errorf("the copy is not what was there before: %v\n%s", err, dump(t, copied))
	}
	return dir, s, l
}

// A file of an older gitfleet is brought up to date and nothing that counts is
// lost.
func TestOlderSchemaIsBroughtUpToDate(t *testing.T) {
	dir, s, l := broughtUpToDate(t, 1)
	e := l.Placement(web).Entry("east")
	switch {
	case l.Head() != "v2", len(l.Placements()) != 2, !l.Placement(quay).Abandon, l.Placement(web).Generation != 3, l.Placement(web).Proven.Commit != "", l.Placement(web).Found,
		l.Cluster("east") == nil || l.Cluster("east").UID != "uid-of-east":
		t.Errorf("placements or clusters are not what was written:\n%s", dump(t, l))
	case e == nil || e.Binding.Assigned != v(2) || !e.Binding.Risked || e.Binding.Score.Affinity != 7 || !e.Binding.AssignedAt.Equal(at(3)),
		len(e.Seen.Exceptions) != 1, len(e.Yields) != 1 || e.Yields[0].To != quay, !e.Transitions["Applied"].Time.Equal(at(4)):
		t.Errorf("the binding is not what was written:\n%s", dump(t, l))
	}
	if err := s.(*boltStore).db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		if got := string(b.Get(schemaKey)); got != fmt.Sprint(schema) {
			t.Errorf("the schema is %s after it was brought up to date", got)
		}
		return b.ForEach(func(k, v []byte) error {
			var fields map[string]any
			if strings.HasPrefix(string(k), "p\x00") || strings.HasPrefix(string(k), "e\x00") {
				if err := json.Unmarshal(v, &fields); err != nil {
					return err
				}
			}
			for _, gone := range []string{"Trigger", "Previous"} {
				if _, there := fields[gone]; there {
					t.Errorf("%q still has %s", k, gone)
				}
			}
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	want := dump(t, l)
	l.Fold(ClusterSeen{Cluster: "west", At: noon.Add(time.Hour), Healthy: true})
	if err := errors.Join(s.Save(l), s.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := open(t, dir).Load()
	if err != nil || dump(t, again) != dump(t, l) || dump(t, again) == want {
		t.Errorf("after the next start: %v\n%s", err, dump(t, again))
	}
}

// The schema before this one loses nothing, and knows of no events and of
// nothing declared yet.
func TestSchemaThreeIsBroughtUpToDate(t *testing.T) {
	dir, s, l := broughtUpToDate(t, 3)
	e := l.Placement(web).Entry("east")
	switch {
	case l.Head() != "v2", !l.Placement(quay).Abandon, l.Placement(web).Generation != 3, l.Placement(web).Proven != v(1), l.Cluster("east").UID != "uid-of-east",
		len(l.Suspensions()) != 1, !l.Placement(web).Resumed.Equal(at(2)), e.Binding.Assigned != v(2), len(e.Seen.Exceptions) != 1, len(e.Yields) != 1,
		len(l.Events())+len(l.Declared()) != 0:
		t.Errorf("not what was written:\n%s", dump(t, l))
	}
	l.Declare("v3", at(9), contents(map[string]string{"a": "1"}))
	l.SetEvents([]Event{happened("east", "up", 9)})
	want := dump(t, l)
	if err := errors.Join(s.Save(l), s.Close()); err != nil {
		t.Fatal(err)
	}
	if again, err := open(t, dir).Load(); err != nil || dump(t, again) != want {
		t.Errorf("after the next start: %v\n%s", err, dump(t, again))
	}
}

// A damaged file of an older gitfleet is refused as any other, and left as it
// is.
func TestDamagedOlderFileIsRefused(t *testing.T) {
	_, path := asWritten(t, 1)
	whole := read(t, path)
	at := bytes.Index(whole, []byte(`"Generation":3`))
	if at < 0 {
		t.Fatal("the file does not have the record in clear")
	}
	data := bytes.Clone(whole)
	data[at+len(`"Generation":`)] = '4'
	if _, err := loadBytes(t, data); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a damaged file of schema 1: %v", err)
	}
}
