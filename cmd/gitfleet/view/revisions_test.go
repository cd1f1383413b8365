package view

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

func TestALaterPlacementOfTheSameNameHasItsOwnRevisions(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	entry := func(minute int, kind history.Kind, event history.Event, cluster, revision, commit string) history.Entry {
		return history.Entry{Time: start.Add(time.Duration(minute) * time.Minute), Kind: kind, Event: event, Placement: "crp/web",
			Cluster: cluster, Revision: revision, Commit: commit}
	}
	all := revisionsOf("crp/web", []history.Entry{
		entry(0, history.Placement, history.Revised, "", "0", "c1"),
		entry(0, history.Cluster, history.Assigned, "paris", "0", "c1"),
		entry(1, history.Cluster, history.Available, "paris", "0", "c1"),
		entry(5, history.Placement, history.Removing, "", "", "c2"),
		entry(5, history.Cluster, history.Removing, "paris", "", "c2"),
		entry(6, history.Cluster, history.Removed, "paris", "", "c2"),
		entry(6, history.Placement, history.Removed, "", "", "c2"),
		entry(9, history.Placement, history.Revised, "", "0", "c3"),
		entry(9, history.Cluster, history.Assigned, "oslo", "0", "c3"),
	})
	if len(all) != 2 {
		t.Fatalf("%d revisions, want 2: %+v", len(all), all)
	}
	before, now := all[0], all[1]
	if now.Commit != "c3" || !now.Deleted.IsZero() || len(now.Clusters) != 1 || now.Clusters[0].Cluster != "oslo" {
		t.Errorf("the placement there is has %+v", now)
	}
	if before.Commit != "c1" || !before.Deleted.Equal(start.Add(6*time.Minute)) || len(before.Clusters) != 1 || before.Clusters[0].Result != history.Removed {
		t.Errorf("the deleted one has %+v", before)
	}
	var b bytes.Buffer
	if err := printRevisions(&b, all, output.Format{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "-- the placement was deleted at 2026-01-01T12:06:00Z --\n0 ") {
		t.Errorf("printed:\n%s", b.String())
	}
}

// The revisions of a renamed placement are listed under its new name. Under the old name, a
// line says when it was renamed and to what.
func TestRevisionsGoOnOverARename(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	entry := func(minute int, placement string, kind history.Kind, event history.Event, revision, commit string) history.Entry {
		e := history.Entry{Time: start.Add(time.Duration(minute) * time.Minute), Kind: kind, Event: event, Placement: placement, Revision: revision, Commit: commit}
		if kind == history.Cluster {
			e.Cluster = "paris"
		}
		return e
	}
	renamed := func(minute int, placement, from, to string) history.Entry {
		e := entry(minute, placement, history.Placement, history.Renamed, "", "c2")
		e.From, e.To = from, to
		return e
	}
	old := []history.Entry{
		entry(0, "crp/old", history.Placement, history.Revised, "0", "c0"),
		entry(1, "crp/old", history.Placement, history.Removed, "", "c0"),
		entry(2, "crp/old", history.Placement, history.Revised, "0", "c1"),
		entry(2, "crp/old", history.Cluster, history.Assigned, "0", "c1"),
		renamed(5, "crp/old", "crp/old", "crp/new"),
	}
	now := []history.Entry{
		renamed(5, "crp/new", "crp/old", "crp/new"),
		entry(6, "crp/new", history.Cluster, history.Available, "0", "c1"),
		entry(7, "crp/new", history.Placement, history.Revised, "1", "c3"),
	}
	again := []history.Entry{entry(9, "crp/old", history.Placement, history.Revised, "0", "c4")}
	back := []history.Entry{renamed(8, "crp/old", "crp/new", "crp/old"), entry(9, "crp/old", history.Placement, history.Revised, "2", "c4")}
	tests := map[string]struct {
		name    string
		entries []history.Entry
		want    []string
	}{
		"under the new name":      {"crp/new", slices.Concat(lastLife(old, now[0].Time), now), []string{"0 c1", "1 c3"}},
		"under the old name":      {"crp/old", old, []string{"0 c0", "-- the placement was deleted at 2026-01-01T12:01:00Z --", "0 c1", "-- the placement was renamed to crp/new at 2026-01-01T12:05:00Z --"}},
		"another of the old name": {"crp/old", slices.Concat(old[2:], again), []string{"0 c1", "-- the placement was renamed to crp/new at 2026-01-01T12:05:00Z --", "0 c4"}},
		"renamed back":            {"crp/old", slices.Concat(old[2:], now, back), []string{"0 c1", "1 c3", "2 c4"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := printRevisions(&b, revisionsOf(test.name, test.entries), output.Format{NoHeaders: true}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(b.String()) {
				words := strings.Fields(line)
				if words[0] != "--" && !strings.HasPrefix(line, " ") {
					line = words[0] + " " + words[1]
				}
				if !strings.HasPrefix(line, " ") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("printed %q, want %q", got, test.want)
			}
		})
	}
}

// A revision took as long as its last cluster, and is not over while one has not got it.
func TestHowLongARevisionTook(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	after := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	for want, clusters := range map[string][]clusterHistory{
		"|0/0": nil, "10m|2/2": {{Available: after(10)}, {Available: after(3)}}, "|1/2": {{Available: after(10)}, {}},
	} {
		r := &revisionHistory{Began: start, Clusters: clusters}
		if got := r.took() + "|" + r.share(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The line of a cluster has the last event, how long it took to get there, and whether another
// revision came after.
func TestClusterHistoryText(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for want, c := range map[string]clusterHistory{
		"assigned":                      {Result: history.Assigned, Assigned: start},
		"applied after 60s":             {Result: history.Applied, Assigned: start, Applied: start.Add(time.Minute)},
		"available after 2m":            {Result: history.Available, Assigned: start, Applied: start.Add(time.Minute), Available: start.Add(2 * time.Minute)},
		"available":                     {Result: history.Available, Available: start},
		"failed, then replaced: denied": {Result: history.Failed, Assigned: start, Applied: start, Replaced: true, Message: "denied"},
	} {
		if got := c.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The clusters where a revision is not available are listed below it; with -o wide all are.
func TestPrintRevisions(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	all := []revisionHistory{{
		Revision: "3", Commit: "a1a1a1a1a1a1", Author: "Ada <ada@example.com>", Subject: "Bring the web", Began: start,
		Clusters: []clusterHistory{{Cluster: "ams", Result: history.Available, Available: start}, {Cluster: "ber", Result: history.Unavailable, Available: start, Message: "denied"}, {Cluster: "chi", Result: history.Assigned}},
	}}
	const line = "3 a1a1a1a1 Ada 2026-01-01T12:00:00Z - 2/3 Bring the web"
	for name, test := range map[string]struct{ format, want string }{
		"table": {"table", line + " ber: unavailable: denied chi: assigned"}, "wide": {"wide", line + " ams: available ber: unavailable: denied chi: assigned"},
	} {
		var b strings.Builder
		f := formatOf(t, test.format, "table", "wide")
		f.NoHeaders = true
		if err := printRevisions(&b, all, f); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(b.String()), " "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	var b strings.Builder
	if err := printRevisions(&b, nil, output.Format{}); err != nil || b.String() != "No revisions are recorded.\n" {
		t.Errorf("%q, %v", &b, err)
	}
}
