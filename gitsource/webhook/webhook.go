// Package webhook wakes whoever polls a repository when its forge says that
// something was pushed, and whoever looks at pull requests when one has changed.
//
// A webhook carries no facts here, only a hint: what is true is asked of the
// remote. So a forged or repeated one can do no more than cause a poll, and one
// that never arrives costs no more than the polling interval.
package webhook

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Config says whom to believe and whom to wake.
type Config struct {
	// Secret answers what the forge signs with; it is asked at each request,
	// so that it can be rotated. An error or an empty secret refuses all.
	Secret func() (string, error)
	// Wake is called when something was pushed. It must not block.
	Wake func()
	// Follows, if not nil, tells whether a reference such as refs/heads/main
	// is of interest; pushes to others are acknowledged and ignored.
	Follows func(ref string) bool
	// WakePullRequests is called when something happened to a pull request. It must not
	// block; nil if nobody looks at them.
	WakePullRequests func()
	// Received, if not nil, is told of each request by one of the Results.
	Received func(result string)
}

// Results of a request.
const (
	Woke         = "woke"
	Ignored      = "ignored"
	Unauthorized = "unauthorized"
	Malformed    = "malformed"
	Unavailable  = "unavailable"
)

// maxBody bounds what is read of a request.
const maxBody = 1 << 20

// readTime bounds how long a request may take to arrive.
const readTime = 10 * time.Second

// New answers the handler. It reads nothing of a request's content before the
// signature over all of it was checked.
func New(c Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result, status := c.serve(w, r)
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
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime)) // not every writer can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return Malformed, http.StatusRequestEntityTooLarge
	}
	if err != nil {
		return Malformed, http.StatusBadRequest
	}
	if !authentic(r.Header, body, secret) {
		return Unauthorized, http.StatusUnauthorized
	}
	wake := c.Wake
	if isPullRequest(body) {
		wake = c.WakePullRequests
	} else if !c.wanted(r.Header, body) {
		wake = nil
	}
	if wake == nil {
		return Ignored, http.StatusOK
	}
	wake()
	return Woke, http.StatusAccepted
}

// wanted tells whether a request is about what is followed. What cannot be
// understood could be.
func (c Config) wanted(h http.Header, body []byte) bool {
	if isPing(h) {
		return false
	}
	ref, ok := pushedRef(body)
	return !ok || c.Follows == nil || c.Follows(ref)
}
