package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Event is something that happened to an object of the hub, like a Kubernetes event.
type Event struct {
	// APIVersion, Kind, Namespace, Name and UID identify the involved object: a placement, a
	// MemberCluster, or the repository.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Type       string `json:"type"` // Normal or Warning
	Reason     string `json:"reason"`
	Message    string `json:"message"`
	Cluster    string `json:"cluster,omitempty"` // empty if it is about more than one cluster
	Commit     string `json:"commit,omitempty"`
	// First and Last are when it happened first and last, and Count how many times. A
	// repetition updates Last, Count and Commit.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int32     `json:"count"`
}

// An EventKey identifies repetitions of the same event.
type EventKey struct {
	Kind, Namespace, Name, UID string
	Type, Reason, Message      string
	Cluster                    string
}

// Key returns the event's key.
func (e *Event) Key() EventKey {
	return EventKey{e.Kind, e.Namespace, e.Name, e.UID, e.Type, e.Reason, e.Message, e.Cluster}
}

// About names the involved object: crp/NAME, rp/NAMESPACE/NAME, cluster/NAME, or the kind and
// the name.
func (e *Event) About() string {
	key := api.PlacementKey{Namespace: e.Namespace, Name: e.Name}
	switch e.Kind {
	case key.Kind():
		return key.String()
	case "MemberCluster":
		return "cluster/" + e.Name
	}
	return strings.ToLower(e.Kind) + "/" + e.Name
}

// The maximum numbers of events: in total, for one object, and for one object on clusters. The
// oldest are dropped.
const (
	maxEvents          = 2000
	maxEventsOfObject  = 50
	maxEventsOnCluster = 100
)

// AppendEvents adds new events to a list, oldest first, and drops the oldest beyond the limits.
// It never changes list, and returns it if there are no new events.
func AppendEvents(list, added []Event) []Event {
	if len(added) == 0 {
		return list
	}
	repeated := make(map[EventKey]*Event, len(added))
	var keys []EventKey // of the added events, each once
	for _, e := range added {
		key := e.Key()
		if was := repeated[key]; was != nil {
			was.Count += e.Count
			was.Commit = cmp.Or(e.Commit, was.Commit)
			continue
		}
		repeated[key] = &e
		keys = append(keys, key)
	}
	out := make([]Event, 0, len(list)+len(keys))
	for _, e := range list {
		if now := repeated[e.Key()]; now != nil {
			now.First, now.Count = e.First, now.Count+e.Count
		} else {
			out = append(out, e)
		}
	}
	for _, key := range keys {
		out = append(out, *repeated[key])
	}
	return dropOldest(out)
}

// dropOldest drops the oldest events beyond the limits.
func dropOldest(list []Event) []Event {
	type share struct {
		kind, namespace, name string
		onCluster             bool
	}
	kept := make(map[share]int)
	out := make([]Event, 0, min(len(list), maxEvents))
	for _, e := range slices.Backward(list) {
		s := share{e.Kind, e.Namespace, e.Name, e.Cluster != ""}
		most := maxEventsOfObject
		if s.onCluster {
			most = maxEventsOnCluster
		}
		if kept[s] == most || len(out) == maxEvents {
			continue
		}
		kept[s]++
		out = append(out, e)
	}
	slices.Reverse(out)
	return out
}

// An eventLog has the events of a ledger.
type eventLog struct {
	*changes
	events []Event
	byKey  map[string]numbered // the same events, by the keys of their records
	number uint64              // of the newest
}

// A numbered event has its position in the list.
type numbered struct {
	Event
	Number uint64 `json:"number"`
}

// Events returns the events, oldest first. The list is immutable: SetEvents replaces it.
func (l *eventLog) Events() []Event { return l.events }

// SetEvents replaces the events by a result of AppendEvents. It does nothing if it is the same
// list.
func (l *eventLog) SetEvents(events []Event) { setEvents(l, events, l.markUnsaved) }

// AddEvents adds new events as AppendEvents does. They are saved together with what they are about, if that is urgent.
func (l *eventLog) AddEvents(added []Event) {
	setEvents(l, AppendEvents(l.events, added), l.markUrgent)
}

// setEvents replaces the events, and marks the records that differ.
func setEvents(l *eventLog, events []Event, mark func(key string)) {
	if Identical(l.events, events) {
		return
	}
	// Unchanged events are in the same order. One that is missing in between has happened again
	// or was dropped.
	rest := events
	for i := range l.events {
		if len(rest) > 0 && l.events[i] == rest[0] {
			rest = rest[1:]
			continue
		}
		key := eventKey(&l.events[i])
		delete(l.byKey, key)
		mark(key)
	}
	for i := range rest {
		l.number++
		key := eventKey(&rest[i])
		l.byKey[key] = numbered{rest[i], l.number}
		mark(key)
	}
	l.events = events
}

func eventKey(e *Event) string { return recordKey{kind: eventRecord, event: e.Key().Number()}.String() }

// order lists the loaded events by their numbers.
func (l *eventLog) order() {
	for _, e := range slices.SortedFunc(maps.Values(l.byKey), func(a, b numbered) int { return cmp.Compare(a.Number, b.Number) }) {
		l.events, l.number = append(l.events, e.Event), e.Number
	}
}

// Number identifies the event at any time and on any machine.
func (k EventKey) Number() string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q", k))
	return hex.EncodeToString(h[:10])
}
