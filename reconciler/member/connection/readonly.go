package connection

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// ReadOnly wraps a transport so that nothing can be written through it: it passes reads,
// permission reviews and dry-run patches. Everything else is refused before it is sent. An
// aggregated API server may ignore dryRun: Preview.Try sends it no patch.
func ReadOnly(rt http.RoundTripper) http.RoundTripper { return readOnly{rt} }

type readOnly struct{ next http.RoundTripper } // RoundTrip implements http.RoundTripper.
func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if !reads(req) {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, fmt.Errorf("%s %s is refused: this connection only reads", req.Method, req.URL.Path)
	}
	return r.next.RoundTrip(req)
}

// doors are subresources that give access to a workload, even with a GET.
var doors = []string{"exec", "attach", "portforward", "proxy"}

func reads(req *http.Request) bool {
	switch {
	case req.Header.Get("Upgrade") != "" || leadsInside(strings.Split(req.URL.Path, "/")):
		return false
	case req.Method == http.MethodPost && req.URL.Path == "/"+AccessReviews:
		return true // it stores nothing
	case req.Method == http.MethodPatch:
		return slices.Equal(req.URL.Query()["dryRun"], []string{"All"})
	}
	return req.Method == http.MethodGet || req.Method == http.MethodHead
}

// leadsInside reports whether a path has such a subresource, as opposed to an object of that
// name: it follows pods/NAME, services/NAME or nodes/NAME.
func leadsInside(path []string) bool {
	for i := 2; i < len(path); i++ {
		if slices.Contains(doors, path[i]) && slices.Contains([]string{"pods", "services", "nodes"}, path[i-2]) {
			return true
		}
	}
	return false
}

// AccessReviews is the path at which a cluster says what one may do.
const AccessReviews = "apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
