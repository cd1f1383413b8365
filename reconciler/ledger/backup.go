package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gitfleet/gitfleet/placement/api"
)

// backupKind is the kind in the first line of a backup.
const backupKind = "gitfleet.dev/state"

// A backup consists of lines of JSON: a header, a line for each record, and a last line with
// the number of records, so that a truncated file is detected. Lines are sorted, so that two
// backups of the same state differ only in the time.
type (
	header struct {
		Kind     string    `json:"kind"`
		Schema   int       `json:"schema"`
		Exported time.Time `json:"exported"`
	}
	line struct {
		Record    string `json:"record"`
		Placement string `json:"placement,omitempty"`
		// Object is group, kind, namespace and name.
		Object  []string        `json:"object,omitempty"`
		Cluster string          `json:"cluster,omitempty"`
		Value   json.RawMessage `json:"value,omitempty"`
		// Records is set in the last line.
		Records *int `json:"records,omitempty"`
	}
)

// kinds are the names of record kinds in a backup, by the letters of their keys.
var kinds = map[string]string{headKey: "head", fleetKey: "fleet", "c": "cluster", "p": "placement", "e": "binding", "s": "suspension", "o": "declared", "v": "event"}

const lastLine = "end"

// lineOf converts a record into a line, with names that people and tools can read.
func lineOf(key string, value []byte) (line, error) {
	parts := strings.Split(key, "\x00")
	l := line{Record: kinds[parts[0]], Value: value}
	switch {
	case key == headKey, key == fleetKey:
	case parts[0] == "c" && len(parts) == 2:
		l.Cluster = parts[1]
	case (parts[0] == "p" && len(parts) == 3) || (parts[0] == "e" && len(parts) == 4):
		l.Placement = api.PlacementKey{Namespace: parts[1], Name: parts[2]}.String()
		if parts[0] == "e" {
			l.Cluster = parts[3]
		}
	case parts[0] == "s" && len(parts) == 8:
		if parts[2] != "" {
			l.Placement = api.PlacementKey{Namespace: parts[1], Name: parts[2]}.String()
		}
		l.Cluster = parts[7]
		if strings.Join(parts[3:7], "") != "" {
			l.Object = parts[3:7]
		}
	case parts[0] == "o" && len(parts) == 5:
		l.Object = parts[1:5]
	case parts[0] == "v" && len(parts) == 2:
	default:
		return l, fmt.Errorf("there is no record %q", key)
	}
	return l, nil
}

// key is the record's key in the store.
func (l line) key() (string, error) {
	placement, err := keyOf(l.Placement)
	if err != nil {
		return "", err
	}
	if strings.Contains(l.Placement+strings.Join(l.Object, "")+l.Cluster, "\x00") {
		return "", errors.New("a name has a NUL in it")
	}
	switch l.Record {
	case "head":
		return headKey, nil
	case "fleet":
		return fleetKey, nil
	case "cluster":
		return clusterKey(l.Cluster), nil
	case "placement":
		return placementKey(placement), nil
	case "binding":
		return entryKey(placement, l.Cluster), nil
	case "suspension":
		s := Subject{Placement: placement, Cluster: l.Cluster}
		if l.Object != nil {
			s.Object, err = l.id()
		}
		return suspensionKey(s), err
	case "declared":
		id, err := l.id()
		return declaredKey(id), err
	case "event":
		var e numbered
		err := json.Unmarshal(l.Value, &e)
		return eventKey(&e.Event), err
	}
	return "", fmt.Errorf("there is no record of kind %q", l.Record)
}

// id is the object's ID.
func (l line) id() (api.ID, error) {
	if len(l.Object) != 4 {
		return api.ID{}, fmt.Errorf("%q is no object", l.Object)
	}
	return api.ID{Group: l.Object[0], Kind: l.Object[1], Namespace: l.Object[2], Name: l.Object[3]}, nil
}

