package ledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Effect is what a suspension stops.
type Effect string

// The effects.
const (
	// StopsWrites: nothing is written.
	StopsWrites Effect = ""
	// Freezes: no cluster gets new content; everything else continues.
	Freezes Effect = "freeze"
	// Cordons: no placement is scheduled to a cluster that does not tolerate its taint, since it is drained.
	Cordons Effect = "cordon"
)

// A Subject is what is suspended. An empty field stands for all: a placement or an object
// without a cluster is suspended on all clusters, and a freeze of no placement is one of the whole
// fleet. A Subject is comparable.
type Subject struct {
	Placement api.PlacementKey
	Object    api.ID
	Cluster   string
	Effect    Effect `json:",omitempty"`
}

// String returns, for example, crp/web on east, cluster/east, or Deployment.apps/shop/web on
// every cluster.
func (s Subject) String() string {
	switch {
	case s == Subject{Effect: Freezes}:
		return "the fleet"
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

// Compare orders subjects: clusters, then placements, then objects, each by name and then by
// cluster.
func (s Subject) Compare(o Subject) int {
	return cmp.Or(s.Object.Compare(o.Object), s.Placement.Compare(o.Placement), strings.Compare(s.Cluster, o.Cluster), cmp.Compare(s.Effect, o.Effect))
}

// A Suspension says that a user suspended a subject: it is watched and reported, but not
// written, or what else the effect says.
type Suspension struct {
	Subject
	By, Reason string
	Since      time.Time
	Until      time.Time // when it ends; zero if it has no end
	// Overrun says that rollouts which have begun before a freeze may finish.
	Overrun bool `json:",omitempty"`
}

// String says who suspended it, until when and why.
func (s Suspension) String() string {
	text := s.Effect.Verb() + " by " + s.By
	if !s.Until.IsZero() {
		text += " until " + s.Until.UTC().Format(time.RFC3339)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// Verb is what was done to a subject, as a participle.
func (e Effect) Verb() string {
	switch e {
	case Freezes:
		return "frozen"
	case Cordons:
		return "cordoned"
	}
	return "suspended"
}

// Ended reports whether the suspension has ended.
func (s Suspension) Ended(now time.Time) bool { return !s.Until.IsZero() && !now.Before(s.Until) }

// suspensionKey returns the key of the record of a suspension.
func suspensionKey(s Subject) string {
	k := recordKey{kind: suspensionRecord, placement: s.Placement, object: s.Object, cluster: s.Cluster, effect: string(s.Effect)}
	if s.Effect != StopsWrites {
		k.kind = effectRecord
	}
	return k.String()
}

// subjectOf returns the subject of the suspension whose record has a key.
func subjectOf(k recordKey) Subject {
	return Subject{Placement: k.placement, Object: k.object, Cluster: k.cluster, Effect: Effect(k.effect)}
}

// suspensions are the recorded suspensions of a ledger.
type suspensions struct {
	*changes
	suspended map[Subject]Suspension
}

// Suspend records a suspension. It replaces an earlier one of the same subject.
func (l *suspensions) Suspend(s Suspension) {
	l.suspended[s.Subject] = s
	l.markUrgent(suspensionKey(s.Subject))
	l.recent.changed()
}

func (l *suspensions) remove(s Subject) {
	delete(l.suspended, s)
	l.markUrgent(suspensionKey(s))
	l.recent.changed()
}

// Suspension returns the suspension of exactly this subject; not ok if there is none.
func (l *suspensions) Suspension(s Subject) (found Suspension, ok bool) {
	found, ok = l.suspended[s]
	return found, ok
}

// Suspensions returns all suspensions, by subject.
func (l *suspensions) Suspensions() []Suspension {
	return slices.SortedFunc(maps.Values(l.suspended), func(a, b Suspension) int { return a.Subject.Compare(b.Subject) })
}

// ExpiredSuspensions returns the suspensions whose time is over and that are still recorded, by
// subject.
func (l *suspensions) ExpiredSuspensions(now time.Time) []Suspension {
	return slices.DeleteFunc(l.Suspensions(), func(s Suspension) bool { return !s.Ended(now) })
}

// rename moves the suspensions of a placement to its new key, unless they exist there.
func (l *suspensions) rename(from, to api.PlacementKey) {
	l.move(func(s Subject) bool { return s.Placement == from }, func(s *Subject) { s.Placement = to })
}

// renameCluster moves the suspensions of a cluster to its new name, unless they exist there.
func (l *suspensions) renameCluster(from, to string) {
	l.move(func(s Subject) bool { return s.Cluster == from }, func(s *Subject) { s.Cluster = to })
}

// move changes the subjects of some suspensions, unless there are suspensions of the new subjects.
func (l *suspensions) move(these func(Subject) bool, change func(*Subject)) {
	for _, s := range l.Suspensions() {
		if !these(s.Subject) {
			continue
		}
		l.remove(s.Subject)
		change(&s.Subject)
		if _, taken := l.suspended[s.Subject]; !taken {
			l.Suspend(s)
		}
	}
}
