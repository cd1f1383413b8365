package diff

import "time"

// An object is contested when it was put back Contest times within
// ContestWindow.
const (
	Contest       = 3
	ContestWindow = 10 * time.Minute
)

// A contested object is put back after a delay, which doubles each time.
const (
	firstDelay = 30 * time.Second
	lastDelay  = 15 * time.Minute
)

// Flips remember how often someone undid what we applied. The zero value is an
// object that nobody ever touched. A Flips is a value: methods return a new
// one, and it may be stored.
type Flips struct {
	// Total counts since the object is ours.
	Total int
	// Recent are the last flips, the newest last; zero where there were fewer.
	Recent [Contest]time.Time
	// Rounds counts the flips since it became contested; zero if it is not.
	Rounds int
	// By is who did the last one, as far as is known.
	By string
}

// Flip records that someone undid what we applied. Times must not go backward.
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

// Contested reports whether two writers keep undoing each other. It ends when
// an object that was put back stays so for ContestWindow.
func (f Flips) Contested(now time.Time) bool {
	return f.Rounds > 0 && now.Before(f.Due().Add(ContestWindow))
}

// Due is when the object may be put back after the last flip: at once, unless
// it is contested.
func (f Flips) Due() time.Time {
	return f.Last().Add(f.delay())
}

// Last is when the last flip was; zero if there was none.
func (f Flips) Last() time.Time { return f.Recent[Contest-1] }

func (f Flips) delay() time.Duration {
	if f.Rounds == 0 {
		return 0
	}
	delay := firstDelay
	for range f.Rounds - 1 {
		if delay *= 2; delay >= lastDelay {
			return lastDelay
		}
	}
	return delay
}
