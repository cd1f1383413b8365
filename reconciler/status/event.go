package status

import (
	"fmt"
	"slices"
	"strings"
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

func aboutPlacement(key api.PlacementKey, record ledger.Placement, now time.Time, events []Event) []Event {
	return about(api.PlacementGroup, key.Kind(), key.Namespace, key.Name, placementUID(key, record), now, events)
}

func aboutCluster(name string, id types.UID, now time.Time, events []Event) []Event {
	return about(api.ClusterGroup, "MemberCluster", "", name, id, now, events)
}

func aboutRepository(now time.Time, events []Event) []Event {
	return about(RepositoryGroup, RepositoryKind, "", RepositoryName, UID(time.Time{}, RepositoryKind, RepositoryName), now, events)
}

// groupFrom is from how many clusters on equal events are grouped.
const groupFrom = 6

// A grouping collects events, and replaces those that are equal on many clusters by one, which names the first of these clusters.
type grouping []*eventGroup

// An eventGroup are the events of one commit with the same text.
type eventGroup struct {
	commit, text string
	events       []Event // fewer than groupFrom
	first        Event   // that of the first cluster by name
	clusters     []string
}

// add adds an event. It is equal to those that were added with the same text and have the same commit.
func (g *grouping) add(e Event, text string) {
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
	*g = append(*g, &eventGroup{e.Commit, text, []Event{e}, e, []string{e.Cluster}})
}

// all returns the events, in the order in which groups and their events were added.
func (g grouping) all() (out []Event) {
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
		e.Message = fmt.Sprintf("On %d clusters (%s): %s", len(of.clusters), few(of.clusters, func(name string) string { return name }), e.Message)
		e.Cluster = ""
		out = append(out, e)
	}
	return out
}

// few names the first items of a list, and counts the others.
func few[T any](list []T, name func(T) string) string {
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
