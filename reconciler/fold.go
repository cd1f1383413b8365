package reconciler

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// fold folds observations into the ledger. Those of clusters come first, since a cluster's inventories have to be known
// before the reports about its works. Observations of agents that have been stopped are dropped. It reports whether
// anything has changed.
func (r *Reconciler) fold(seen map[observedSubject]protocol.Observation, now time.Time) (changed bool) {
	subjects := slices.SortedFunc(maps.Keys(seen), func(a, b observedSubject) int {
		return cmp.Or(a.placement.Compare(b.placement), strings.Compare(a.cluster, b.cluster))
	})
	for _, s := range subjects {
		if r.agents.members[s.cluster] != nil && r.foldOne(s, seen[s]) {
			changed = true
		}
		if len(r.observed) >= publishBatch {
			r.publishObserved()
		}
	}
	r.publishObserved()
	if len(r.deleted) > 0 {
		// before planning, since a placement is forgotten once all of it is deleted
		r.ledger.SetEvents(ledger.AppendEvents(r.ledger.Events(), status.DeletionEvents(r.ledger, r.deleted, now)))
		r.deleted = nil
	}
	return changed
}

// foldOne folds one observation, and adds what has happened to the observed occurrences.
func (r *Reconciler) foldOne(s observedSubject, o protocol.Observation) bool {
	if s.placement == (api.PlacementKey{}) {
		was := ledger.MemberStateOf(r.ledger, s.cluster)
		changed := r.ledger.Fold(o)
		r.observed = append(r.observed, memberOccurrences(s.cluster, was, ledger.MemberStateOf(r.ledger, s.cluster))...)
		return changed
	}
	record := r.ledger.Placement(s.placement)
	if record == nil {
		return r.ledger.Fold(o)
	}
	was := record.Entry(s.cluster)
	changed := r.ledger.Fold(o)
	is := record.Entry(s.cluster)
	if is != was {
		r.observed = progress(r.observed, s.placement, record, was, is, o.(protocol.WorkSeen).At)
		for _, d := range is.Seen.Deleted(was.Seen) {
			r.deleted = append(r.deleted, status.Deleted{Placement: s.placement, Cluster: s.cluster, Deletion: d})
		}
	}
	return changed
}

// publishBatch is how many occurrences that follow from observations are published at once.
const publishBatch = 256

// publishObserved publishes what follows from observations.
func (r *Reconciler) publishObserved() {
	publish(r.cfg, r.observed...)
	r.observed = r.observed[:0]
}
