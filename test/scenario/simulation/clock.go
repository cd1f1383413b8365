package simulation

import (
	"math/rand/v2"
	"time"
	"unsafe"
)

// A clock is the clock of the machine. It can be set forward and back, independently of how much
// time passes.
type clock struct {
	set time.Duration
	// leapt says that the clock was ever set.
	leapt bool
}

// now is what the clock shows.
func (w *world) now() time.Time {
	return reading(time.Now().Add(w.clock.set), time.Since(w.began))
}

// now is what the clock shows to the loop.
func (d *daemon) now() time.Time {
	d.hold()
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

var leaps = []time.Duration{3 * time.Second, 40 * time.Second, 5 * time.Minute, 2 * time.Hour, 50 * time.Hour}

// leap sets the clock, forward or back.
func (w *world) leap(r *rand.Rand) {
	w.happen(func() {
		by, way := pick(r, leaps), "forward"
		if r.IntN(2) == 0 {
			by, way = -by, "back"
		}
		w.clock.set += by
		w.clock.leapt = true
		w.story("the clock is set %s by %s", way, by.Abs())
	})
}

// leapOver sets the clock while gitfleet is not running.
func (w *world) leapOver(r *rand.Rand) {
	if w.daemon != nil && r.IntN(2) == 0 {
		w.happen(func() { w.daemon.dead = true; w.story("gitfleet is killed") })
	}
	w.restart(r)
	w.leap(r)
}

// recall adjusts the saved times as a start does: a report stays later than the assignment it is
// about, whatever the clock shows.
func (w *world) recall() {
	for at, word := range w.books.words {
		b, _ := w.books.binding(at)
		if word.at.Before(b.AssignedAt) {
			word.at = time.Time{}
		} else {
			word.at = w.now()
		}
		w.books.words[at] = word
	}
}

// believe keeps the saved times since when clusters have been available, although the clock was
// set since. It is called before the first decision, which may replace the content.
func (w *world) believe() {
	if !w.clock.leapt {
		return
	}
	l, err := w.reload()
	if err != nil {
		return // the daemon has that to deal with as well
	}
	l.Rebase(w.now())
	for at, word := range w.books.words {
		p := l.Placement(at.key)
		if p == nil || p.Entry(at.cluster) == nil || p.Entry(at.cluster).Seen == nil {
			continue
		}
		e := p.Entry(at.cluster)
		if word.since = e.AvailableSince; word.since.IsZero() {
			word.since = e.Seen.At // but for what is suspended
		}
		w.books.words[at] = word
	}
}
