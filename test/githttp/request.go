package githttp

import (
	"net/http"
	"slices"
	"strings"
)

// A Request is a request that a Server has served.
type Request struct {
	Repo    string // path of the repository below the root, as in URL
	Service string // "git-upload-pack" (reading), "git-receive-pack" (writing), or empty
	Refs    bool   // asked for the list of refs: a poll, or the beginning of a fetch or push
	Status  int
}

// Poll is a filter for requests for the references of a repository, the only requests of a
// client that finds nothing new.
func Poll(q Request) bool { return q.Refs && q.Service == "git-upload-pack" }

// Fetch is a filter for requests for objects. (A client that speaks version 2 of
// the protocol, as the git command does, asks for refs in the same way; one that
// does not find anything new then has one Fetch, too.)
func Fetch(q Request) bool { return !q.Refs && q.Service == "git-upload-pack" }

// Push is a filter for requests that send objects.
func Push(q Request) bool { return !q.Refs && q.Service == "git-receive-pack" }

// Requests returns all requests so far that match the filters, in the order of their responses.
func (s *Server) Requests(keep ...func(Request) bool) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(q Request) bool {
		return slices.ContainsFunc(keep, func(keeps func(Request) bool) bool { return !keeps(q) })
	})
}

// Count returns the number of requests for a repository that match the filters.
func (s *Server) Count(repo string, keep ...func(Request) bool) int {
	n := 0
	for _, q := range s.Requests(keep...) {
		if q.Repo == repo {
			n++
		}
	}
	return n
}

func (s *Server) note(r *http.Request, status int) {
	q := parse(r)
	q.Status = status
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, q)
}

// parse reads the two forms of addresses that smart HTTP has:
// REPO/info/refs?service=S and REPO/S.
func parse(r *http.Request) Request {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if repo, ok := strings.CutSuffix(path, "/info/refs"); ok {
		return Request{Repo: repo, Service: r.URL.Query().Get("service"), Refs: true}
	}
	for _, service := range []string{"git-upload-pack", "git-receive-pack"} {
		if repo, ok := strings.CutSuffix(path, "/"+service); ok {
			return Request{Repo: repo, Service: service}
		}
	}
	return Request{Repo: path}
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap supports http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
