// Package server serves the newest report over HTTP, with health checks and metrics. Handlers
// for other data, such as the history, are mounted by the caller. It sends no request to a
// member itself; only the function given to MountTrace does.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Server serves the newest report. It is safe for concurrent use.
type Server struct {
	mu     sync.Mutex
	report *status.Report
	at     time.Time // when the report was published
	// number counts the reports; it is the version of the response.
	number uint64
	// next is closed when there is a newer report.
	next chan struct{}

	// routes are the handlers by pattern.
	routes  map[string]http.Handler
	metrics *httpMetrics
	// registry has all metrics; nil for none.
	registry *Registry
	fleet    atomic.Pointer[fleetIdentity] // nil until it is known
	leader   leadership

	tls   *tls.Config
	guard func(http.Handler) http.Handler
	// maxConnections is how many connections are open at the same time.
	maxConnections int
}

// New returns a server without a report. registry may be nil for no metrics.
func New(registry *Registry) *Server {
	s := &Server{next: make(chan struct{}), metrics: newHTTPMetrics(), registry: registry, maxConnections: MostConnections}
	metrics := http.NotFoundHandler()
	if registry != nil {
		registry.AddSources(&collector{report: s.reportToExport, now: time.Now})
		registry.MustRegister(s.metrics.collectors()...)
		metrics = withWriteDeadline(scrapeTimeout, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes}))
	}
	s.routes = map[string]http.Handler{
		"GET /report":           http.HandlerFunc(s.serveReport),
		"GET /explain":          http.HandlerFunc(s.serveExplain),
		"GET /tree":             http.HandlerFunc(s.serveTree),
		"GET /names":            http.HandlerFunc(s.serveNames),
		"GET /debug/goroutines": http.HandlerFunc(serveGoroutines),
		"GET /healthz":          http.HandlerFunc(serveHealth),
		"GET /readyz":           http.HandlerFunc(s.serveReady),
		"GET /metrics":          metrics,
	}
	return s
}

// Mount adds a handler for a path. It must not be called after the server has started.
func (s *Server) Mount(path string, h http.Handler) { s.routes[path] = h }

// SetFleet sets the name of the fleet, which all metrics have as a label, and the repository that it follows. Requests for
// another fleet are refused.
func (s *Server) SetFleet(name, source string) {
	if s.registry != nil {
		s.registry.setFleet(name)
	}
	s.fleet.Store(&fleetIdentity{name, source})
}

// Protect puts a guard in front of all handlers, and uses TLS if config is not nil. It must not
// be called after the server has started.
func (s *Server) Protect(config *tls.Config, guard func(http.Handler) http.Handler) {
	s.tls, s.guard = config, guard
}

// LimitConnections sets how many connections are open at the same time. Those that wait for a request are closed first, the
// longest waiting one before others. It must not be called after the server has started.
func (s *Server) LimitConnections(most int) { s.maxConnections = most }

// Handler returns the handler of all paths:
//
//	GET /report         the whole report as JSON. With ?after=N it waits up to
//	                    half a minute for a report newer than number N. The
//	                    header Gitfleet-Report has the number of the report, and
//	                    Age its age in seconds. With ?placement=crp/NAME or
//	                    rp/NAMESPACE/NAME only the part about that placement,
//	                    with ?cluster=NAME only the part about that cluster.
//	GET /tree           a placement, its clusters and their objects, as JSON:
//	                    ?placement=crp/NAME or rp/NAMESPACE/NAME, and &cluster=NAME
//	                    for one cluster only
//	GET /explain        why a placement goes to its clusters, as JSON:
//	                    ?placement=crp/NAME or rp/NAMESPACE/NAME, and &cluster=NAME
//	                    for one cluster only
//	GET /names          the names of placements and clusters, as JSON
//	GET /debug/goroutines   the stacks of all goroutines, as text
//	GET /healthz        200 while the process works
//	GET /readyz         200 once there is a commit in force, on the leader
//	GET /metrics        metrics for Prometheus
//
// and the mounted handlers. While another replica leads, only the last three and /debug are answered; see SetLeader.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, h := range s.routes {
		mux.Handle(path, s.metrics.measured(path, h))
	}
	return s.ofFleet(s.ofLeader(mux))
}

