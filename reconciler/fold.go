package reconciler

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// observations are folded into the ledger, and what follows from them is published.
type observations struct {
	cfg *Config
	// observed are the occurrences that follow from observations, until they are published.
	observed []occurrence.Occurrence
	// deleted are the reported deletions without an event yet.
	deleted []status.Deleted
}

// fold folds observations into the ledger. Those of clusters come first, since a cluster's inventories have to be known
// before the reports about its works. Observations of agents that have been stopped are dropped. It reports whether
// anything has changed.
func (o *observations) fold(l *ledger.Ledger, a *agents, seen map[observedSubject]protocol.Observation, now time.Time) (changed bool) {
	subjects := slices.SortedFunc(maps.Keys(seen), func(a, b observedSubject) int {
		return cmp.Or(a.placement.Compare(b.placement), strings.Compare(a.cluster, b.cluster))
	})
	for _, s := range subjects {
		if a.members[s.cluster] != nil && o.foldObservation(l, s, seen[s]) {
			changed = true
		}
		if len(o.observed) >= publishBatch {
			o.publish()
		}
	}
	o.publish()
	if len(o.deleted) > 0 {
		// before planning, since a placement is forgotten once all of it is deleted
		l.SetEvents(ledger.AppendEvents(l.Events(), status.DeletionEvents(l, o.deleted, now)))
		o.deleted = nil
	}
	return changed
}

// foldObservation folds one observation, and adds what has happened to the observed occurrences.
func (o *observations) foldObservation(l *ledger.Ledger, s observedSubject, seen protocol.Observation) bool {
	if s.placement == (api.PlacementKey{}) {
		was := ledger.MemberStateOf(l, s.cluster)
		changed := l.Fold(seen)
		o.observed = append(o.observed, occurrence.OfMember(s.cluster, was, ledger.MemberStateOf(l, s.cluster))...)
		return changed
	}
	record := l.Placement(s.placement)
	if record == nil {
		return l.Fold(seen)
	}
	was := record.Entry(s.cluster)
	changed := l.Fold(seen)
	is := record.Entry(s.cluster)
	if is != was {
		o.observed = occurrence.OfObservation(o.observed, s.placement, record, was, is, seen.(protocol.WorkSeen).At)
		for _, d := range is.Seen.Deleted(was.Seen) {
			o.deleted = append(o.deleted, status.Deleted{Placement: s.placement, Cluster: s.cluster, Deletion: d})
		}
	}
	return changed
}

// publishBatch is how many occurrences that follow from observations are published at once.
const publishBatch = 256

// publish publishes what follows from observations.
func (o *observations) publish() {
	publish(o.cfg, o.observed...)
	o.observed = o.observed[:0]
}
