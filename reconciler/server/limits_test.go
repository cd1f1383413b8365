package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// serveOn serves a handler on a listener of connections in memory, and returns a function that
// opens one.
func serveOn(t *testing.T, s *Server) func() net.Conn {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func() net.Conn {
		ours, theirs := net.Pipe()
		l.conns <- theirs
		return ours
	}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A body that does not arrive keeps no connection open, also if the request was refused, or if
// nobody reads the body.
func TestSlowBodiesEndTheirConnections(t *testing.T) {
	for name, refused := range map[string]bool{"refused": true, "accepted": false} {
		for _, request := range []string{"POST /report", "GET /healthz", "POST /nowhere", "PUT /healthz"} {
			t.Run(name+" "+request, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := New(nil)
					s.Protect(nil, func(next http.Handler) http.Handler {
						if !refused {
							return next
						}
						return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) })
					})
					begin, conn := time.Now(), serveOn(t, s)()
					defer conn.Close()
					fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nslow", request)
					if _, err := io.Copy(io.Discard, conn); err != nil || time.Since(begin) > bodyTimeout+time.Second {
						t.Errorf("the connection was open for %s: %v", time.Since(begin), err)
					}
				})
			})
		}
	}
}

// Clients that nobody has identified yet cannot use the daemon up. Those that are known are not
// counted.
func TestUnidentifiedRequestsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, serve := make(chan struct{}), make(chan struct{})
		h := limited(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path != "/healthz" {
					<-known
				}
				next.ServeHTTP(w, req)
			})
		}, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			if req.URL.Path != "/healthz" {
				<-serve
			}
		}))
		askFor := func(path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w
		}
		ask := func() *httptest.ResponseRecorder { return askFor("/report") }
		var asking sync.WaitGroup
		for range maxUnidentified {
			asking.Go(func() { ask() })
		}
		synctest.Wait()
		if w := ask(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("got %d", w.Code)
		}
		if w := askFor("/healthz"); w.Code != http.StatusOK {
			t.Errorf("the check of a kubelet got %d", w.Code)
		}
		close(known) // now all are being served, and others can be identified
		synctest.Wait()
		asking.Go(func() {
			if w := ask(); w.Code != http.StatusOK {
				t.Errorf("got %d, although nobody waits to be identified", w.Code)
			}
		})
		synctest.Wait()
		close(serve)
		asking.Wait()
	})
}

// Headers, which are read before any other limit, are bounded.
func TestLargeHeadersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := serveOn(t, New(nil))()
		defer conn.Close()
		go fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: %s\r\n\r\n", strings.Repeat("a", 2*maxHeaderBytes))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got %v, %v", resp, err)
		}
	})
}

// A watch, which has no body, is not ended by the deadline for bodies.
func TestLongResponsesContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		s.Mount("GET /watch", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			http.NewResponseController(w).Flush()
			select {
			case <-time.After(10 * bodyTimeout):
				io.WriteString(w, "an event")
			case <-req.Context().Done():
			}
		}))
		conn := serveOn(t, s)()
		defer conn.Close()
		fmt.Fprint(conn, "GET /watch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(resp.Body); string(text) != "an event" || err != nil {
			t.Errorf("got %q: %v", text, err)
		}
	})
}
