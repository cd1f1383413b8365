package server

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// bodyTimeout is the time within which the body of a request must arrive, whether the
	// request is accepted or not.
	bodyTimeout = 10 * time.Second
	// maxHeaderBytes has room for tokens, certificates and groups of users. Headers are read before a request counts.
	maxHeaderBytes = 64 << 10
	// maxUnidentified is how many requests the guard may be identifying at the same time. To
	// identify a client can mean to ask the API server of the management cluster.
	maxUnidentified = 64
	// maxScrapes is how many clients may read the metrics at the same time, and scrapeTimeout
	// how long one may take to read them.
	maxScrapes    = 8
	scrapeTimeout = 30 * time.Second
)

// limited returns a handler behind a guard, and limits what requests may cost before the guard has
// let them pass. What exceeds a limit is refused with Retry-After. The checks of a kubelet are always answered: otherwise
// whoever can reach the address could have the daemon restarted.
func limited(guard func(http.Handler) http.Handler, next http.Handler) http.Handler {
	type key struct{}
	slots := make(chan struct{}, maxUnidentified)
	guarded := guard(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Context().Value(key{}).(func())()
		next.ServeHTTP(w, req)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.ContentLength != 0 {
			// The deadline also ends the wait for a body that no handler reads. Not every
			// ResponseWriter supports deadlines.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		if isCheck(req) {
			guarded.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), key{}, func() {})))
			return
		}
		select {
		case slots <- struct{}{}:
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests are waiting for authentication; try again", http.StatusServiceUnavailable)
			return
		}
		release := sync.OnceFunc(func() { <-slots })
		defer release()
		guarded.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), key{}, release)))
	})
}

// withWriteDeadline gives clients of a handler until a timeout to read the response.
func withWriteDeadline(timeout time.Duration, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout)) // not every ResponseWriter supports deadlines
		h.ServeHTTP(w, req)
	})
}
