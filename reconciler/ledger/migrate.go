package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// schema is the version of what is stored. An older one is brought up to date
// when it is opened, a newer one is refused. It is raised when records change
// in a way that an older gitfleet would misread or lose.
const schema = 5

// migrations take each record of a schema to the next: of schema 1 the first.
var migrations = []func(key string, raw []byte) ([]byte, error){
	asItIs, // the second brought suspensions, of which the first knew none
	dropForgotten,
	asItIs, // the fourth brought the labels a content was made with, what was declared, events, and what was found again; those of before begin anew
	asItIs, // the fifth brought the fleet's name and ID
}

func asItIs(_ string, raw []byte) ([]byte, error) { return raw, nil }

// dropForgotten takes away what nothing read. From schema 3 on placements know
// what was available everywhere; those of before find out anew.
func dropForgotten(key string, raw []byte) ([]byte, error) {
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

// migrated takes records of an older schema to this one.
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

// migrate brings the file up to date, all or nothing. What it was before is
// kept beside it, for the gitfleet that wrote it.
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

// fill writes the bucket of a file that has none.
func fill(tx *bbolt.Tx, records map[string][]byte) error {
	b, err := tx.CreateBucket(bucket)
	if err != nil {
		return err
	}
	total := sum{}
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
