// Package webhook serves the webhooks of a forge: a push causes a poll of the repository, and a
// change of a pull request or an issue a new list of those that gitfleet follows.
//
// The content of a request only decides whether it is ignored. A request only causes gitfleet to
// ask the repository or the forge again. So a forged or repeated request can do no more than cause
// a poll, and a lost one delays the poll by at most the polling interval.
package webhook

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Config has the secret of the webhook and the functions to call.
type Config struct {
	// Secret returns the secret with which the forge signs. It is called for each request, so
	// that the secret can be rotated. An error or an empty secret refuses every request.
	Secret func() (string, error)
	// Wake is called after a push. It must not block.
	Wake func()
	// Follows, if not nil, reports whether a reference such as refs/heads/main is tracked.
	// Pushes to other references are acknowledged and ignored.
	Follows func(ref string) bool
	// WakePullRequests is called when a pull request or an issue has changed. It must not block;
	// nil ignores both.
	WakePullRequests func()
	// FollowsIssue, if not nil, reports whether an issue with some labels and a body is followed;
	// requests about others are acknowledged and ignored.
	FollowsIssue func(labels []string, body string) bool
	// Received, if not nil, is called after each request with its result, such as Woke.
	Received func(result string)
}

// The results of a request that are passed to Config.Received.
const (
	Woke         = "woke"
	Ignored      = "ignored"
	Unauthorized = "unauthorized"
	Malformed    = "malformed"
	Unavailable  = "unavailable"
)

// maxBody is the maximum size of a request body in bytes.
const maxBody = 1 << 20

// readTime is the maximum time for a request to arrive, and maxReading the number of requests
// whose bodies are read at the same time: anybody may send them, and what they say is not known to
// be true before they are in memory.
const (
	readTime   = 10 * time.Second
	maxReading = 8
)

// New returns the handler. It verifies the signature of a request before it parses the request.
func New(c Config) http.Handler {
	reading := make(chan struct{}, maxReading)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result, status := Unavailable, http.StatusServiceUnavailable
		select {
		case reading <- struct{}{}:
			result, status = c.serve(w, r)
			<-reading
		default:
			w.Header().Set("Retry-After", "1")
		}
		if c.Received != nil {
			c.Received(result)
		}
		http.Error(w, result, status)
	})
}

func (c Config) serve(w http.ResponseWriter, r *http.Request) (string, int) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return Malformed, http.StatusMethodNotAllowed
	}
	secret, err := c.Secret()
	if err != nil || secret == "" {
		return Unavailable, http.StatusServiceUnavailable
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime)) // not every ResponseWriter supports deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return Malformed, http.StatusRequestEntityTooLarge
	}
	if err != nil {
		return Malformed, http.StatusBadRequest
	}
	if !authentic(r.Header, body, secret) {
		return Unauthorized, http.StatusUnauthorized
	}
	wake := c.Wake
	if about, is := aboutPullRequest(body); is {
		wake = c.WakePullRequests
		if about != nil && c.FollowsIssue != nil && !c.FollowsIssue(about.labels, about.body) {
			wake = nil
		}
	} else if !c.mayBeTracked(r.Header, body) {
		wake = nil
	}
	if wake == nil {
		return Ignored, http.StatusOK
	}
	wake()
	return Woke, http.StatusAccepted
}

// mayBeTracked reports whether a request can be about a push to the tracked reference, which is
// also the case if the request names no reference.
func (c Config) mayBeTracked(h http.Header, body []byte) bool {
	if isPing(h) {
		return false
	}
	ref, ok := pushedRef(body)
	return !ok || c.Follows == nil || c.Follows(ref)
}
