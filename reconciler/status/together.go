package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// manyClusters is from how many clusters on the same is told of all at once.
const manyClusters = 6

// grouped adds events that go as they should: the same of many clusters as one,
// which names the first of them.
func (h *history) grouped(usual []Event) {
	for len(usual) > 0 {
		same := func(e Event) bool { return e.Reason == usual[0].Reason && e.Commit == usual[0].Commit }
		group := []Event{usual[0]}
		rest := []Event{}
		for _, e := range usual[1:] {
			if same(e) {
				group = append(group, e)
			} else {
				rest = append(rest, e)
			}
		}
		usual = rest
		if len(group) < manyClusters {
			for _, e := range group {
				h.add(e)
			}
			continue
		}
		h.add(together(group))
	}
}

// together is one event for the same on many clusters.
func together(group []Event) Event {
	slices.SortStableFunc(group, func(a, b Event) int { return strings.Compare(a.Cluster, b.Cluster) })
	e := group[0]
	e.Message = fmt.Sprintf("On %d clusters (%s): %s", len(group), few(group, func(e Event) string { return e.Cluster }), usualText(e))
	e.Cluster = ""
	return e
}

// usualText is the message of an event without the name of the cluster.
func usualText(e Event) string {
	if e.Reason == api.ScheduledReason {
		return "Successfully scheduled resources for placement: picked by scheduling policy"
	}
	return e.Message
}

// few names the first of a list, and counts the others.
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
