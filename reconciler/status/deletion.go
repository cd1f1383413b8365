package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// terminate reports a placement that was deleted from the repository, until nothing of it is
// left, as an object that is being deleted, with its last spec. A placement whose spec is
// unknown, because an older version recorded it, is reported with its details only; so is one
// that was, or may have been, renamed.
func (b *builder) terminate(e *placementEntry) {
	key, record := b.p.Key, b.p.Record
	if record.Spec == nil || record.DeletedAt.IsZero() || record.Into != (api.PlacementKey{}) {
		return
	}
	at := metav1.NewTime(record.DeletedAt)
	set := &conditionSet{b: b}
	set.add(b.prefix()+api.Scheduled, conditions.False(api.PlacementDeleted, deletedText(b.p)))
	if v, blocked := conditions.DeletionsBlocked(b.p, b.p.Clusters...); blocked {
		set.add(api.DeletionsBlocked, v)
	}
	for i := range set.list {
		set.list[i].LastTransitionTime = at
	}
	e.set(metav1.ObjectMeta{
		Name: key.Name, Namespace: key.Namespace, UID: metadata.PlacementUID(key, record.Created), Generation: record.Generation,
		CreationTimestamp: metav1.NewTime(record.Created), DeletionTimestamp: &at, Finalizers: []string{api.CleanupFinalizer},
	}, *record.Spec, api.PlacementStatus{Conditions: set.list})
}

// deletedText says what happens to the objects of a deleted placement.
func deletedText(p *plan.Placement) string {
	if p.Record.Abandon {
		return "The placement is gone from the repository; what it placed stays where it is"
	}
	return "The placement is gone from the repository; what it placed is being removed"
}

// A Deleted is a deletion of objects of a placement on a cluster.
type Deleted struct {
	Placement api.PlacementKey
	Cluster   string
	protocol.Deletion
}

// DeletionEvents returns the events of deletions on clusters, by placement and cluster.
// Deletions on one cluster for the same cause are one event, and so are equal deletions on many
// clusters. Placements that are not in the ledger are left out.
func DeletionEvents(l *ledger.Ledger, all []Deleted, now time.Time) []Event {
	var out []Event
	for _, key := range l.Placements() {
		var events event.Grouping
		for _, d := range merged(key, all) {
			e := event.Normal(api.ObjectsDeleted, d.text())
			e.Cluster, e.Commit = d.Cluster, d.Commit
			events.Add(e, e.Message)
		}
		out = append(out, event.AboutPlacement(key, l.Placement(key).Created, now, events.All())...)
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
		at := slices.IndexFunc(out, func(o Deleted) bool { return o.Cluster == d.Cluster && o.Commit == d.Commit && o.Why == d.Why })
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
	var names []string
	for _, id := range d.Objects[:min(len(d.Objects), protocol.MostDeletedObjects)] {
		names = append(names, id.String())
	}
	text := "Deleted " + strings.Join(names, ", ")
	if rest := d.Total - len(names); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text + ": " + d.Why
}
