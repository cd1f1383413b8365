package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// schema is the version of the stored records. It is increased when records change in a way
// that an older gitfleet would misread or lose. No other version was ever released.
const schema = 5

// A recordKey identifies a stored record. As text it consists of the kind and the parts that
// its kind has, separated by NUL, which no name contains.
type recordKey struct {
	kind string
	Subject
	event string // the Number of an EventKey
}

// kinds are the kinds of records, the names that they have in backups, and the parts of their
// keys. In records the commit in force is the head.
var kinds = map[string]struct {
	name                              string
	placement, object, cluster, event bool
	effect                            bool
}{
	headKey:          {name: "head"},
	fleetKey:         {name: "fleet"},
	clusterRecord:    {name: "cluster", cluster: true},
	placementRecord:  {name: "placement", placement: true},
	entryRecord:      {name: "binding", placement: true, cluster: true},
	suspensionRecord: {name: "suspension", placement: true, object: true, cluster: true},
	effectRecord:     {name: "effect", placement: true, cluster: true, effect: true},
	declaredRecord:   {name: "declared", object: true},
	eventRecord:      {name: "event", event: true},
}

const (
	// Of the commit in force and the fleet there is one record each, whose key is the kind.
	headKey, fleetKey = "h", "f"

	clusterRecord, placementRecord, entryRecord   = "c", "p", "e"
	suspensionRecord, declaredRecord, eventRecord = "s", "o", "v"
	// Suspensions with another effect than that nothing is written have keys of their own, which an
	// version that does not know them refuses instead of taking them for suspensions.
	effectRecord = "x"
)

func clusterKey(name string) string {
	return recordKey{kind: clusterRecord, Subject: Subject{Cluster: name}}.String()
}

func placementKey(k api.PlacementKey) string {
	return recordKey{kind: placementRecord, Subject: Subject{Placement: k}}.String()
}

func entryKey(k api.PlacementKey, cluster string) string {
	return recordKey{kind: entryRecord, Subject: Subject{Placement: k, Cluster: cluster}}.String()
}

func suspensionKey(s Subject) string {
	if s.Effect != StopsWrites {
		return recordKey{kind: effectRecord, Subject: s}.String()
	}
	return recordKey{kind: suspensionRecord, Subject: s}.String()
}

func declaredKey(id api.ID) string {
	return recordKey{kind: declaredRecord, Subject: Subject{Object: id}}.String()
}

func eventKey(e *Event) string { return recordKey{kind: eventRecord, event: e.Key().Number()}.String() }

// maxParts is the number of parts of which kinds have some.
const maxParts = 9

// parts are the parts that the kind has, n in all. An array lets the key stay on the stack.
func (k *recordKey) parts() (all [maxParts]*string, n int) {
	has := kinds[k.kind]
	for _, part := range [maxParts]struct {
		has bool
		at  *string
	}{
		{has.placement, &k.Placement.Namespace}, {has.placement, &k.Placement.Name},
		{has.object, &k.Object.Group}, {has.object, &k.Object.Kind}, {has.object, &k.Object.Namespace}, {has.object, &k.Object.Name},
		{has.cluster, &k.Cluster}, {has.effect, (*string)(&k.Effect)}, {has.event, &k.event},
	} {
		if part.has {
			all[n] = part.at
			n++
		}
	}
	return all, n
}

func (k recordKey) String() string {
	text := [1 + maxParts]string{k.kind}
	parts, n := k.parts()
	for i, part := range parts[:n] {
		text[i+1] = *part
	}
	return strings.Join(text[:n+1], "\x00")
}

func parseKey(key string) (recordKey, error) {
	kind, rest, more := strings.Cut(key, "\x00")
	k := recordKey{kind: kind}
	parts, n := k.parts()
	if kinds[kind].name == "" || strings.Count(key, "\x00") != n {
		return k, fmt.Errorf("there is no record %q", key)
	}
	for i := 0; more; i++ {
		*parts[i], rest, more = strings.Cut(rest, "\x00")
	}
	return k, nil
}

