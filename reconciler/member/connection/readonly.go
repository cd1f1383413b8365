package connection

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// ReadOnly wraps a transport so that it cannot be used to write: it passes on reads, permission
// reviews, and dry runs of patches and creations, and refuses everything else before it is sent.
// An aggregated API server may ignore dryRun, so that a Preview requests no dry run of it.
func ReadOnly(rt http.RoundTripper) http.RoundTripper { return readOnly{rt} }

type readOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isRead(req) {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, fmt.Errorf("%s %s is refused: this connection only reads", req.Method, req.URL.Path)
	}
	return r.next.RoundTrip(req)
}

// accessSubresources give access to a workload, even with GET, or, whether they store something or not, credentials or an eviction.
var accessSubresources = []string{"exec", "attach", "portforward", "proxy", "token", "eviction", "binding"}

// isRead reports whether a request stores nothing and gives no access to a workload.
func isRead(req *http.Request) bool {
	switch {
	case req.Header.Get("Upgrade") != "" || hasAccessSubresource(strings.Split(req.URL.Path, "/")):
		return false
	case req.Method == http.MethodPost && req.URL.Path == "/"+AccessReviews:
		return true // a review stores nothing
	case req.Method == http.MethodPatch, req.Method == http.MethodPost:
		return slices.Equal(req.URL.Query()["dryRun"], []string{"All"})
	}
	return req.Method == http.MethodGet || req.Method == http.MethodHead
}

// hasAccessSubresource reports whether a path has such a subresource, and not an object of that name: it follows pods/NAME, services/NAME, nodes/NAME or serviceaccounts/NAME.
func hasAccessSubresource(path []string) bool {
	for i := 2; i < len(path); i++ {
		if slices.Contains(accessSubresources, path[i]) && slices.Contains([]string{"pods", "services", "nodes", "serviceaccounts"}, path[i-2]) {
			return true
		}
	}
	return false
}

// AccessReviews is the path of permission reviews (SelfSubjectAccessReview).
const AccessReviews = "apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
