package member

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// desired is what a cluster should have, by placement. It is replaced as a whole, and never
// changed.
type desired map[api.PlacementKey]work.Work

// placed reports whether a placement has anything here.
func (ws desired) placed(p api.PlacementKey) bool {
	w, ok := ws[p]
	return ok && !w.Remove
}

// reports reports whether a placement compares and never writes.
func (ws desired) reports(p api.PlacementKey) bool {
	return ws[p].Strategy.Type == api.ReportDiff
}

// prunes reports whether objects are removed that the inventory of a placement lists and its
// work does not. They are not while the work is unknown.
func (ws desired) prunes(p api.PlacementKey) bool {
	w, told := ws[p]
	return told && !w.Keep && w.Strategy.Type != api.ReportDiff
}

// protects reports whether a placement does not restore drift.
func (ws desired) protects(p api.PlacementKey) bool {
	return ws[p].Strategy.WhenToApply == api.ApplyIfNotDrifted
}

// resting reports whether nothing is written for a placement.
func (ws desired) resting(p api.PlacementKey) bool { return ws[p].Suspended != "" }

// spared returns why an object is not written for a placement; empty if it is written.
func (ws desired) spared(p api.PlacementKey, id api.ID) string {
	w, told := ws[p]
	if !told {
		return ""
	}
	return w.SuspendedReason(id)
}

// markerStale reports whether the placement in an object's marker no longer has a claim to the
// object: it does not exist on this cluster, or gives the object up.
func (ws desired) markerStale(placement string) bool {
	for p := range ws {
		if p.String() == placement {
			return ws.prunes(p)
		}
	}
	return true
}
