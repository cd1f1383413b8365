package fleet

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// A Recorder records every request that passes through it. The zero value is ready. It may wrap
// several configurations, whose requests are counted together.
type Recorder struct {
	mu       sync.Mutex
	requests []Request
}

// A Request is a recorded request. It is recorded when its response begins, so that an open
// watch is included.
type Request struct {
	Time        time.Time // when it was sent
	Host        string    // host and port of the cluster
	Method      string
	Path        string
	Query       url.Values
	ContentType string // of the request's body; "application/apply-patch+yaml" is a server-side apply
	Status      int    // of the answer; zero if none came
}

func (q Request) String() string {
	text := q.Method + " " + q.Path
	if len(q.Query) > 0 {
		text += "?" + q.Query.Encode()
	}
	if q.ContentType != "" {
		text += " (" + q.ContentType + ")"
	}
	return fmt.Sprintf("%s %d", text, q.Status)
}

// Wrap returns a copy of config whose clients are recorded.
func (r *Recorder) Wrap(config *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(config)
	wrapped.Wrap(r.RoundTripper)
	return wrapped
}

// RoundTripper records what goes through next.
func (r *Recorder) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		noted := Request{
			Time:        time.Now(),
			Host:        request.URL.Host,
			Method:      request.Method,
			Path:        request.URL.Path,
			Query:       request.URL.Query(),
			ContentType: request.Header.Get("Content-Type"),
		}
		response, err := next.RoundTrip(request)
		if err == nil {
			noted.Status = response.StatusCode
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, noted)
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// Requests returns the requests since the beginning or the last Reset, in the order of their
// responses, without those that match a filter.
func (r *Recorder) Requests(drop ...func(Request) bool) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.requests), func(q Request) bool {
		return slices.ContainsFunc(drop, func(drops func(Request) bool) bool { return drops(q) })
	})
}

// Objects returns the requests for objects: all but watches, probes and
// discovery.
func (r *Recorder) Objects() []Request { return r.Requests(Watches, Probes, Discovery) }

// Reset drops the recorded requests.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// Watches is a filter for open watches, but not for the list before a watch.
func Watches(q Request) bool {
	watch := q.Query.Get("watch")
	return watch == "true" || watch == "1"
}

// Probes is a filter for requests for the health and version of a cluster.
func Probes(q Request) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(q.Path, "/"), "/")
	return slices.Contains([]string{"readyz", "livez", "healthz", "version"}, first)
}

// Discovery is a filter for requests for the kinds of a cluster.
func Discovery(q Request) bool {
	parts := strings.Split(strings.Trim(q.Path, "/"), "/")
	switch parts[0] {
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	default:
		return parts[0] == "openapi"
	}
}
