package server

import (
	"encoding/json"
	"net/http"
	"runtime/pprof"
)

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
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(n) // the client may be gone
}

// serveGoroutines returns the stacks of all goroutines, without values.
func serveGoroutines(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	pprof.Lookup("goroutine").WriteTo(w, 1) // the client may be gone
}