// Patterns returns the sorted patterns of all handlers: a path, with a method before it unless
// all methods are handled.
func (s *Server) Patterns() []string { return slices.Sorted(maps.Keys(s.routes)) }

// Guarded returns Handler behind the guard, if there is one, and behind limits for all clients.
func (s *Server) Guarded() http.Handler {
	guard := s.guard
	if guard == nil {
		guard = func(next http.Handler) http.Handler { return next }
	}
	return limited(guard, s.Handler())
}

// NumberHeader is the header with the number of a report.
const NumberHeader = "Gitfleet-Report"

const longestWait = 30 * time.Second

func (s *Server) serveReport(w http.ResponseWriter, req *http.Request) {
	placement, cluster := req.URL.Query().Get("placement"), req.URL.Query().Get("cluster")
	if placement != "" && cluster != "" {
		http.Error(w, "ask for a placement or for a cluster, not for both", http.StatusBadRequest)
		return
	}
	s.servePart(w, req, func(r *status.Report) (any, error) {
		switch {
		case placement != "":
			return r.Only(placement)
		case cluster != "":
			return r.On(cluster)
		}
		return r.Whole(), nil
	})
}

// MountReport serves a value computed from the newest report at a path, with ?after=N as for
// /report. It must not be called after the server has started.
func (s *Server) MountReport(path string, part func(*status.Report) any) {
	s.Mount(path, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.servePart(w, req, func(r *status.Report) (any, error) { return part(r), nil })
	}))
}

// servePart responds with part of the newest report, or of a report newer than ?after=N.
func (s *Server) servePart(w http.ResponseWriter, req *http.Request, part func(*status.Report) (any, error)) {
	var after uint64
	if v := req.URL.Query().Get("after"); v != "" {
		var err error
		if after, err = strconv.ParseUint(v, 10, 64); err != nil {
			http.Error(w, "after: not a number", http.StatusBadRequest)
			return
		}
	}
	report, number, next := s.newest()
	// a number from before a restart may be larger than the present one; then the response is
	// sent at once
	for deadline := time.After(longestWait); number == after || report == nil; report, number, next = s.newest() {
		select {
		case <-next:
			continue
		case <-req.Context().Done():
			http.Error(w, "the daemon is stopping", http.StatusServiceUnavailable)
			return
		case <-deadline:
		}
		break
	}
	if report == nil {
		http.Error(w, "no report yet: the daemon is starting", http.StatusServiceUnavailable)
		return
	}
	answer, err := part(report)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set(NumberHeader, strconv.FormatUint(number, 10))
	w.Header().Set("Age", strconv.Itoa(int(s.age().Seconds())))
	respond(w, answer)
}

func serveHealth(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) }

func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	if s.leader.check != nil && s.leader.check() != nil {
		http.Error(w, errStandsBy.Error(), http.StatusServiceUnavailable)
		return
	}
	report, _, _ := s.newest()
	if report == nil || report.Source.InForce.Hash == "" {
		http.Error(w, "no commit is in force yet", http.StatusServiceUnavailable)
		return
	}
	w.Write([]byte("ok\n"))
}

// Serve serves on a listener until ctx is done. Responses that are being sent then are
// completed, if the clients read them.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: perConnection(s.Guarded()), ConnContext: withConnection, TLSConfig: s.tls, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			srv.Close() // clients that have not read their response by now are disconnected
		}
	})
	serve := srv.Serve
	if s.tls != nil {
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	if err := serve(limitConnections(l, s.maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	<-ended
	return nil
}
