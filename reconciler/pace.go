package reconciler

import "time"

// loopShare is the divisor of the time that turns may take which only observations have caused: a quarter of it. The rest is
// left to the members. The longer a turn takes, the longer observations are collected for the next one.
const loopShare = 4

// loopBurst is how long turns may take at once before the loop rests, so that it reacts at once to what happens rarely.
const loopBurst = 100 * time.Millisecond

// longestRest limits the rest, so that everything that depends on the clock is done within resyncPeriod.
const longestRest = 10 * time.Second

// A pace decides when the loop has rested from its turns.
type pace struct {
	// owed is the time of the turns that was not rested for, as of the end of the last one.
	owed time.Duration
	end  time.Time
}

// worked records a turn, of which some time is to be rested for.
func (p *pace) worked(start, end time.Time, charged time.Duration) {
	p.owed = min(max(0, p.owed-start.Sub(p.end)/(loopShare-1))+charged, loopBurst+longestRest/(loopShare-1))
	p.end = end
}

// rest returns how long observations have to wait for the next turn after the last one has ended.
func (p *pace) rest() time.Duration { return max(0, p.owed-loopBurst) * (loopShare - 1) }
