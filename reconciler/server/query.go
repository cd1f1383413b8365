package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime/pprof"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// MountJSON handles a path with the JSON of a value, or with a status code and an error. It must not
// be called after the server has started.
func (s *Server) MountJSON(path string, answer func(*http.Request) (value any, code int, err error)) {
	s.Mount(path, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		value, code, err := answer(req)
		if err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		respond(w, value)
	}))
}

// missing reports whether a query lacks one of some parameters, and responds which.
func missing(w http.ResponseWriter, q url.Values, names ...string) bool {
	for _, name := range names {
		if q.Get(name) == "" {
			http.Error(w, name+": missing", http.StatusBadRequest)
			return true
		}
	}
	return false
}

// current returns the newest report, which is immutable. If there is none, it responds so and
// returns nil.
func (s *Server) current(w http.ResponseWriter) *status.Report {
	report, _, _ := s.newest()
	if report == nil {
		http.Error(w, "no report yet: the daemon is starting", http.StatusServiceUnavailable)
	}
	return report
}

func (s *Server) serveExplain(w http.ResponseWriter, req *http.Request) {
	s.aboutPlacement(w, req, func(r *status.Report, placement, cluster string) (any, error) { return r.Explain(placement, cluster) })
}

func (s *Server) serveTree(w http.ResponseWriter, req *http.Request) {
	s.aboutPlacement(w, req, func(r *status.Report, placement, cluster string) (any, error) { return r.Tree(placement, cluster) })
}

func (s *Server) aboutPlacement(w http.ResponseWriter, req *http.Request, answer func(r *status.Report, placement, cluster string) (any, error)) {
	report, query := s.current(w), req.URL.Query()
	switch {
	case report == nil:
	case query.Get("placement") == "":
		http.Error(w, "placement: missing; write ?placement=crp/NAME or ?placement=rp/NAMESPACE/NAME", http.StatusBadRequest)
	default:
		a, err := answer(report, query.Get("placement"), query.Get("cluster"))
		if err != nil {
			http.Error(w, err.Error(), codeOf(err))
			return
		}
		respond(w, a)
	}
}

// MountTrace handles GET /trace?kind=&namespace=&name=&cluster=, which responds with the origin of
// an object on a cluster as JSON; without a cluster on the only one that has it. touched sets the commit that last changed it, and may ask the
// member. MountTrace must not be called after the server has started.
func (s *Server) MountTrace(touched func(context.Context, *status.Report, *status.Trace, *api.Object)) {
	s.Mount("GET /trace", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		report, q := s.current(w), req.URL.Query()
		if report == nil || missing(w, q, "kind", "name") {
			return
		}
		wanted := api.ObjectName{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name")}
		t, object, err := report.Trace(wanted, q.Get("cluster"))
		if err != nil {
			http.Error(w, err.Error(), codeOf(err))
			return
		}
		touched(req.Context(), report, t, object)
		respond(w, t)
	}))
}

// Containment says whether the history of one commit has another.
type Containment struct {
	Contains bool `json:"contains"`
}

// StatusUnknownCommit is the status of a response about a commit that the daemon does not have, or not yet.
const StatusUnknownCommit = http.StatusConflict

// ErrUnknownCommit is returned for a commit that the daemon does not have.
var ErrUnknownCommit = errors.New("the commit is not in the clone of the daemon")

// MountContains handles GET /contains?head=HASH&commit=HASH. It responds with JSON that says whether
// the history of head has the commit, whose hash may be abbreviated. If contains returns
// ErrUnknownCommit, the status is StatusUnknownCommit. MountContains must not be called after the server has started.
func (s *Server) MountContains(contains func(ctx context.Context, head, commit string) (bool, error)) {
	s.Mount("GET /contains", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		switch {
		case missing(w, q, "head", "commit"):
			return
		case len(q.Get("commit")) < 7:
			http.Error(w, "commit: 7 digits are needed at least", http.StatusBadRequest)
			return
		}
		yes, err := contains(req.Context(), q.Get("head"), q.Get("commit"))
		switch {
		case errors.Is(err, ErrUnknownCommit):
			http.Error(w, err.Error(), StatusUnknownCommit)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		respond(w, Containment{yes})
	}))
}

// A Names lists existing names, for shell completion.
type Names struct {
	// Placements are crp/NAME and rp/NAMESPACE/NAME.
	Placements []string `json:"placements"`
	Clusters   []string `json:"clusters"`
}

func (s *Server) serveNames(w http.ResponseWriter, _ *http.Request) {
	n := Names{Placements: []string{}, Clusters: []string{}}
	if report, _, _ := s.newest(); report != nil {
		for _, d := range report.Details {
			n.Placements = append(n.Placements, d.Placement)
		}
		for _, c := range report.Clusters {
			n.Clusters = append(n.Clusters, c.Name)
		}
	}
	respond(w, n)
}

// serveGoroutines returns the stacks of all goroutines, without values.
func serveGoroutines(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	pprof.Lookup("goroutine").WriteTo(w, 1) // the client may be gone
}
