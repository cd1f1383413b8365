package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

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
		Record    string          `json:"record"`
		Placement string          `json:"placement,omitempty"`
		Object    []string        `json:"object,omitempty"` // group, kind, namespace and name
		Cluster   string          `json:"cluster,omitempty"`
		Value     json.RawMessage `json:"value,omitempty"`
		Records   *int            `json:"records,omitempty"` // in the last line only
	}
)

const lastLine = "end"

// lineOf converts a record into a line, with names that people and tools can read.
func lineOf(key string, value []byte) (line, error) {
	k, err := parseKey(key)
	l := line{Record: kinds[k.kind].name, Cluster: k.cluster, Value: value}
	if k.placement != (api.PlacementKey{}) {
		l.Placement = k.placement.String()
	}
	if o := k.object; o != (api.ID{}) {
		l.Object = []string{o.Group, o.Kind, o.Namespace, o.Name}
	}
	return l, err
}

// key is the record's key in the store.
func (l line) key() (string, error) {
	k := recordKey{cluster: l.Cluster}
	for kind, is := range kinds {
		if is.name == l.Record {
			k.kind = kind
		}
	}
	if k.kind == "" {
		return "", fmt.Errorf("there is no record of kind %q", l.Record)
	}
	if strings.Contains(l.Placement+strings.Join(l.Object, "")+l.Cluster, "\x00") {
		return "", errors.New("a name has a NUL in it")
	}
	if l.Placement != "" {
		var err error
		if k.placement, err = api.ParsePlacement(l.Placement); err != nil {
			return "", err
		}
	}
	switch {
	case len(l.Object) == 4:
		k.object = api.ID{Group: l.Object[0], Kind: l.Object[1], Namespace: l.Object[2], Name: l.Object[3]}
	case len(l.Object) > 0 || k.kind == declaredRecord:
		return "", fmt.Errorf("%q is no object", l.Object)
	}
	switch k.kind { // the rest of the key is in the value
	case eventRecord:
		var e Event
		if err := json.Unmarshal(l.Value, &e); err != nil {
			return "", err
		}
		return eventKey(&e), nil
	case effectRecord:
		var s Suspension
		if err := json.Unmarshal(l.Value, &s); err != nil {
			return "", err
		}
		k.effect = string(s.Effect)
	}
	return k.String(), nil
}

// export writes records as a backup.
func export(w io.Writer, records map[string][]byte) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	if err := out.Encode(header{backupKind, schema, time.Now().UTC().Truncate(time.Second)}); err != nil {
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

// parseBackup returns the records of a backup, which are those of a ledger.
func parseBackup(r io.Reader) (map[string][]byte, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, longestLine)
	h := header{}
	if !in.Scan() || json.Unmarshal(in.Bytes(), &h) != nil || h.Kind != backupKind {
		return nil, errors.Join(errors.New("this is no backup that gitfleet state export has written"), in.Err())
	}
	if err := checkSchema(h.Schema); err != nil {
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
			_, err := decode(records)
			return records, err
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
		records[key] = l.Value
	}
	return nil, errors.Join(errors.New("the backup has no end: it was cut off"), in.Err())
}
