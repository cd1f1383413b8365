package server

import (
	"fmt"
	"net/http"
)

// FleetHeader and SourceHeader are headers of a request: the name of the fleet that the client means, and the repository that it
// follows. If the name is empty, the repository decides.
const FleetHeader, SourceHeader = "Gitfleet-Fleet", "Gitfleet-Source"

// A fleetIdentity is the name of a fleet and the repository that it follows.
type fleetIdentity struct{ name, source string }

// DescribeFleet names a fleet for people. The name may be empty.
func DescribeFleet(name, source string) string {
	if name == "" {
		return "the fleet of " + source
	}
	return fmt.Sprintf("the fleet %q of %s", name, source)
}

// ofFleet refuses requests for another fleet before they do anything.
func (s *Server) ofFleet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, source := req.Header.Get(FleetHeader), req.Header.Get(SourceHeader)
		if is := s.fleet.Load(); is != nil && (name != "" && name != is.name || name == "" && source != "" && source != is.source) {
			http.Error(w, DescribeFleet(is.name, is.source), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, req)
	})
}
