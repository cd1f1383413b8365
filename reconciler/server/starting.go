package server

import (
	"context"
	"net"
	"net/http"
	"time"
)

// ServeStarting serves on a listener until ctx is done. It responds that the daemon is
// starting, with the current step, which contains no error text and may be read by everybody.
// Meanwhile the process is healthy and serves its metrics. The listener stays open for Serve;
// it must be a TCP listener.
func (s *Server) ServeStarting(ctx context.Context, l *net.TCPListener, step string) error {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the daemon is starting: "+step, http.StatusServiceUnavailable)
	})
	starting := &Server{metrics: s.metrics, tls: s.tls, guard: s.guard, maxConnections: s.maxConnections, routes: map[string]http.Handler{
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

// A borrowedListener accepts no more connections once it is closed, but does not close the
// listener that it wraps.
type borrowedListener struct{ *net.TCPListener }

// Close implements net.Listener.
func (b borrowedListener) Close() error { return b.SetDeadline(time.Unix(1, 0)) }
