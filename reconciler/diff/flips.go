package diff

import "time"

// An object is contested if its drift was reverted Contest times within ContestWindow.
const (
	Contest       = 3
	ContestWindow = 10 * time.Minute
)

// The drift of a contested object is reverted after a delay, which doubles each time.
const (
	firstDelay = 30 * time.Second
	lastDelay  = 15 * time.Minute
)

// Flips record how often somebody undid what was applied. The zero value is an object that was
// never changed. Methods do not change Flips but return a new value, which may be stored.
type Flips struct {
	// Total counts all flips since the object was applied first.
	Total int
	// Recent are the last flips, the newest last; zero if there were fewer.
	Recent [Contest]time.Time
	// Rounds counts the flips since the object became contested; zero if it is not.
	Rounds int
	// By is the manager of the last flip, if it is known.
	By string
}

// Flip records that somebody undid what was applied. Times must not go backward.
func (f Flips) Flip(now time.Time, by string) Flips {
	if !f.Contested(now) {
		f.Rounds = 0
	}
	copy(f.Recent[:], f.Recent[1:])
	f.Recent[Contest-1] = now
	f.Total++
	f.By = by
	if f.Rounds > 0 || !f.Recent[0].IsZero() && now.Sub(f.Recent[0]) <= ContestWindow {
		f.Rounds++
	}
	return f
}

// Contested reports whether two writers keep undoing each other. It ends when an object
// stays unchanged for ContestWindow after its drift was reverted.
func (f Flips) Contested(now time.Time) bool {
	return f.Rounds > 0 && now.Before(f.Due().Add(ContestWindow))
}

// Due returns the time from which the last flip may be reverted: at once, unless the object is
// contested.
func (f Flips) Due() time.Time {
	if f.Rounds == 0 {
		return f.Last()
	}
	return f.Last().Add(min(firstDelay<<min(f.Rounds-1, 10), lastDelay))
}

// Last is the time of the last flip; zero if there was none.
func (f Flips) Last() time.Time { return f.Recent[Contest-1] }
