package main

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// A requestLog records the requests to the clusters, with the time of every response.
type requestLog struct {
	counts fleet.Recorder

	mu      sync.Mutex
	answers []answer
}

// An answer is the response to one request.
type answer struct {
	method, path string
	at           time.Time
}

func (w *requestLog) record(next http.RoundTripper) http.RoundTripper {
	counted := w.counts.RoundTripper(next)
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := counted.RoundTrip(request)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.answers = append(w.answers, answer{request.Method, request.URL.Path, time.Now()})
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (w *requestLog) reset() {
	w.counts.Reset()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = nil
}

// answered returns when a request with this path was answered, and whether one was.
func (w *requestLog) answered(method, path string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.answers {
		if a.method == method && a.path == path {
			return a.at, true
		}
	}
	return time.Time{}, false
}

// last returns when a request with a path was last answered; zero if none was.
func (w *requestLog) last(path string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var at time.Time
	for _, a := range w.answers {
		if a.path == path {
			at = a.at
		}
	}
	return at
}

// span returns when the first and the last of some objects were answered.
func (w *requestLog) span(list []object) (first, last time.Time) {
	paths := map[string]bool{}
	for _, o := range list {
		paths[o.path] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.answers {
		if a.method == http.MethodPatch && paths[a.path] {
			if first.IsZero() {
				first = a.at
			}
			last = a.at
		}
	}
	return first, last
}

// A tally counts requests to clusters, except watches, probes and discovery.
type tally struct{ objects, objectWrites, inventoryWrites int }

func (w *requestLog) tally() tally {
	var t tally
	for _, q := range w.counts.Requests(fleet.Watches, fleet.Probes, fleet.Discovery, observations) {
		inventory := strings.Contains(q.Path, "/gitfleet-system")
		t.objects++
		switch {
		case q.Method == http.MethodGet:
		case inventory:
			t.inventoryWrites++
		default:
			t.objectWrites++
		}
	}
	return t
}

// observations matches a probe's requests that count nodes, pods and namespaces.
func observations(q fleet.Request) bool {
	if q.Method != http.MethodGet || q.Query.Get("labelSelector") != "" {
		return false
	}
	switch q.Path {
	case "/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces":
		return true
	}
	return false
}
