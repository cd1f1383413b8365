package view

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/test/reports"
)

func TestLast(t *testing.T) {
	for n, want := range map[int]string{0: "abc", 1: "c", 3: "abc", 9: "abc"} {
		if got := strings.Join(last(n, []string{"a", "b", "c"}), ""); got != want {
			t.Errorf("the last %d are %s, want %s", n, got, want)
		}
	}
}

// A watch prints an event when it is new and each time it has occurred again, and nothing for a
// report without either.
func TestWatchEvents(t *testing.T) {
	seen := func(reason string, count int32) status.Event {
		return status.Event{Kind: "ClusterResourcePlacement", Name: "web", Type: event.TypeNormal, Reason: reason, Message: "m", Count: count, Last: reports.Noon}
	}
	published := [][]status.Event{
		{seen("A", 1)}, {seen("A", 1)}, {seen("A", 1), seen("B", 1)}, {seen("A", 2), seen("B", 1)}, {seen("B", 1)}, {seen("A", 2), seen("B", 1)},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	feed := func(context.Context, string) (*status.Report, string, error) {
		if asked == len(published) {
			cancel()
			return nil, "", ctx.Err()
		}
		asked++
		return &status.Report{Events: published[asked-1]}, string(rune('0' + asked)), nil
	}
	var b strings.Builder
	if err := watchEvents(ctx, feed, &b, formatOf(t, "table", "table")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Fields(line)[2])
	}
	if strings.Join(got, "") != "ABAA" {
		t.Errorf("printed\n%s", &b)
	}
	if !strings.HasPrefix(b.String(), "2026-03-01T12:00:00Z  Normal   A  crp/web: m\n") {
		t.Errorf("printed %s", &b)
	}
}

// The table of events has a dash where an event is not about one cluster.
func TestEventTable(t *testing.T) {
	e := status.Event{Kind: "MemberCluster", Name: "east", Type: event.TypeWarning, Reason: "Down", Message: "m", Count: 2, Last: reports.Noon}
	on := e
	on.Cluster = "west"
	table := eventTable([]status.Event{e, on}, reports.Noon.Add(time.Minute))
	for i, want := range []string{"60s|2|Warning|Down|cluster/east|-|m", "60s|2|Warning|Down|cluster/east|west|m"} {
		if got := strings.Join(table.Rows[i], "|"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