// encode returns records of a ledger; nil for a deleted one.
func encode(l *Ledger, keys []string) (map[string][]byte, error) {
	out := make(map[string][]byte, len(keys))
	for _, key := range keys {
		if err := encodeRecord(l, key, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// encodeRecord adds a record to records; nil if it does not exist.
func encodeRecord(l *Ledger, key string, records map[string][]byte) error {
	k, err := parseKey(key)
	var value any
	exists := true
	switch k.kind {
	case headKey:
		value = l.inForce
	case fleetKey:
		value = l.fleet
	case clusterRecord:
		value, exists = l.clusters[k.Cluster]
	case placementRecord:
		value, exists = l.placements[k.Placement]
	case entryRecord:
		var e *Entry
		if p := l.placements[k.Placement]; p != nil {
			e = p.entries.of(k.Cluster)
		}
		if exists = e != nil; exists {
			value = stored(e)
		}
	case declaredRecord:
		value, exists = l.declared[k.Object]
	case eventRecord:
		value, exists = l.byKey[key]
	case suspensionRecord, effectRecord:
		value, exists = l.suspended[k.Subject]
	}
	if records[key] = nil; err == nil && exists {
		records[key], err = json.Marshal(value)
	}
	if err != nil {
		return fmt.Errorf("encode ledger: %w", err)
	}
	return nil
}

// markAll marks all records of a ledger as unsaved.
func markAll(l *Ledger) {
	l.markUnsaved(headKey)
	l.markUnsaved(fleetKey)
	for name := range l.clusters {
		l.markUnsaved(clusterKey(name))
	}
	for key, p := range l.placements {
		l.markPlacement(key, p)
	}
	for subject := range l.suspended {
		l.markUnsaved(suspensionKey(subject))
	}
	for id := range l.declared {
		l.markUnsaved(declaredKey(id))
	}
	for key := range l.byKey {
		l.markUnsaved(key)
	}
}

func decode(records map[string][]byte) (*Ledger, error) {
	l, shared := New(), &sharing{Texts: Texts{}}
	// in descending order, so that placements ("p") are decoded before their entries ("e")
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(records))) {
		if err := decodeRecord(l, key, records[key], shared); err != nil {
			return nil, fmt.Errorf("read ledger record %q: %w", strings.ReplaceAll(key, "\x00", "/"), err)
		}
	}
	l.order()
	for _, p := range l.placements {
		p.entries.sort()
	}
	for name, c := range l.clusters {
		l.sortNames(c.UID, name)
	}
	return l, nil
}

func decodeRecord(l *Ledger, key string, raw []byte, shared *sharing) error {
	k, err := parseKey(key)
	if err != nil {
		return &SchemaError{unknown: true}
	}
	switch k.kind {
	case headKey:
		return json.Unmarshal(raw, &l.inForce)
	case fleetKey:
		return json.Unmarshal(raw, &l.fleet)
	case clusterRecord:
		l.clusters[k.Cluster] = &Cluster{}
		return json.Unmarshal(raw, l.clusters[k.Cluster])
	case placementRecord:
		l.placements[k.Placement] = &Placement{entries: &entries{}}
		return json.Unmarshal(raw, l.placements[k.Placement])
	case entryRecord:
		p := l.placements[k.Placement]
		if p == nil {
			return errors.New("its placement is missing")
		}
		e, err := decodeEntry(raw)
		e.Binding.Cluster = k.Cluster
		shared.entry(e)
		if e.Seen != nil {
			e.Seen = p.entries.share(*e.Seen)
		}
		p.entries.list = append(p.entries.list, e) // which decode sorts
		return err
	case suspensionRecord, effectRecord:
		return decodeInto(l.suspended, k.Subject, raw)
	case declaredRecord:
		return decodeInto(l.declared, k.Object, raw)
	default:
		return decodeInto(l.byKey, key, raw)
	}
}

// decodeInto decodes one record into a map.
func decodeInto[K comparable, V any](all map[K]V, key K, raw []byte) error {
	var v V
	err := json.Unmarshal(raw, &v)
	all[key] = v
	return err
}
