package member

import "sync"

// An underway is what a watch asks of the server at the moment, and how to end it.
// A context for each watch would be larger than the watch.
type underway struct {
	mu    sync.Mutex
	stop  func() // ends what is under way
	begun bool   // changes may be told of
	later func() // what waits until they may; nil if nothing does
	ended bool
	// restarted says that what is under way was ended to begin anew.
	restarted bool
}

// is notes what is under way now; if all is to end, it ends that at once.
func (u *underway) is(stop func()) {
	u.mu.Lock()
	u.stop = stop
	ended := u.ended
	u.mu.Unlock()
	if ended {
		stop()
	}
}

// waits reports whether changes are not to be told of yet; later is then called
// when they are, or when all is to end.
func (u *underway) waits(later func()) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.begun || u.ended {
		return false
	}
	u.later = later
	return true
}

// begin has changes told of from now on.
func (u *underway) begin() { u.set(func() { u.begun = true }) }

// end ends what is under way, and whatever would be after it.
func (u *underway) end() {
	u.set(func() { u.ended = true })
	u.mu.Lock()
	stop := u.stop
	u.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// restart ends what is under way now; what would be after it goes on.
func (u *underway) restart() {
	u.mu.Lock()
	stop := u.stop
	u.restarted = stop != nil
	u.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// wasRestarted reports whether what was under way ended because of a restart since it
// was last asked.
func (u *underway) wasRestarted() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := u.restarted
	u.restarted = false
	return was
}

// set changes something, and has nobody wait any more.
func (u *underway) set(change func()) {
	u.mu.Lock()
	change()
	later := u.later
	u.later = nil
	u.mu.Unlock()
	if later != nil {
		go later()
	}
}

func (u *underway) over() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended
}
