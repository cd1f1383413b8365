package gitsource

import "time"

// A backoff says how long to leave a remote alone.
type backoff struct{ interval, first, most time.Duration }

func newBackoff(interval time.Duration) backoff {
	return backoff{interval: interval, first: min(interval, 2*time.Second), most: max(interval, 5*time.Minute)}
}

// next answers the time to the next poll after so many failures in a row, zero
// being none, and a wish of the server. Dice from 0 to 1 spread the polls of
// many daemons that lost the same server.
func (b backoff) next(failures int, wish time.Duration, dice float64) time.Duration {
	wait, spread := b.interval, 0.1
	if failures > 0 {
		wait, spread = b.first, 0.5
		for range failures - 1 {
			if wait >= b.most {
				break
			}
			wait *= 2
		}
		wait = min(wait, b.most)
	}
	wait += time.Duration(float64(wait) * spread * (dice - 0.5))
	return max(wait, wish)
}
