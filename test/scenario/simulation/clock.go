package simulation

import (
	"math/rand/v2"
	"time"
	"unsafe"
)

// A clock is the wall clock of the machine. It can be set forward and back, independently of
// the time that passes.
type clock struct {
	offset time.Duration
	// changed says that the clock was ever set.
	changed bool
}

// now returns the time of the wall clock.
func (w *world) now() time.Time {
	return reading(time.Now().Add(w.clock.offset), time.Since(w.began))
}

// now is the clock of the loop.
func (d *daemon) now() time.Time {
	d.waitWhileStopped()
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.w.now()
}

var firstReading = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// reading returns a time as time.Now does outside of a bubble: with a wall clock, and with a
// monotonic clock that counts between two readings of one process. The package offers no way to
// make one, so this relies on its layout.
func reading(wall time.Time, running time.Duration) time.Time {
	t := struct {
		wall uint64
		ext  int64
		loc  *time.Location
	}{1<<63 | uint64(wall.Unix()-firstReading)<<30 | uint64(wall.Nanosecond()), int64(time.Hour + running), nil}
	return *(*time.Time)(unsafe.Pointer(&t))
}

var clockChanges = []time.Duration{3 * time.Second, 40 * time.Second, 5 * time.Minute, 2 * time.Hour, 50 * time.Hour}

// setClock sets the clock, forward or back.
func (w *world) setClock(r *rand.Rand) {
	w.runEvent(func() {
		by, way := pick(r, clockChanges), "forward"
		if r.IntN(2) == 0 {
			by, way = -by, "back"
		}
		w.clock.offset += by
		w.clock.changed = true
		w.logf("the clock is set %s by %s", way, by.Abs())
	})
}

// setClockWhileStopped sets the clock while gitfleet is not running.
func (w *world) setClockWhileStopped(r *rand.Rand) {
	if w.daemon != nil && r.IntN(2) == 0 {
		w.runEvent(func() { w.daemon.dead = true; w.logf("gitfleet is killed") })
	}
	w.restart(r)
	w.setClock(r)
}

// rebaseReports adjusts the times of reports as a start does: a report stays later than the
// assignment that it is about, whatever the clock shows.
func (w *world) rebaseReports() {
	for at, word := range w.saved.reports {
		b, _ := w.saved.binding(at)
		if word.at.Before(b.AssignedAt) {
			word.at = time.Time{}
		} else {
			word.at = w.now()
		}
		w.saved.reports[at] = word
	}
}

// rebaseAvailability adopts the saved times since which clusters have been available, although
// the clock was set since. It is called before the first decision, which may replace the
// content.
func (w *world) rebaseAvailability() {
	if !w.clock.changed {
		return
	}
	l, err := w.reload()
	if err != nil {
		return // the daemon gets the same error
	}
	l.Rebase(w.now())
	for at, word := range w.saved.reports {
		p := l.Placement(at.key)
		if p == nil || p.Entry(at.cluster) == nil || p.Entry(at.cluster).Seen == nil {
			continue
		}
		e := p.Entry(at.cluster)
		if word.availableSince = e.AvailableSince(); word.availableSince.IsZero() {
			word.availableSince = e.SeenAt() // available but for suspended objects
		}
		w.saved.reports[at] = word
	}
}
