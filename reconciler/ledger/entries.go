package ledger

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/reconciler/intern"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// entries are the entries of a placement, sorted by cluster. Records of the same placement share them. With a sorted list a plan
// reads them in order without sorting, and looks most of them up where the last one was found, or right after it.
type entries struct {
	list []*Entry
	last int // the position that was looked up last
	// states are the last reports without exceptions and incidents. Most clusters of a placement report the same.
	states intern.Recent[*protocol.WorkState]
}

// maxSharedStates limits with how many reports a report is compared, to share it.
const maxSharedStates = 4

// share returns the report of another entry that is equal, or else a copy of the report.
func (es *entries) share(w *protocol.WorkState) *protocol.WorkState {
	own := func() *protocol.WorkState {
		own := *w
		return &own
	}
	if len(w.Exceptions) > 0 || w.Incidents != nil {
		return own()
	}
	return es.states.Share(maxSharedStates, func(known *protocol.WorkState) bool {
		return known.Revision == w.Revision && known.Removed == w.Removed && known.Done == w.Done && known.Compared == w.Compared && known.Total == w.Total && known.Untrackable == w.Untrackable
	}, own)
}

// position returns where the entry of a cluster is, or would be.
func (es *entries) position(cluster string) (at int, found bool) {
	for at = es.last; at < min(es.last+2, len(es.list)); at++ {
		if es.list[at].Binding.Cluster == cluster {
			es.last = at
			return at, true
		}
	}
	at, found = slices.BinarySearchFunc(es.list, cluster, func(e *Entry, cluster string) int { return strings.Compare(e.Binding.Cluster, cluster) })
	if found {
		es.last = at
	}
	return at, found
}

// of returns the entry of a cluster; nil if there is none.
func (es *entries) of(cluster string) *Entry {
	if at, found := es.position(cluster); found {
		return es.list[at]
	}
	return nil
}

// put adds or replaces the entry of a cluster.
func (es *entries) put(e *Entry) {
	at, found := es.position(e.Binding.Cluster)
	if found {
		es.list[at] = e
	} else {
		es.list = slices.Insert(es.list, at, e)
	}
}

// remove removes the entry of a cluster.
func (es *entries) remove(cluster string) {
	if at, found := es.position(cluster); found {
		es.list = slices.Delete(es.list, at, at+1)
	}
}

func (es *entries) sort() {
	slices.SortFunc(es.list, func(a, b *Entry) int { return strings.Compare(a.Binding.Cluster, b.Binding.Cluster) })
}

func (es *entries) clone() *entries { return &entries{list: slices.Clone(es.list)} }
