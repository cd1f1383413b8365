package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/server/access"
)

// A leadership says whether this replica leads.
type leadership struct {
	// check returns an error that says who leads, unless this replica does.
	check func() error
	// certain reports whether this replica leads and no other one may.
	certain func() bool
}

// SetLeader makes the server refuse, with the error of check, what only the leader answers: all except the health checks, the
// metrics, the discovery of the Kubernetes API and what is said about the process. The gauges of the fleet are exported while certain reports that no other replica
// may lead. Without it the server answers everything. SetLeader must not be called after the server has started.
func (s *Server) SetLeader(check func() error, certain func() bool) {
	s.leader = leadership{check, certain}
}

// errStandsBy is what everybody may read.
var errStandsBy = errors.New("this replica stands by: another one leads")

// ofLeader refuses requests that only the leader answers, unless this replica leads.
func (s *Server) ofLeader(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		path := req.URL.Path
		ofKubernetes, discovery := kubernetesPath(path)
		if path == "/healthz" || path == "/readyz" || path == "/metrics" || strings.HasPrefix(path, "/debug/") || discovery || s.leader.check == nil {
			next.ServeHTTP(w, req)
			return
		}
		err := s.leader.check()
		if err != nil && access.IsOpen(path) {
			err = errStandsBy
		}
		switch {
		case err == nil:
			next.ServeHTTP(w, req)
		case ofKubernetes:
			refuseKubernetes(w, err)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}

// kubernetesPath reports whether a path is one of the Kubernetes API, and whether it is one of its discovery. Clients show the message
// of a Status only, and not that of a failed discovery, without which they do not ask for objects.
func kubernetesPath(path string) (is, discovery bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "openapi", "version":
		return true, true
	case "api":
		return true, len(parts) <= 2 // with a version
	case "apis":
		return true, len(parts) <= 3 // with a group and a version
	}
	return false, false
}

func refuseKubernetes(w http.ResponseWriter, why error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	json.NewEncoder(w).Encode(&metav1.Status{ // the client may be gone
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable,
		Reason: metav1.StatusReasonServiceUnavailable, Message: why.Error(),
	})
}
