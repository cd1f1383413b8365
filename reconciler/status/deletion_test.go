package status_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
)

// Deletions are one event for each cluster and cause, which names the first objects. Equal
// deletions on many clusters are one event.
func TestDeletionEvents(t *testing.T) {
	web, docs := api.PlacementKey{Name: "web"}, api.PlacementKey{Namespace: "docs", Name: "pages"}
	deleted := func(p api.PlacementKey, cluster, commit string, names ...string) status.Deleted {
		d := status.Deleted{Placement: p, Cluster: cluster, Deletion: protocol.Deletion{Commit: commit, Why: "the placement was deleted", Total: len(names)}}
		for _, name := range names[:min(len(names), protocol.MostDeletedObjects)] {
			d.Objects = append(d.Objects, api.ID{Kind: "ConfigMap", Namespace: "web", Name: name})
		}
		return d
	}
	var everywhere []status.Deleted
	for i := range 8 {
		everywhere = append(everywhere, deleted(web, fmt.Sprintf("c%d", i), "v2", "one"))
	}
	tests := map[string]struct {
		deleted []status.Deleted
		want    []string
	}{
		"none": {nil, nil},
		"one": {
			[]status.Deleted{deleted(web, "east", "v2", "one")},
			[]string{"crp/web east v2: Deleted ConfigMap/web/one: the placement was deleted"},
		},
		"several at a time": {
			[]status.Deleted{deleted(web, "east", "v2", "a", "b", "c", "d"), deleted(web, "east", "v2", "e", "f", "g")},
			[]string{"crp/web east v2: Deleted ConfigMap/web/a, ConfigMap/web/b, ConfigMap/web/c, ConfigMap/web/d, ConfigMap/web/e and 2 more: the placement was deleted"},
		},
		"two commits, clusters and placements": {
			[]status.Deleted{deleted(docs, "east", "v3", "one"), deleted(web, "west", "v2", "one"), deleted(web, "east", "v2", "one"), deleted(web, "east", "v3", "two")},
			[]string{
				"crp/web east v2: Deleted ConfigMap/web/one: the placement was deleted",
				"crp/web west v2: Deleted ConfigMap/web/one: the placement was deleted",
				"crp/web east v3: Deleted ConfigMap/web/two: the placement was deleted",
				"rp/docs/pages east v3: Deleted ConfigMap/web/one: the placement was deleted",
			},
		},
		"many clusters": {
			everywhere,
			[]string{"crp/web  v2: On 8 clusters (c0, c1, c2 and 5 more): Deleted ConfigMap/web/one: the placement was deleted"},
		},
	}
	l := ledger.New()
	l.SetPlacement(web, ledger.Placement{})
	l.SetPlacement(docs, ledger.Placement{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			var got []string
			for _, e := range status.DeletionEvents(l, test.deleted, now) {
				got = append(got, fmt.Sprintf("%s %s %s: %s", e.About(), e.Cluster, e.Commit, e.Message))
				if e.Reason != api.ObjectsDeleted || e.Type != event.TypeNormal || !e.Last.Equal(now) || e.Count != 1 {
					t.Errorf("event %+v", e)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("events\n%q\nwant\n%q", got, test.want)
			}
		})
	}
}
