package main

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// A wire is what goes to the clusters: counted, and with the moment of every
// answer.
type wire struct {
	counts fleet.Recorder

	mu      sync.Mutex
	answers []answer
}

// An answer is one request that was answered.
type answer struct {
	method, path string
	at           time.Time
}

func (w *wire) record(next http.RoundTripper) http.RoundTripper {
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

// RoundTrip is the function itself.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (w *wire) reset() {
	w.counts.Reset()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = nil
}

// answered returns when a request was answered that has this path, and whether
// one was.
func (w *wire) answered(method, path string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.answers {
		if a.method == method && a.path == path {
			return a.at, true
		}
	}
	return time.Time{}, false
}

// last returns when a path was last answered; zero if it never was.
func (w *wire) last(path string) time.Time {
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
func (w *wire) span(list []object) (first, last time.Time) {
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

// A tally is what was asked of clusters, watches, probes and discovery left out.
type tally struct{ objects, objectWrites, inventoryWrites int }

func (w *wire) tally() tally {
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

// observations is a filter for the look that a probe takes at the size of a
// cluster.
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
