package server

import (
	"context"
	"net"
	"net/http"
	"time"
)

// ServeStarting answers on a listener, until ctx is done, that the daemon is starting, and its
// step. Everybody may read the step: it has nothing of an error. The process is healthy meanwhile, and has metrics. The listener stays open
// for Serve; it must be one of TCP.
func (s *Server) ServeStarting(ctx context.Context, l *net.TCPListener, step string) error {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the daemon is starting: "+step, http.StatusServiceUnavailable)
	})
	starting := &Server{metrics: s.metrics, tls: s.tls, guard: s.guard, routes: map[string]http.Handler{
		"GET /healthz": s.routes["GET /healthz"],
		"GET /metrics": s.routes["GET /metrics"],
		"GET /readyz":  refuse,
		"/":            refuse,
	}}
	if err := starting.Serve(ctx, borrowedListener{l}); err != nil {
		return err
	}
	return l.SetDeadline(time.Time{})
}

// A borrowedListener accepts no more connections once it is closed, and leaves the listener
// that it is made of open.
type borrowedListener struct{ *net.TCPListener }

// Close implements net.Listener.
func (b borrowedListener) Close() error { return b.SetDeadline(time.Unix(1, 0)) }
