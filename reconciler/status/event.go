package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Event is something that happened to an object of the hub, told like an
// event of Kubernetes. Events begin anew with the process; the conditions, and
// since when they hold, do not.
type Event struct {
	// APIVersion, Kind, Namespace and Name are of the object it is about: a
	// placement, a MemberCluster, or the repository itself, which has the kind
	// RepositoryKind.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Type is Normal or Warning.
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Cluster is where it happened; empty if it concerns more than one.
	Cluster string `json:"cluster,omitempty"`
	// Commit is the one whose content it is about; empty if that is none.
	Commit string `json:"commit,omitempty"`
	// First and Last are when it happened, Count how often. What happened again
	// is the same event with another Last, Count and Commit.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int32     `json:"count"`
}

// An EventKey tells events apart that happened again from those that are new.
type EventKey struct {
	Kind, Namespace, Name string
	Type, Reason, Message string
	Cluster               string
}

// Key is the same for the same event at all times, and for no other.
func (e *Event) Key() EventKey {
	return EventKey{e.Kind, e.Namespace, e.Name, e.Type, e.Reason, e.Message, e.Cluster}
}

// The repository, as the object of an event.
const (
	RepositoryGroup = "gitfleet.dev"
	RepositoryKind  = "Repository"
	RepositoryName  = "hub"
)

// How many events are kept: in all, of one object, and of one object on
// clusters. The oldest go first.
const (
	mostEvents          = 2000
	mostEventsOfObject  = 50
	mostEventsOnCluster = 100
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
func about(group, kind, namespace, name string, now time.Time, events []Event) []Event {
	for i := range events {
		e := &events[i]
		e.APIVersion, e.Kind, e.Namespace, e.Name = group+"/v1beta1", kind, namespace, name
		e.First, e.Last, e.Count = now, now, 1
	}
	return events
}

func aboutPlacement(key api.PlacementKey, now time.Time, events []Event) []Event {
	return about(api.PlacementGroup, key.Kind(), key.Namespace, key.Name, now, events)
}

// record adds what happened to what is told, oldest first, and forgets what is
// too much. Without news it returns the list it was given, which it never
// changes.
func record(told, news []Event) []Event {
	if len(news) == 0 {
		return told
	}
	again := make(map[EventKey]*Event, len(news))
	var fresh []EventKey
	for i := range news {
		e := news[i]
		key := e.Key()
		if was := again[key]; was != nil {
			was.Count += e.Count
			was.Commit = cmp.Or(e.Commit, was.Commit)
			continue
		}
		again[key] = &e
		fresh = append(fresh, key)
	}
	out := make([]Event, 0, len(told)+len(fresh))
	for i := range told {
		e := again[told[i].Key()]
		if e == nil {
			out = append(out, told[i])
			continue
		}
		e.First, e.Count = told[i].First, e.Count+told[i].Count
	}
	for _, key := range fresh {
		out = append(out, *again[key])
	}
	return bounded(out)
}

// bounded leaves out the oldest of what is too much.
func bounded(list []Event) []Event {
	type share struct {
		kind, namespace, name string
		onCluster             bool
	}
	kept := make(map[share]int)
	out := make([]Event, 0, min(len(list), mostEvents))
	for _, e := range slices.Backward(list) {
		s := share{e.Kind, e.Namespace, e.Name, e.Cluster != ""}
		most := mostEventsOfObject
		if s.onCluster {
			most = mostEventsOnCluster
		}
		if kept[s] == most || len(out) == mostEvents {
			continue
		}
		kept[s]++
		out = append(out, e)
	}
	slices.Reverse(out)
	return out
}
