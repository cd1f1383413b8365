package lean_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// An inside is a real server and a transport that reaches it without a network, so
// that time may be virtual. It tells when it is dialled.
type inside struct {
	*lean.Transport
	t      *testing.T
	dialed chan time.Time
	open   atomic.Int32 // connections and attempts that have not ended
	calls  chan net.Conn
	ended  chan bool
}

// newInside returns a server that answers with much at /large, and with little
// elsewhere, and goes on with it until it is told that nobody listens; but at /once.
// Each dial is first asked for by way, if it is not nil, which may give another
// connection.
func newInside(t *testing.T, cfg lean.Config, way func(ctx context.Context, nth int) (net.Conn, error)) *inside {
	t.Helper()
	s := &inside{t: t, dialed: make(chan time.Time, 10), calls: make(chan net.Conn), ended: make(chan bool)}
	cfg.Dial = func(ctx context.Context) (c net.Conn, err error) {
		s.open.Add(1)
		s.dialed <- time.Now()
		defer func() {
			if err != nil {
				s.open.Add(-1)
			}
		}()
		if way != nil {
			if c, err = way(ctx, len(s.dialed)); err != nil {
				return nil, err
			}
			if c != nil {
				return &counted{Conn: c, of: s}, nil
			}
		}
		here, there := net.Pipe()
		s.calls <- there
		return &counted{Conn: here, of: s}, nil
	}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := "little"
		if strings.HasPrefix(r.URL.Path, "/large") {
			text = strings.Repeat("x", 64<<10)
		}
		w.Write([]byte(text)) // not in little pieces
		w.(http.Flusher).Flush()
		if !strings.HasSuffix(r.URL.Path, "/once") {
			<-r.Context().Done()
		}
	})}
	s.Transport = lean.New(cfg)
	go server.Serve(s) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { server.Close() })
	t.Cleanup(s.Transport.Close)
	return s
}

// Accept implements net.Listener.
func (s *inside) Accept() (net.Conn, error) {
	select {
	case c := <-s.calls:
		return c, nil
	case <-s.ended:
		return nil, errors.New("the test is over")
	}
}

// Close implements net.Listener.
func (s *inside) Close() error {
	close(s.ended)
	return nil
}

// Addr implements net.Listener.
func (s *inside) Addr() net.Addr { return &net.UnixAddr{} }

// A counted connection is open until it is closed.
type counted struct {
	net.Conn
	of   *inside
	once sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}

func (s *inside) get(path string) *http.Response {
	s.t.Helper()
	answer, err := s.RoundTrip(requestTo(s.t, s.t.Context(), path))
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func requestTo(t *testing.T, ctx context.Context, path string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server.example"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// follow follows an answer, whatever it says.
func (s *inside) follow(path string) *lean.Body {
	s.t.Helper()
	body := s.get(path).Body.(*lean.Body)
	body.Follow(func([]byte, error) {})
	return body
}
