package member

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// ReadOnly wraps a transport so that nothing can be written through it: it lets
// pass what reads, reviews of permissions, and patches that the server only tries.
// Everything else is refused before it is sent.
func ReadOnly(rt http.RoundTripper) http.RoundTripper { return readOnly{rt} }

type readOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if !reads(req) {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, fmt.Errorf("%s %s is refused: this connection only reads", req.Method, req.URL.Path)
	}
	return r.next.RoundTrip(req)
}

// doors are subresources through which one gets into a workload, with a GET too.
var doors = []string{"exec", "attach", "portforward", "proxy"}

func reads(req *http.Request) bool {
	switch {
	case req.Header.Get("Upgrade") != "" || leadsInside(strings.Split(req.URL.Path, "/")):
		return false
	case req.Method == http.MethodPost && req.URL.Path == "/"+accessReviews:
		return true // it stores nothing
	case req.Method == http.MethodPatch:
		return slices.Equal(req.URL.Query()["dryRun"], []string{"All"})
	}
	return req.Method == http.MethodGet || req.Method == http.MethodHead
}

// leadsInside tells such a subresource from an object that has its name: it
// comes after pods/NAME, services/NAME or nodes/NAME.
func leadsInside(path []string) bool {
	for i := 2; i < len(path); i++ {
		if slices.Contains(doors, path[i]) && slices.Contains([]string{"pods", "services", "nodes"}, path[i-2]) {
			return true
		}
	}
	return false
}
