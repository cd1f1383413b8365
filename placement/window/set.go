package window

import (
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Set has the windows for one placement on one cluster. They are open together: in a period that
// one of them allows, and that none excludes.
type Set []*Window

// A State says whether a set is open.
type State struct {
	Open bool
	// By is a window that is closed; nil if the set is open.
	By *Window
	// Until is when the state changes, in the time zone of the period that changes it; zero if it does not.
	Until time.Time
}

// TimeForm is the form of a time at which windows open or close.
const TimeForm = "Mon 2006-01-02 15:04 MST"

// String is a clause that says what is closed and when it opens, or until when everything is open.
func (s State) String() string {
	switch {
	case s.Open && s.Until.IsZero():
		return "open"
	case s.Open:
		return "open until " + s.Until.Format(TimeForm)
	case s.Until.IsZero():
		return "the window " + s.By.Name() + " is closed, and does not open again"
	}
	return "the window " + s.By.Name() + " is closed until " + s.Until.Format(TimeForm)
}

// At returns the state at a time. An empty set is open.
func (s Set) At(now time.Time) State {
	by := s.closedBy(now)
	if by != nil {
		return State{By: by, Until: s.opens(now)}
	}
	return State{Open: true, Until: s.closes(now)}
}

// names lists the windows of the set.
func (s Set) names() string {
	var out []string
	for _, w := range s {
		out = append(out, w.name)
	}
	return strings.Join(out, " and ")
}

// A Fleet has the labels of the placements and of the clusters for which windows are, each by name.
type Fleet struct {
	Placements, Clusters []Labelled
}

// A Labelled is a placement or a cluster.
type Labelled struct {
	Name   string
	Labels map[string]string
}

// Check returns what is wrong with windows together, in their order: those that match nothing, and
// those that are never open at the same time.
func Check(all []*Window, fleet Fleet) []Problem {
	var out []Problem
	placements := subsets(all, fleet.Placements, (*Window).IsFor)
	clusters := subsets(all, fleet.Clusters, (*Window).IsOn)
	seen := map[string]bool{}
	for _, w := range all {
		for _, side := range []struct {
			what string
			sets []subset
		}{{"placement", placements}, {"cluster", clusters}} {
			if !slices.ContainsFunc(side.sets, func(s subset) bool { return slices.Contains(s.set, w) }) {
				out = append(out, Problem{Window: w, Field: side.what + "Selector", Warning: true, Message: "matches no " + side.what + " of the commit, so the window has no effect; correct the labels, or remove the window"})
			}
		}
	}
	for _, p := range placements {
		for _, c := range clusters {
			both := slices.DeleteFunc(slices.Clone(p.set), func(w *Window) bool { return !slices.Contains(c.set, w) })
			if names := both.names(); len(both) > 1 && !seen[names] {
				seen[names] = true
				if both.opens(reference).IsZero() {
					out = append(out, Problem{Window: both[len(both)-1], Message: "the windows " + names + " are never open together, so " + p.first + " would never get new content on " + c.first + "; change their periods or selectors"})
				}
			}
		}
	}
	return out
}

// A Problem is what is wrong with a window because of others.
type Problem struct {
	Window *Window
	// Field is the field below spec; empty if it is about the whole.
	Field   string
	Message string
	// Warning says that the windows can be used.
	Warning bool
}

// A subset has the windows that match one or more placements or clusters, the first of which is named.
type subset struct {
	set   Set
	first string
}

func subsets(all []*Window, items []Labelled, matches func(*Window, map[string]string) bool) []subset {
	var out []subset
	seen := map[string]bool{}
	for _, item := range items {
		var set Set
		for _, w := range all {
			if matches(w, item.Labels) {
				set = append(set, w)
			}
		}
		if names := set.names(); len(set) > 0 && !seen[names] {
			seen[names] = true
			out = append(out, subset{set, item.Name})
		}
	}
	return out
}

// closedBy returns a window that is closed: one that excludes the time or, if none allows it, the
// first with allowed periods.
func (s Set) closedBy(t time.Time) *Window {
	var allows *Window
	allowed := false
	for _, w := range s {
		if !latestEnd(w.exclude, t).IsZero() {
			return w
		}
		if len(w.allow) > 0 && allows == nil {
			allows = w
		}
		allowed = allowed || !latestEnd(w.allow, t).IsZero()
	}
	if allowed {
		return nil
	}
	return allows
}

const (
	// farthest is how far ahead opens looks, and maxSteps in how many steps.
	farthest = 5 * 366 * 24 * time.Hour
	maxSteps = 20000
)

// opens is the first time, from t on, at which the set is open; zero if it does not open.
func (s Set) opens(t time.Time) time.Time {
	limit := t.Add(farthest)
	for range maxSteps {
		switch end := s.excludedUntil(t); {
		case t.After(limit):
			return time.Time{}
		case !end.IsZero():
			t = end
		case s.closedBy(t) == nil:
			return t
		default:
			if t = s.nextAllowed(t); t.IsZero() {
				return time.Time{}
			}
		}
	}
	return time.Time{}
}

// closes is when a set that is open at a time closes, or may close; zero if it does not.
func (s Set) closes(t time.Time) time.Time {
	var at time.Time
	for _, w := range s {
		if end := latestEnd(w.allow, t); end.After(at) {
			at = end
		}
	}
	for _, w := range s {
		at = api.Earliest(at, nextStart(w.exclude, t))
	}
	return at
}

func (s Set) excludedUntil(t time.Time) time.Time {
	var end time.Time
	for _, w := range s {
		if e := latestEnd(w.exclude, t); e.After(end) {
			end = e
		}
	}
	return end
}

func (s Set) nextAllowed(t time.Time) time.Time {
	var at time.Time
	for _, w := range s {
		at = api.Earliest(at, nextStart(w.allow, t))
	}
	return at
}

// latestEnd is when the last of the periods ends that a time is in, in its time zone; zero if it is in none.
func latestEnd(all []period, t time.Time) time.Time {
	var out time.Time
	for _, p := range all {
		if end := p.end(t); end.After(out) {
			out = end.In(p.schedule.Location)
		}
	}
	return out
}

// nextStart is when the first of the periods begins after a time, in its time zone; zero if there are none.
func nextStart(all []period, t time.Time) time.Time {
	var out time.Time
	for _, p := range all {
		if start := p.next(t); !start.IsZero() {
			out = api.Earliest(out, start.In(p.schedule.Location))
		}
	}
	return out
}
