package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// groupFrom is from how many clusters on equal events are grouped.
const groupFrom = 6

// grouped replaces events that are equal on many clusters by one, which names the first of
// these clusters.
func grouped(events []Event, same func(a, b Event) bool) []Event {
	var out []Event
	for len(events) > 0 {
		first, rest := events[0], []Event{}
		group := []Event{first}
		for _, e := range events[1:] {
			if same(first, e) {
				group = append(group, e)
			} else {
				rest = append(rest, e)
			}
		}
		if events = rest; len(group) >= groupFrom {
			group = []Event{groupedEvent(group)}
		}
		out = append(out, group...)
	}
	return out
}

// sameStep reports whether two events of normal progress are equal except for the cluster.
func sameStep(a, b Event) bool { return a.Reason == b.Reason && a.Commit == b.Commit }

// groupedEvent returns one event for equal events on many clusters.
func groupedEvent(group []Event) Event {
	slices.SortStableFunc(group, func(a, b Event) int { return strings.Compare(a.Cluster, b.Cluster) })
	e := group[0]
	e.Message = fmt.Sprintf("On %d clusters (%s): %s", len(group), few(group, func(e Event) string { return e.Cluster }), textWithoutCluster(e))
	e.Cluster = ""
	return e
}

// textWithoutCluster is the message of an event without the name of the cluster.
func textWithoutCluster(e Event) string {
	if e.Reason == api.ScheduledReason {
		return "Successfully scheduled resources for placement: picked by scheduling policy"
	}
	return e.Message
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
