package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// An Event is something that happened to an object of the hub. Events are kept in the ledger.
type Event = ledger.Event

// An EventKey identifies repetitions of the same event.
type EventKey = ledger.EventKey

// The repository as the involved object of an event.
const (
	RepositoryGroup = "gitfleet.dev"
	RepositoryKind  = "Repository"
	RepositoryName  = "hub"
)

// The types of events.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// normal and warning return events without an involved object.
func normal(reason, message string) Event {
	return Event{Type: Normal, Reason: reason, Message: message}
}

func warning(reason, message string) Event {
	return Event{Type: Warning, Reason: reason, Message: message}
}

// about sets the involved object of events.
func about(group, kind, namespace, name string, id types.UID, now time.Time, events []Event) []Event {
	for i := range events {
		e := &events[i]
		e.APIVersion, e.Kind, e.Namespace, e.Name, e.UID = group+"/v1beta1", kind, namespace, name, string(id)
		e.First, e.Last, e.Count = now, now, 1
	}
	return events
}

// aboutPlacement sets the involved object to a placement.
func aboutPlacement(key api.PlacementKey, record ledger.Placement, now time.Time, events []Event) []Event {
	return about(api.PlacementGroup, key.Kind(), key.Namespace, key.Name, placementUID(key, record), now, events)
}

// addEvents adds new events. If an object is reported for the first time since the start, an
// earlier process may have recorded the same events.
func (m *Memo) addEvents(first bool, events []Event) {
	if first {
		events = slices.DeleteFunc(events, func(e Event) bool { return m.before[e.Key()] })
	}
	m.newEvents = append(m.newEvents, events...)
}

// setEarlierEvents sets the events that an earlier process recorded.
func (m *Memo) setEarlierEvents(earlier []Event) {
	if m.before != nil {
		return
	}
	m.before = make(map[EventKey]bool, len(earlier))
	for i := range earlier {
		m.before[earlier[i].Key()] = true
	}
}
