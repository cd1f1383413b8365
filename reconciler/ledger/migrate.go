package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// schema is the version of the stored records. Older ones are migrated when the store is
// opened, newer ones are refused. It is raised when records change in a way that an older
// gitfleet would misread or lose.
const schema = 5

// migrations migrate each record of a schema to the next; the first is for schema 1.
var migrations = []func(key string, raw []byte) ([]byte, error){
	unchanged, // schema 2 added suspensions
	dropUnused,
	unchanged, // schema 4 added the labels of revisions, declared objects, events and Found; older records start without them
	unchanged, // schema 5 added the fleet's name and ID
}

func unchanged(_ string, raw []byte) ([]byte, error) { return raw, nil }

// dropUnused removes a field that nothing read. Schema 3 records what was available on every
// cluster; older records start without it.
func dropUnused(key string, raw []byte) ([]byte, error) {
	switch kind, _, _ := strings.Cut(key, "\x00"); kind {
	case "p":
		return without(raw, "Trigger")
	case "e":
		return without(raw, "Previous")
	}
	return raw, nil
}

func without(raw []byte, field string) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	delete(fields, field)
	return json.Marshal(fields)
}

// migrated migrates records of an older schema.
func migrated(records map[string][]byte, from int) (map[string][]byte, error) {
	if from < 1 {
		return nil, damaged("there is no schema %d", from)
	}
	for _, next := range migrations[from-1:] {
		for key, raw := range records {
			now, err := next(key, raw)
			if err != nil {
				return nil, damaged("record %q cannot be read: %v", strings.ReplaceAll(key, "\x00", "/"), err)
			}
			records[key] = now
		}
	}
	return records, nil
}

// migrate migrates the file, all or nothing. A copy is kept for the gitfleet that wrote it.
func (s *boltStore) migrate(from int) error {
	if from == schema {
		return nil
	}
	records, err := s.read()
	if err != nil {
		return err
	}
	if records, err = migrated(records, from); err != nil {
		return err
	}
	if err := s.copyTo(fmt.Sprintf("%s.schema-%d", s.path, from)); err != nil {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket(bucket); err != nil {
			return err
		}
		return fill(tx, records)
	})
}

// fill writes the bucket of a new file.
func fill(tx *bbolt.Tx, records map[string][]byte) error {
	b, err := tx.CreateBucket(bucket)
	if err != nil {
		return err
	}
	total := checksum{}
	for _, key := range slices.Sorted(maps.Keys(records)) {
		if err := write(b, []byte(key), records[key], &total); err != nil {
			return err
		}
	}
	if err := b.Put(schemaKey, fmt.Append(nil, schema)); err != nil {
		return err
	}
	return b.Put(sumKey, total.bytes())
}
