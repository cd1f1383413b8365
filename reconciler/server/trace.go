package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Trace handles GET /trace?kind=&namespace=&name=&cluster=, which responds with the origin of
// an object on a cluster as JSON. touched sets the commit that last changed it. Trace must not
// be called after the server has started.
func (s *Server) Trace(touched func(context.Context, *status.Report, *status.Trace, *api.Object)) {
	s.Mount("GET /trace", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		report, _, _ := s.newest()
		if report == nil {
			http.Error(w, "no report yet: the daemon is starting", http.StatusServiceUnavailable)
			return
		}
		q := req.URL.Query()
		for _, name := range []string{"kind", "name", "cluster"} {
			if q.Get(name) == "" {
				http.Error(w, name+": missing", http.StatusBadRequest)
				return
			}
		}
		wanted := api.ObjectName{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name")}
		t, object, err := report.Trace(wanted, q.Get("cluster"))
		var unknown *status.UnknownError
		switch {
		case errors.As(err, &unknown):
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		touched(req.Context(), report, t, object)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(t) // the client may be gone
	}))
}
