package ledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Subject is what somebody has had left alone. What is empty says nothing: a
// placement without a cluster is meant wherever it is, an object without one on
// every cluster. It is comparable.
type Subject struct {
	Placement api.PlacementKey
	Object    api.ID
	Cluster   string
}

// String names the subject as a person would: crp/web on east, cluster/east,
// Deployment.apps/shop/web on every cluster.
func (s Subject) String() string {
	switch {
	case s.Object != api.ID{} && s.Cluster == "":
		return s.Object.String() + " on every cluster"
	case s.Object != api.ID{}:
		return s.Object.String() + " on " + s.Cluster
	case s.Placement == api.PlacementKey{}:
		return "cluster/" + s.Cluster
	case s.Cluster == "":
		return s.Placement.String()
	}
	return s.Placement.String() + " on " + s.Cluster
}

// Compare orders subjects: clusters, then placements, then objects, each by
// name and then by cluster.
func (s Subject) Compare(o Subject) int {
	return cmp.Or(
		s.Object.Compare(o.Object),
		strings.Compare(s.Placement.Namespace, o.Placement.Namespace),
		strings.Compare(s.Placement.Name, o.Placement.Name),
		strings.Compare(s.Cluster, o.Cluster),
	)
}

// A Suspension is a person's word that something is to be left alone: watched
// and reported, and never written.
type Suspension struct {
	Subject
	By, Reason string
	Since      time.Time
	// Until is when it ends by itself; zero if somebody has to resume it.
	Until time.Time
}

// String says who suspended it, until when and why.
func (s Suspension) String() string {
	text := "suspended by " + s.By
	if !s.Until.IsZero() {
		text += " until " + s.Until.UTC().Format(time.RFC3339)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// Ended reports whether the suspension has come to its end.
func (s Suspension) Ended(now time.Time) bool { return !s.Until.IsZero() && !now.Before(s.Until) }

// Suspend writes down that something is to be left alone. It takes the place of
// what was said of the same subject before.
func (l *Ledger) Suspend(s Suspension) {
	l.suspensions[s.Subject] = s
	l.touch(suspensionKey(s.Subject))
}

// Resume takes a suspension back, and reports whether there was one.
func (l *Ledger) Resume(s Subject) bool {
	if _, ok := l.suspensions[s]; !ok {
		return false
	}
	delete(l.suspensions, s)
	l.touch(suspensionKey(s))
	return true
}

// Suspension returns what was said of exactly this subject; not ok if nothing
// was.
func (l *Ledger) Suspension(s Subject) (found Suspension, ok bool) {
	found, ok = l.suspensions[s]
	return found, ok
}

// Suspensions returns all of them, by subject.
func (l *Ledger) Suspensions() []Suspension {
	return slices.SortedFunc(maps.Values(l.suspensions), func(a, b Suspension) int { return a.Subject.Compare(b.Subject) })
}

// Expire forgets the suspensions that have come to their end, and returns them.
func (l *Ledger) Expire(now time.Time) []Suspension {
	var ended []Suspension
	for _, s := range l.Suspensions() {
		if s.Ended(now) {
			l.Resume(s.Subject)
			ended = append(ended, s)
		}
	}
	return ended
}

// Proceed writes down that somebody wants a stopped rollout to go on. It does
// nothing for a placement that is not known.
func (l *Ledger) Proceed(key api.PlacementKey, at time.Time) {
	old := l.placements[key]
	if old == nil {
		return
	}
	next := *old
	next.Resumed, next.Stops, next.version = at, nil, l.next()
	l.placements[key] = &next
	l.touch(placementKey(key))
}
