package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// suspensions are the suspensions in force, kept between calls.
type suspensions struct {
	list    []ledger.Suspension
	reasons map[ledger.Subject]suspendedState // by subject
	// objects are the suspended objects by cluster. Those of "" are suspended on every cluster, and are also in each of
	// the other lists.
	objects map[string][]work.SuspendedObject
	// freezes are the freezes in force, by subject.
	freezes map[ledger.Subject]ledger.Suspension
	// version counts the changes; each affects every placement.
	version uint64
}

// A suspendedState says why and since when something is suspended; zero if it is not.
type suspendedState struct {
	why   string
	since time.Time
}

// update finds the suspensions in force, and returns when the next one ends.
func (r *suspensions) update(in Input) time.Time {
	var wake time.Time
	list := slices.DeleteFunc(in.Ledger.Suspensions(), func(s ledger.Suspension) bool { return s.Ended(in.Now) })
	for _, s := range list {
		wake = earliest(wake, s.Until)
	}
	if slices.Equal(list, r.list) {
		return wake
	}
	r.list, r.reasons, r.objects = list, make(map[ledger.Subject]suspendedState, len(list)), map[string][]work.SuspendedObject{}
	r.freezes = map[ledger.Subject]ledger.Suspension{}
	r.version++
	for _, s := range list {
		switch {
		case s.Effect == ledger.Freezes:
			r.freezes[s.Subject] = s
		case s.Effect == ledger.Cordons: // it is a taint of the cluster
		case s.Object == api.ID{}:
			r.reasons[s.Subject] = suspendedState{s.String(), s.Since}
		default:
			r.objects[s.Cluster] = append(r.objects[s.Cluster], work.SuspendedObject{ID: s.Object, Why: s.String()})
		}
	}
	everywhere := r.objects[""]
	for _, cluster := range slices.Sorted(maps.Keys(r.objects)) {
		if cluster != "" {
			r.objects[cluster] = merged(r.objects[cluster], everywhere)
		}
	}
	return wake
}

// merged adds to a list, by ID, the objects of another list that it does not have.
func merged(own, more []work.SuspendedObject) []work.SuspendedObject {
	all := append(slices.Clone(own), more...)
	slices.SortStableFunc(all, func(a, b work.SuspendedObject) int { return a.ID.Compare(b.ID) })
	return slices.CompactFunc(all, func(a, b work.SuspendedObject) bool { return a.ID == b.ID })
}

// of returns why a placement writes nothing to a cluster; zero if it does.
func (r *suspensions) of(key api.PlacementKey, cluster string) suspendedState {
	for _, s := range []ledger.Subject{{Placement: key}, {Placement: key, Cluster: cluster}, {Cluster: cluster}} {
		if s := r.reasons[s]; s.why != "" {
			return s
		}
	}
	return suspendedState{}
}

// objectsOn lists the suspended objects of a cluster, by ID.
func (r *suspensions) objectsOn(cluster string) []work.SuspendedObject {
	if own, ok := r.objects[cluster]; ok {
		return own
	}
	return r.objects[""]
}

func (r *suspensions) notSuspended(clusters []string) []string {
	return slices.DeleteFunc(clusters, func(name string) bool { return r.reasons[ledger.Subject{Cluster: name}].why != "" })
}
