package gitsource

import "time"

// A backoff computes the delay until the next poll.
type backoff struct {
	// interval is the time between successful polls.
	interval time.Duration
	// first is the delay after the first failure; it doubles with each further failure, up to
	// most.
	first, most time.Duration
	// quiet is the shortest time between a poll and one caused by a nudge.
	quiet time.Duration
	// cloneFirst is the delay between two clones if the store is damaged again; it doubles up
	// to cloneMost.
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

// next returns the delay until the next poll. failures is the number of consecutive failures,
// wish the delay that the server asked for, and dice a random number from 0 to 1 for the
// jitter.
func (b backoff) next(failures int, wish time.Duration, dice float64) time.Duration {
	wait, spread := b.interval, 0.1
	if failures > 0 {
		wait, spread = double(b.first, b.most, failures-1), 0.5
	}
	wait += time.Duration(float64(wait) * spread * (dice - 0.5))
	return max(wait, wish)
}

// clone returns the delay until the next clone, given the number of consecutive clones.
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
