package event

import (
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Equal events on six or more clusters are one, which names the first clusters.
func TestGroupedEvents(t *testing.T) {
	on := func(reason, commit string, clusters ...string) (out []Event) {
		for _, c := range clusters {
			out = append(out, Event{Type: TypeNormal, Reason: reason, Message: "on " + reason, Commit: commit, Cluster: c})
		}
		return out
	}
	six := []string{"f", "e", "d", "c", "b", "a"}
	for name, test := range map[string]struct {
		events []Event
		want   []string
	}{
		"none":                           {nil, nil},
		"five":                           {on("Available", "v1", six[1:]...), []string{"e: Normal Available on Available", "d: Normal Available on Available", "c: Normal Available on Available", "b: Normal Available on Available", "a: Normal Available on Available"}},
		"six":                            {on("Available", "v1", six...), []string{"Normal Available On 6 clusters (a, b, c and 3 more): on Available"}},
		"six, and one of another commit": {slices.Concat(on("Available", "v2", "x"), on("Available", "v1", six...)), []string{"x: Normal Available on Available", "Normal Available On 6 clusters (a, b, c and 3 more): on Available"}},
		"two reasons":                    {slices.Concat(on("A", "v1", six[:3]...), on("B", "v1", six[3:]...)), []string{"f: Normal A on A", "e: Normal A on A", "d: Normal A on A", "c: Normal B on B", "b: Normal B on B", "a: Normal B on B"}},
		"the message without a cluster":  {on(api.ScheduledReason, "v1", six...), []string{"Normal Scheduled On 6 clusters (a, b, c and 3 more): Successfully scheduled resources for placement: picked by scheduling policy"}},
	} {
		t.Run(name, func(t *testing.T) {
			var events Grouping
			for _, e := range test.events {
				events.Add(e, e.Reason)
			}
			var got []string
			for _, e := range events.All() {
				got = append(got, strings.TrimPrefix(e.Cluster+": "+e.Type+" "+e.Reason+" "+e.Message, ": "))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("events %q\nwant %q", got, test.want)
			}
		})
	}
}