// keyOf parses crp/NAME or rp/NAMESPACE/NAME; zero for an empty name.
func keyOf(name string) (api.PlacementKey, error) {
	parts := strings.Split(name, "/")
	switch {
	case name == "":
		return api.PlacementKey{}, nil
	case len(parts) == 2 && parts[0] == "crp":
		return api.PlacementKey{Name: parts[1]}, nil
	case len(parts) == 3 && parts[0] == "rp":
		return api.PlacementKey{Namespace: parts[1], Name: parts[2]}, nil
	}
	return api.PlacementKey{}, fmt.Errorf("%q is no placement", name)
}

// export writes records as a backup.
func export(w io.Writer, records map[string][]byte, now time.Time) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	if err := out.Encode(header{backupKind, schema, now.UTC().Truncate(time.Second)}); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(records)) {
		l, err := lineOf(key, records[key])
		if err != nil {
			return err
		}
		if err := out.Encode(l); err != nil {
			return err
		}
	}
	n := len(records)
	return out.Encode(line{Record: lastLine, Records: &n})
}

// longestLine limits the memory that is used to read a file that is not a backup.
const longestLine = 64 << 20

// parseBackup parses a backup of this schema or one that can be migrated.
func parseBackup(r io.Reader) (map[string][]byte, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, longestLine)
	h := header{}
	if !in.Scan() || json.Unmarshal(in.Bytes(), &h) != nil || h.Kind != backupKind {
		return nil, errors.Join(errors.New("this is no backup that gitfleet state export has written"), in.Err())
	}
	if h.Schema > schema {
		return nil, newerError(h.Schema, "")
	}
	if err := checkOldest(h.Schema, ""); err != nil {
		return nil, err
	}
	records := map[string][]byte{}
	for n := 2; in.Scan(); n++ {
		l := line{}
		err := json.Unmarshal(in.Bytes(), &l)
		if err == nil && l.Record == lastLine {
			if in.Scan() || l.Records == nil || *l.Records != len(records) {
				return nil, fmt.Errorf("line %d: the end says something else than that there are %d records", n, len(records))
			}
			return records, nil
		}
		var key string
		if err == nil {
			key, err = l.key()
		}
		if err == nil && (len(l.Value) == 0 || records[key] != nil) {
			err = errors.New("it has no value, or is there twice")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		records[key] = slices.Clone(l.Value)
	}
	return nil, errors.Join(errors.New("the backup has no end: it was cut off"), in.Err())
}

// Export writes everything that was saved as a backup for Import. It may be called while the
// store is in use, and writes a consistent state.
func (s *boltStore) Export(w io.Writer) error {
	err := recoverPanic(func() error {
		records, err := s.read()
		if err != nil {
			return err
		}
		return export(w, records, time.Now())
	})
	if err != nil {
		return fmt.Errorf("export ledger %s: %w", s.path, err)
	}
	return nil
}

// Import replaces all records by a backup, or changes nothing if it fails. Existing data is an
// error unless replace is set; then a copy is kept.
func (s *boltStore) Import(r io.Reader, replace bool) error {
	records, err := parseBackup(r)
	if err != nil {
		return err
	}
	if _, err := decode(records); err != nil {
		return err
	}
	old, err := s.read()
	switch {
	case err != nil:
		return fmt.Errorf("read ledger %s: %w", s.path, err)
	case len(old) > 0 && !replace:
		return fmt.Errorf("%s is not empty: it has %d records; with --force they are replaced, and kept in %s", s.path, len(old), s.path+beforeImport)
	case len(old) > 0:
		if err := s.copyTo(s.path + beforeImport); err != nil {
			return err
		}
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket(bucket); err != nil {
			return err
		}
		return fill(tx, records)
	})
	if err != nil {
		return fmt.Errorf("import ledger: %w", err)
	}
	return nil
}

const beforeImport = ".before-import"

// copyTo copies the file, replacing an earlier copy.
func (s *boltStore) copyTo(path string) error {
	err := os.Remove(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = s.db.View(func(tx *bbolt.Tx) error { return tx.CopyFile(path, 0o600) })
	}
	if err != nil {
		return fmt.Errorf("keep a copy of the ledger: %w", err)
	}
	return nil
}

// newerError returns the error for data of a newer version of gitfleet. mend says how to fix
// it.
func newerError(have int, mend string) error {
	return fmt.Errorf("it was written by a newer gitfleet (schema %d, this one knows %d): run that version%s", have, schema, mend)
}
