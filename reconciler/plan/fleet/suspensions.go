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
func (s *Suspensions) Update(l *ledger.Ledger, now time.Time) time.Time {
	var wake time.Time
	list := slices.DeleteFunc(l.Suspensions(), func(one ledger.Suspension) bool { return one.Ended(now) })
	for _, one := range list {
		wake = api.Earliest(wake, one.Until)
	}
	if slices.Equal(list, s.list) {
		return wake
	}
	s.list, s.reasons, s.objects = list, make(map[ledger.Subject]Suspended, len(list)), map[string][]work.SuspendedObject{}
	s.Freezes = map[ledger.Subject]ledger.Suspension{}
	s.Version++
	for _, one := range list {
		switch {
		case one.Effect == ledger.Freezes:
			s.Freezes[one.Subject] = one
		case one.Effect == ledger.Cordons: // it is a taint of the cluster
		case one.Object == api.ID{}:
			s.reasons[one.Subject] = Suspended{one.String(), one.Since}
		default:
			s.objects[one.Cluster] = append(s.objects[one.Cluster], work.SuspendedObject{ID: one.Object, Why: one.String()})
		}
	}
	everywhere := s.objects[""]
	for _, cluster := range slices.Sorted(maps.Keys(s.objects)) {
		if cluster != "" {
			s.objects[cluster] = merged(s.objects[cluster], everywhere)
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
func (s *Suspensions) Of(key api.PlacementKey, cluster string) Suspended {
	for _, subject := range []ledger.Subject{{Placement: key}, {Placement: key, Cluster: cluster}, {Cluster: cluster}} {
		if reason := s.reasons[subject]; reason.Why != "" {
			return reason
		}
	}
	return Suspended{}
}

// ObjectsOn lists the suspended objects of a cluster, by ID.
func (s *Suspensions) ObjectsOn(cluster string) []work.SuspendedObject {
	if own, ok := s.objects[cluster]; ok {
		return own
	}
	return s.objects[""]
}

// NotSuspended returns the clusters of a list that are not suspended, in its memory.
func (s *Suspensions) NotSuspended(clusters []string) []string {
	return slices.DeleteFunc(clusters, func(name string) bool { return s.reasons[ledger.Subject{Cluster: name}].Why != "" })
}
