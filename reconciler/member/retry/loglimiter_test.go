package retry

import (
	"testing"
	"testing/synctest"
	"time"
)

// A failure is logged when it begins, when it changes, and then once an hour.
func TestLogLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l LogLimiter
		told := 0
		for range 6 * 60 * 2 {
			if l.Due("one") {
				told++
			}
			time.Sleep(10 * time.Second)
		}
		if told != 2 || !l.Due("two") || l.Due("two") || !l.Due("one") {
			t.Errorf("told %d times in two hours", told)
		}
	})
}
