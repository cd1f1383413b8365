package server

import (
	"encoding/json"
	"net/http"
	"runtime/pprof"
)

// A Names lists what there is, for whoever completes a command.
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
	json.NewEncoder(w).Encode(n) // a reader that went away is not our concern
}

// serveGoroutines says what the process is doing: functions and lines, and no
// values.
func serveGoroutines(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	pprof.Lookup("goroutine").WriteTo(w, 1) // a reader that went away is not our concern
}
