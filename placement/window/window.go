// Package window decides when clusters may get new content.
//
// Compile reads a RolloutWindow, and Set.At says whether the windows for a placement on a cluster are open at
// a time, and when that changes. No clock is read. Package plan asks when it plans a rollout (deferral.go there).
package window

import (
	"time"
	_ "time/tzdata" // so that time zones are known on each machine

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/labels"
)

// A Window is a compiled RolloutWindow. It is immutable.
type Window struct {
	name                string
	placements, cluster labels.Selector
	allow, exclude      []period
	finishes            bool
	maxAge              time.Duration
}

// A period is a time that comes again and again.
type period struct {
	schedule *cron.SpecSchedule
	duration time.Duration
}

// reference is the time from which on Compile looks for a time at which a window is open.
var reference = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// end is when the occurrence of a period ends that a time is in; zero if it is in none.
func (p period) end(t time.Time) time.Time {
	if start := p.schedule.Next(t.Add(-p.duration)); !start.IsZero() && !start.After(t) {
		return start.Add(p.duration)
	}
	return time.Time{}
}

// next is when a period begins again after a time.
func (p period) next(t time.Time) time.Time { return p.schedule.Next(t) }

// Name is the name of the RolloutWindow.
func (w *Window) Name() string { return w.name }

// IsFor reports whether the window is for a placement, on clusters.
func (w *Window) IsFor(placement map[string]string) bool {
	return w.placements.Matches(labels.Set(placement))
}

// IsOn reports whether the window is for a cluster.
func (w *Window) IsOn(cluster map[string]string) bool { return w.cluster.Matches(labels.Set(cluster)) }

// MaxAge is how long content may wait for the window before that is reported; zero if it never is.
func (w *Window) MaxAge() time.Duration { return w.maxAge }

// Finishes reports whether rollouts that are under way finish when the window closes.
func (w *Window) Finishes() bool { return w.finishes }
