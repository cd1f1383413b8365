package fleet

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Suspensions are the suspensions in force, kept between plans.
type Suspensions struct {
	list    []ledger.Suspension
	reasons map[ledger.Subject]Suspended // by subject
	// objects are the suspended objects by cluster. Those of "" are suspended on every cluster, and are also in each of
	// the other lists.
	objects map[string][]work.SuspendedObject
	// Freezes are the freezes in force, by subject.
	Freezes map[ledger.Subject]ledger.Suspension
	// Version counts the changes; each affects every placement.
	Version uint64
}

// Suspended says why and since when something is suspended; zero if it is not.
type Suspended struct {
	Why   string
	Since time.Time
}

// Update sets which suspensions are in force, and returns the time at which the next of them ends; zero if none ends by itself.
func (r *Suspensions) Update(l *ledger.Ledger, now time.Time) time.Time {
	var wake time.Time
	list := slices.DeleteFunc(l.Suspensions(), func(s ledger.Suspension) bool { return s.Ended(now) })
	for _, s := range list {
		wake = api.Earliest(wake, s.Until)
	}
	if slices.Equal(list, r.list) {
		return wake
	}
	r.list, r.reasons, r.objects = list, make(map[ledger.Subject]Suspended, len(list)), map[string][]work.SuspendedObject{}
	r.Freezes = map[ledger.Subject]ledger.Suspension{}
	r.Version++
	for _, s := range list {
		switch {
		case s.Effect == ledger.Freezes:
			r.Freezes[s.Subject] = s
		case s.Effect == ledger.Cordons: // it is a taint of the cluster
		case s.Object == api.ID{}:
			r.reasons[s.Subject] = Suspended{s.String(), s.Since}
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

// Of returns why a placement writes nothing to a cluster; zero if it does.
func (r *Suspensions) Of(key api.PlacementKey, cluster string) Suspended {
	for _, s := range []ledger.Subject{{Placement: key}, {Placement: key, Cluster: cluster}, {Cluster: cluster}} {
		if s := r.reasons[s]; s.Why != "" {
			return s
		}
	}
	return Suspended{}
}

// ObjectsOn lists the suspended objects of a cluster, by ID.
func (r *Suspensions) ObjectsOn(cluster string) []work.SuspendedObject {
	if own, ok := r.objects[cluster]; ok {
		return own
	}
	return r.objects[""]
}

// NotSuspended returns the clusters of a list that are not suspended, in its memory.
func (r *Suspensions) NotSuspended(clusters []string) []string {
	return slices.DeleteFunc(clusters, func(name string) bool { return r.reasons[ledger.Subject{Cluster: name}].Why != "" })
}
