// Package githttp serves Git repositories over HTTP with git's http-backend, and creates commits in
// them with the git program, for tests and the demo.
//
//	server := githttp.Serve(t, githttp.Config{Token: "s3cret"})
//	repo := server.Repo(t, "hub.git")
//	first := repo.Commit(t, "main", map[string]string{"ns.yaml": "…"})
//	… clone server.URL("hub.git") …
//	server.Unavailable(true, time.Minute)
//
// New, Create and the methods of Repo need no testing.TB. The git program has to be in the PATH; the
// configuration of the user and the machine is ignored.
package githttp

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config configures a server. The zero value is plain HTTP on a free port of the loopback
// interface without authentication.
type Config struct {
	Root     string // directory with the bare repositories (required by New)
	Addr     string // where to listen; a free port of 127.0.0.1 if empty
	Token    string // accepted as bearer token, and as password of any user
	Username string // accepted with Password
	Password string
	TLS      bool // with a certificate of an authority of its own, see CA
}

// A Server serves the repositories below a directory, for reading and writing.
type Server struct {
	config   Config
	backend  http.Handler
	http     *http.Server
	url      string
	ca       []byte
	finished chan struct{}

	mu         sync.Mutex
	down       bool
	retryAfter time.Duration
	requests   []Request
}

// New starts a server. It ends with Close.
func New(c Config) (*Server, error) {
	if c.Root == "" {
		return nil, errors.New("githttp: Config.Root is empty; name the directory with the repositories")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("githttp: %w", err)
	}
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("githttp: %w", err)
	}
	s := &Server{config: c, backend: backend(git, c.Root), finished: make(chan struct{})}
	s.url = "http://" + listener.Addr().String()
	if c.TLS {
		s.url = "https://" + listener.Addr().String()
		if listener, s.ca, err = secure(listener); err != nil {
			return nil, fmt.Errorf("githttp: %w", err)
		}
	}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that go away are none of ours
	}
	go func() {
		defer close(s.finished)
		_ = s.http.Serve(listener) // always returns an error, after Close
	}()
	return s, nil
}

// backend runs git http-backend for each request. No background gc is left behind
// by a push, and it is not the business of git who owns a directory of tests.
func backend(git, root string) http.Handler {
	settings := []string{"http.receivepack=true", "receive.autogc=false", "gc.auto=0", "safe.directory=*"}
	var args []string
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return &cgi.Handler{
		Path:   git,
		Args:   append(args, "http-backend"),
		Env:    append(isolation(), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1"),
		Dir:    root,
		Stderr: io.Discard, // what matters is in the answer
	}
}

// URL returns the address of a repository, by its path below the root.
func (s *Server) URL(repo string) string { return s.url + "/" + repo }

// CA returns the certificate, in PEM, that clients of a TLS server must trust; nil without TLS.
func (s *Server) CA() []byte { return s.ca }

// Unavailable makes the server respond 503 from now on, or ends that. retryAfter is the
// Retry-After header in whole seconds, which is left out if it is zero.
func (s *Server) Unavailable(down bool, retryAfter time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.retryAfter = down, retryAfter
}

// Close ends the server and all requests.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.finished
	return err
}

// ServeHTTP serves and records one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	s.answer(answer, r)
	s.note(r, answer.status)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	if down, retryAfter := s.state(); down {
		if retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(retryAfter.Seconds()))))
		}
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	}
	if !s.admits(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	// CGI needs the length of what it reads; git sends large pushes without.
	if r.ContentLength < 0 {
		body, err := spool(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer body.Close()
		r.Body, r.ContentLength, r.TransferEncoding = body, body.size, nil
	}
	s.backend.ServeHTTP(w, r)
}

func (s *Server) state() (down bool, retryAfter time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down, s.retryAfter
}

// admits reports whether the request has one of the accepted credentials, or needs none.
func (s *Server) admits(r *http.Request) bool {
	c := s.config
	if c.Token == "" && c.Password == "" {
		return true
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return same(bearer, c.Token)
	}
	user, password, ok := r.BasicAuth()
	return ok && (same(password, c.Token) || same(password, c.Password) && user == c.Username)
}

// same is false for an empty secret, which is one that was not configured.
func same(got, secret string) bool {
	return secret != "" && subtle.ConstantTimeCompare([]byte(got), []byte(secret)) == 1
}

// A spooled body is a temporary file that is removed when it is closed.
type spooled struct {
	*os.File
	size int64
}

func spool(body io.Reader) (spooled, error) {
	file, err := os.CreateTemp("", "githttp-")
	if err != nil {
		return spooled{}, err
	}
	s := spooled{File: file}
	if s.size, err = io.Copy(file, body); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return spooled{}, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s spooled) Close() error { return errors.Join(s.File.Close(), os.Remove(s.Name())) }
