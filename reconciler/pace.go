package reconciler

import "time"

// loopShare limits the turns that only observations cause to a quarter of the time. The remainder is left to the
// members. The longer a turn takes, the longer observations are collected for the next one.
const loopShare = 4

// loopBurst is how long turns may take at once before the loop rests, so that it reacts at once to what happens rarely.
const loopBurst = 100 * time.Millisecond

// longestRest limits the rest, so that everything that depends on the clock is done within resyncPeriod.
const longestRest = 10 * time.Second

// A pace limits the share of time for turns that only observations cause: after such turns, the loop rests.
type pace struct {
	// owed is the time of turns after which the loop has not rested yet, as of end, the end of the last turn.
	owed time.Duration
	end  time.Time
}

// worked records a turn. charged is the part of its time that counts for the limit.
func (p *pace) worked(start, end time.Time, charged time.Duration) {
	p.owed = min(max(0, p.owed-start.Sub(p.end)/(loopShare-1))+charged, loopBurst+longestRest/(loopShare-1))
	p.end = end
}

// rest returns how long observations have to wait for the next turn after the last one has ended.
func (p *pace) rest() time.Duration { return max(0, p.owed-loopBurst) * (loopShare - 1) }
