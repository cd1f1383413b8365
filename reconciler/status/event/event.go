// Package event makes the events that are reported of the objects of the hub, and groups those that are equal on many clusters.
package event

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// An Event is something that happened to an object of the hub. Events are kept in the ledger.
type Event = ledger.Event

// The repository as the involved object of an event.
const (
	repositoryGroup = "gitfleet.dev"
	repositoryKind  = "Repository"
	repositoryName  = "hub"
)

// The types of events.
const (
	TypeNormal  = "Normal"
	TypeWarning = "Warning"
)

// Normal returns a normal event without an involved object.
func Normal(reason, message string) Event {
	return Event{Type: TypeNormal, Reason: reason, Message: message}
}

// Warning returns a warning without an involved object.
func Warning(reason, message string) Event {
	return Event{Type: TypeWarning, Reason: reason, Message: message}
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

// AboutPlacement sets a placement as the involved object of events.
func AboutPlacement(key api.PlacementKey, created, now time.Time, events []Event) []Event {
	return about(api.PlacementGroup, key.Kind(), key.Namespace, key.Name, metadata.PlacementUID(key, created), now, events)
}

// AboutCluster sets a MemberCluster as the involved object of events.
func AboutCluster(name string, id types.UID, now time.Time, events []Event) []Event {
	return about(api.ClusterGroup, "MemberCluster", "", name, id, now, events)
}

// groupFrom is from how many clusters on equal events are grouped.
const groupFrom = 6

// A Grouping collects events, and replaces those that are equal on many clusters by one, which names the first of these clusters.
type Grouping []*group

// A group are the events of one commit with the same text.
type group struct {
	commit, text string
	events       []Event // fewer than groupFrom
	first        Event   // that of the first cluster by name
	clusters     []string
}

// Add adds an event. It is equal to those that were added with the same text and have the same commit.
func (g *Grouping) Add(e Event, text string) {
	for _, of := range *g {
		if of.commit != e.Commit || of.text != text {
			continue
		}
		if of.clusters = append(of.clusters, e.Cluster); len(of.clusters) < groupFrom {
			of.events = append(of.events, e)
		}
		if e.Cluster < of.first.Cluster {
			of.first = e
		}
		return
	}
	*g = append(*g, &group{e.Commit, text, []Event{e}, e, []string{e.Cluster}})
}

// All returns the events, in the order in which groups and their events were added.
func (g Grouping) All() (out []Event) {
	for _, of := range g {
		if len(of.clusters) < groupFrom {
			out = append(out, of.events...)
			continue
		}
		slices.Sort(of.clusters)
		e := of.first
		if e.Reason == api.ScheduledReason { // its message names the cluster
			e.Message = "Successfully scheduled resources for placement: picked by scheduling policy"
		}
		e.Message = fmt.Sprintf("On %d clusters (%s): %s", len(of.clusters), Few(of.clusters, func(name string) string { return name }), e.Message)
		e.Cluster = ""
		out = append(out, e)
	}
	return out
}

// Few names the first items of a list, and counts the others.
func Few[T any](list []T, name func(T) string) string {
	const most = 3
	var out []string
	for _, t := range list[:min(most, len(list))] {
		out = append(out, name(t))
	}
	text := strings.Join(out, ", ")
	if len(list) > most {
		text += fmt.Sprintf(" and %d more", len(list)-most)
	}
	return text
}

// maxEvents is how many events of one sort are reported of one cluster at once.
const maxEvents = 10

// Limited completes events of one cluster, and only counts those beyond maxEvents.
func Limited(cluster, commit string, events []Event) []Event {
	if n := len(events); n > maxEvents {
		events = events[:maxEvents]
		events[maxEvents-1].Message += fmt.Sprintf(" (and %d more objects)", n-maxEvents)
	}
	for i := range events {
		events[i].Cluster, events[i].Commit = cluster, commit
	}
	return events
}
