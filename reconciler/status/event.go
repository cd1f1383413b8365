package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// An Event is something that happened to an object of the hub. The ledger
// remembers it.
type Event = ledger.Event

// An EventKey tells events apart that happened again from those that are new.
type EventKey = ledger.EventKey

// The repository, as the object of an event.
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

// normal and warning are events about nothing yet.
func normal(reason, message string) Event {
	return Event{Type: Normal, Reason: reason, Message: message}
}

func warning(reason, message string) Event {
	return Event{Type: Warning, Reason: reason, Message: message}
}

// about completes events about one object.
func about(group, kind, namespace, name string, id types.UID, now time.Time, events []Event) []Event {
	for i := range events {
		e := &events[i]
		e.APIVersion, e.Kind, e.Namespace, e.Name, e.UID = group+"/v1beta1", kind, namespace, name, string(id)
		e.First, e.Last, e.Count = now, now, 1
	}
	return events
}

// aboutPlacement completes events about a placement, as it is known.
func aboutPlacement(key api.PlacementKey, record ledger.Placement, now time.Time, events []Event) []Event {
	return about(api.PlacementGroup, key.Kind(), key.Namespace, key.Name, placementUID(key, record), now, events)
}

// tell adds to the news. Of what is looked at for the first time a process before
// this one may have told all.
func (m *Memo) tell(first bool, events []Event) {
	if first {
		events = slices.DeleteFunc(events, func(e Event) bool { return m.before[e.Key()] })
	}
	m.news = append(m.news, events...)
}

// begin takes over what a process before this one has told.
func (m *Memo) begin(told []Event) {
	if m.before != nil {
		return
	}
	m.before = make(map[EventKey]bool, len(told))
	for i := range told {
		m.before[told[i].Key()] = true
	}
}
