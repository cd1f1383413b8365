package gitsource

import "time"

// A backoff says how long to leave a remote alone.
type backoff struct {
	// interval is the time between polls that succeed.
	interval time.Duration
	// first is the time after a first failure; it doubles up to most.
	first, most time.Duration
	// quiet is the least time between a poll and one that was nudged.
	quiet time.Duration
	// cloneFirst is the time between clones of a store that is damaged again;
	// it doubles up to cloneMost.
	cloneFirst, cloneMost time.Duration
}

func newBackoff(interval time.Duration) backoff {
	return backoff{
		interval:   interval,
		first:      min(interval, 2*time.Second),
		most:       max(interval, 5*time.Minute),
		quiet:      200 * time.Millisecond,
		cloneFirst: time.Minute,
		cloneMost:  time.Hour,
	}
}

// next answers the time to the next poll after so many failures in a row, zero
// being none, and a wish of the server. Dice from 0 to 1 spread the polls of
// many daemons that lost the same server.
func (b backoff) next(failures int, wish time.Duration, dice float64) time.Duration {
	wait, spread := b.interval, 0.1
	if failures > 0 {
		wait, spread = double(b.first, b.most, failures-1), 0.5
	}
	wait += time.Duration(float64(wait) * spread * (dice - 0.5))
	return max(wait, wish)
}

// clone answers the time after a clone before the next one, given how many
// there were in a row.
func (b backoff) clone(clones int) time.Duration {
	if clones == 0 {
		return 0
	}
	return double(b.cloneFirst, b.cloneMost, clones-1)
}

func double(d, most time.Duration, times int) time.Duration {
	for range times {
		if d >= most {
			break
		}
		d *= 2
	}
	return min(d, most)
}
