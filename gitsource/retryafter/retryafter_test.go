package retryafter

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// Of understands both forms of Retry-After and the rate limits of the forges.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"none":           {nil, 0},
		"seconds":        {map[string]string{"Retry-After": "120"}, 2 * time.Minute},
		"date":           {map[string]string{"Retry-After": now.Add(time.Minute).Format(http.TimeFormat)}, time.Minute},
		"past":           {map[string]string{"Retry-After": now.Add(-time.Minute).Format(http.TimeFormat)}, 0},
		"negative":       {map[string]string{"Retry-After": "-5"}, 0},
		"long":           {map[string]string{"Retry-After": "99999999"}, 99999999 * time.Second},
		"nonsense":       {map[string]string{"Retry-After": "soon"}, 0},
		"GitHub's limit": {map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(now.Add(time.Minute).Unix(), 10)}, time.Minute},
		"GitLab's limit": {map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": strconv.FormatInt(now.Add(time.Minute).Unix(), 10)}, time.Minute},
		"GitHub's rest":  {map[string]string{"X-RateLimit-Remaining": "7", "X-RateLimit-Reset": strconv.FormatInt(now.Add(time.Minute).Unix(), 10)}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range test.header {
				h.Set(k, v)
			}
			if got := Of(h, now); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// The delay doubles with each failure, and never exceeds its maximum.
func TestFailures(t *testing.T) {
	for n, want := range map[int]time.Duration{-1: 0, 0: 0, 1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second, 1000: 10 * time.Second} {
		if got := Failures(n, time.Second, 10*time.Second); got != want {
			t.Errorf("after %d failures %s, want %s", n, got, want)
		}
	}
}
