package ledger

import (
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// schema is the version of the stored records. It is increased when records change in a way
// that an older gitfleet would misread or lose. Records from oldestSchema on are migrated when
// the store is opened; others are refused.
//
// Schema 5 added the fleet's name and ID. Records of schema 4 are valid, and have none at
// first.
const schema, oldestSchema = 5, 4

// checkOldest returns an error for records that are too old to be migrated. The error ends with
// mend, which says how to fix it.
func checkOldest(from int, mend string) error {
	if from < oldestSchema {
		return fmt.Errorf("it was written by a gitfleet that was never released (schema %d, the oldest that can be read is %d)%s", from, oldestSchema, mend)
	}
	return nil
}

// migrate migrates the file completely or not at all. A copy is kept for the version that wrote
// it.
func (s *boltStore) migrate(from int) error {
	if from == schema {
		return nil
	}
	if err := checkOldest(from, ": start with an empty state directory"); err != nil {
		return err
	}
	records, err := s.read()
	if err != nil {
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
