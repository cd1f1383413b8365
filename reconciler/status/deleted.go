package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A Deleted is a deletion of objects of a placement on a cluster.
type Deleted struct {
	Placement api.PlacementKey
	Cluster   string
	ledger.Deletion
}

// DeletionEvents returns the events of deletions on clusters, by placement and cluster.
// Deletions on one cluster for the same cause are one event, and so are equal deletions on many
// clusters. Placements that are not in the ledger are left out.
func DeletionEvents(l *ledger.Ledger, all []Deleted, now time.Time) []Event {
	var out []Event
	for _, key := range l.Placements() {
		var events []Event
		for _, d := range merged(key, all) {
			e := normal(api.ObjectsDeleted, d.text())
			e.Cluster, e.Commit = d.Cluster, d.Commit
			events = append(events, e)
		}
		out = append(out, aboutPlacement(key, *l.Placement(key), now, grouped(events, sameDeletion))...)
	}
	return out
}

// merged returns the deletions of one placement, one for each cluster, commit and cause.
func merged(key api.PlacementKey, all []Deleted) []Deleted {
	var out []Deleted
	for _, d := range all {
		if d.Placement != key {
			continue
		}
		at := slices.IndexFunc(out, func(o Deleted) bool {
			return o.Cluster == d.Cluster && o.Commit == d.Commit && o.Why == d.Why
		})
		if at < 0 {
			out = append(out, d)
			continue
		}
		out[at].Objects, out[at].Total = slices.Concat(out[at].Objects, d.Objects), out[at].Total+d.Total
	}
	slices.SortStableFunc(out, func(a, b Deleted) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

// text is the message of the event: what was deleted, and why.
func (d Deleted) text() string {
	named := d.Objects[:min(len(d.Objects), ledger.MostDeletedObjects)]
	names := make([]string, 0, len(named))
	for _, id := range named {
		names = append(names, id.String())
	}
	text := "Deleted " + strings.Join(names, ", ")
	if rest := d.Total - len(named); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text + ": " + d.Why
}

// sameDeletion reports whether two events of deletions are the same but for the cluster.
func sameDeletion(a, b Event) bool { return a.Commit == b.Commit && a.Message == b.Message }
