package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Event is something that happened to an object of the hub, told like an
// event of Kubernetes.
type Event struct {
	// APIVersion, Kind, Namespace, Name and UID are of the object it is about: a
	// placement, a MemberCluster, or the repository itself.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
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
	Kind, Namespace, Name, UID string
	Type, Reason, Message      string
	Cluster                    string
}

// Key is the same for the same event at all times, and for no other.
func (e *Event) Key() EventKey {
	return EventKey{e.Kind, e.Namespace, e.Name, e.UID, e.Type, e.Reason, e.Message, e.Cluster}
}

// About names what the event is about as people do: crp/NAME,
// rp/NAMESPACE/NAME, cluster/NAME, or the kind and the name.
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

// How many events are kept: in all, of one object, and of one object on
// clusters. The oldest go first.
const (
	mostEvents          = 2000
	mostEventsOfObject  = 50
	mostEventsOnCluster = 100
)

// Record adds what happened to what is told, oldest first, and forgets what is
// too much. Without news it returns the list it was given, which it never
// changes.
func Record(told, news []Event) []Event {
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

// A numbered event has its place among the others.
type numbered struct {
	Event
	Number uint64 `json:"number"`
}

// Events are what was told, oldest first. The list is not changed: Tell makes
// another.
func (l *Ledger) Events() []Event { return l.events }

// Tell writes down which events are told now: those that Record made of those
// of before. If it is the same list there is nothing to do.
func (l *Ledger) Tell(events []Event) {
	if sameList(l.events, events) {
		return
	}
	// What is told as before is in the same order: what is not met on the way
	// has happened again, or is told no more.
	rest := events
	for i := range l.events {
		if len(rest) > 0 && l.events[i] == rest[0] {
			rest = rest[1:]
			continue
		}
		key := eventKey(&l.events[i])
		delete(l.told, key)
		l.saw(key)
	}
	for i := range rest {
		l.number++
		key := eventKey(&rest[i])
		l.told[key] = numbered{rest[i], l.number}
		l.saw(key)
	}
	l.events = events
}

// retold is the list of events that were read, in the order of their numbers.
func (l *Ledger) retold() {
	list := make([]numbered, 0, len(l.told))
	for _, e := range l.told {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b numbered) int { return cmp.Compare(a.Number, b.Number) })
	for _, e := range list {
		l.events, l.number = append(l.events, e.Event), e.Number
	}
}

// Number is the event's own, wherever and whenever it is told.
func (k EventKey) Number() string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q", k))
	return hex.EncodeToString(h[:10])
}

func eventKey(e *Event) string { return "v\x00" + e.Key().Number() }
