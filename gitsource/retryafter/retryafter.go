// Package retryafter says when a failed request is sent again: after a delay that doubles with each failure, or when the server
// asks for it.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Of returns how long a response asks its client to wait: by Retry-After in either of its
// forms, or otherwise until an exhausted rate limit is reset. It is zero if the response does
// not ask for a delay.
func Of(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	// The first headers are those of GitHub and Gitea, the others those of GitLab.
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
		reset, err := strconv.ParseInt(h.Get(prefix+"Reset"), 10, 64)
		if err == nil && h.Get(prefix+"Remaining") == "0" {
			return max(0, time.Unix(reset, 0).Sub(now))
		}
	}
	return 0
}

// Failures returns the delay after a number of consecutive failures: first, doubled with each further failure up to most. Without
// a failure there is none.
func Failures(n int, first, most time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
