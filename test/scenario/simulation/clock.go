package simulation

import (
	"math/rand/v2"
	"time"
	"unsafe"
)

// A clock is that of the machine gitfleet runs on. It may be set, also back;
// how much time passes meanwhile is another matter.
type clock struct {
	set time.Duration
	// leapt says that it was ever set.
	leapt bool
}

// now is what the clock shows.
func (w *world) now() time.Time {
	return reading(time.Now().Add(w.clock.set), time.Since(w.began))
}

// now is what the clock shows to the loop.
func (d *daemon) now() time.Time {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.w.now()
}

var firstReading = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// reading is a time as time.Now returns it outside of a bubble: with what the
// clock on the wall shows, and with how long it has been running, which is what
// counts between two readings of one process. The package offers no way to make
// one, so this relies on what it looks like.
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

// leapOver does so while gitfleet is not running.
func (w *world) leapOver(r *rand.Rand) {
	if w.daemon != nil && r.IntN(2) == 0 {
		w.happen(func() { w.daemon.dead = true; w.story("gitfleet is killed") })
	}
	w.restart(r)
	w.leap(r)
}

// recall is what a start makes of the times that were saved: that a word came
// after what it speaks of was assigned stays so, whatever the clock shows now.
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

// believe takes over since when clusters have been available, as it was saved
// before the clock was set: how long that is nobody can tell but by the clock. It
// comes before the first decision, which may replace the content.
func (w *world) believe() {
	if !w.clock.leapt {
		return
	}
	l, err := w.state.Load()
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
