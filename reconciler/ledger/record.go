package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/reconciler/intern"
)

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
		value, exists = l.clusters[k.cluster]
	case placementRecord:
		value, exists = l.placements[k.placement]
	case entryRecord:
		var e *Entry
		if p := l.placements[k.placement]; p != nil {
			e = p.entries.of(k.cluster)
		}
		if exists = e != nil; exists {
			value = stored(e)
		}
	case declaredRecord:
		value, exists = l.declared[k.object]
	case eventRecord:
		value, exists = l.byKey[key]
	case suspensionRecord, effectRecord:
		value, exists = l.suspended[subjectOf(k)]
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
	l, shared := New(), &sharing{Texts: intern.Texts{}}
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

// A sharing makes entries that are decoded share what is equal in them, as they did before they were stored.
type sharing struct {
	intern.Texts
	// transitions are those of the last entries that differ.
	transitions intern.Recent[map[string]Transition]
}

// maxSharedTransitions limits with how many transitions those of an entry are compared: the clusters of a placement
// change at few different times.
const maxSharedTransitions = 8

func (s *sharing) entry(e *Entry) {
	b := &e.Binding
	s.Share(&b.Cluster, &b.Policy, &b.Reason, &b.Assigned.Commit, &b.Assigned.Hash, &b.Assigned.Labels)
	if b.Circumstances != nil {
		s.Share(&b.Circumstances.RemovedBy)
	}
	if w := e.Seen; w != nil {
		s.Share(&w.Revision.Commit, &w.Revision.Hash, &w.Revision.Labels)
	}
	if len(e.Transitions) == 0 {
		return
	}
	e.Transitions = s.transitions.Share(maxSharedTransitions, func(known map[string]Transition) bool {
		return maps.EqualFunc(known, e.Transitions, Transition.equal)
	}, func() map[string]Transition { return e.Transitions })
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
		l.clusters[k.cluster] = &Cluster{}
		return json.Unmarshal(raw, l.clusters[k.cluster])
	case placementRecord:
		l.placements[k.placement] = &Placement{entries: &entries{}}
		return json.Unmarshal(raw, l.placements[k.placement])
	case entryRecord:
		p := l.placements[k.placement]
		if p == nil {
			return errors.New("its placement is missing")
		}
		e, err := decodeEntry(raw)
		e.Binding.Cluster = k.cluster
		shared.entry(e)
		if e.Seen != nil {
			e.Seen = p.entries.share(e.Seen)
		}
		p.entries.list = append(p.entries.list, e) // which decode sorts
		return err
	case suspensionRecord, effectRecord:
		return decodeInto(l.suspended, subjectOf(k), raw)
	case declaredRecord:
		return decodeInto(l.declared, k.object, raw)
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
