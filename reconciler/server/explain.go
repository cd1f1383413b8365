package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

func (s *Server) serveExplain(w http.ResponseWriter, req *http.Request) {
	s.aboutPlacement(w, req, func(r *status.Report, placement, cluster string) (any, error) { return r.Explain(placement, cluster) })
}

func (s *Server) serveTree(w http.ResponseWriter, req *http.Request) {
	s.aboutPlacement(w, req, func(r *status.Report, placement, cluster string) (any, error) { return r.Tree(placement, cluster) })
}

// aboutPlacement responds from the newest report, which is immutable.
func (s *Server) aboutPlacement(w http.ResponseWriter, req *http.Request, answer func(r *status.Report, placement, cluster string) (any, error)) {
	report, _, _ := s.newest()
	if report == nil {
		http.Error(w, "no report yet: the daemon is starting", http.StatusServiceUnavailable)
		return
	}
	query := req.URL.Query()
	if query.Get("placement") == "" {
		http.Error(w, "placement: missing; write ?placement=crp/NAME or ?placement=rp/NAMESPACE/NAME", http.StatusBadRequest)
		return
	}
	a, err := answer(report, query.Get("placement"), query.Get("cluster"))
	var unknown *status.UnknownError
	switch {
	case errors.As(err, &unknown):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(a) // the client may be gone
	}
}
