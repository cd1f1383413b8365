package retry

import "time"

// logInterval is the time between two log lines about the same failure.
const logInterval = time.Hour

// A LogLimiter limits how often a failure that is retried is logged: when it begins, when it
// changes, and every logInterval. The zero value has logged nothing.
type LogLimiter struct {
	what string
	at   time.Time
}

// Due reports whether a failure is to be logged now, and records it as logged.
func (l *LogLimiter) Due(what string) bool {
	now := time.Now()
	if l.what == what && now.Sub(l.at) < logInterval {
		return false
	}
	*l = LogLimiter{what, now}
	return true
}
