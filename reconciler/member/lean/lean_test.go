package lean_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// A scene is a real server, and a client for it.
type scene struct {
	*http.Client
	server *httptest.Server
	closed chan bool // one for each connection that the client has closed
	below  func(net.Conn) net.Conn

	mu     sync.Mutex
	dialed int
}

func (s *scene) dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dialed
}

// A watched connection tells when it is closed.
type watched struct {
	net.Conn
	closed chan bool
}

func (w watched) Close() error {
	w.closed <- true
	return w.Conn.Close()
}

func serve(t *testing.T, cfg lean.Config, limits http.HTTP2Config, h http.HandlerFunc) *scene {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2, server.Config.HTTP2 = true, &limits
	server.StartTLS()
	t.Cleanup(server.Close)
	s := &scene{server: server, closed: make(chan bool, 100)}
	secure := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	secure.NextProtos = []string{"h2"}
	secure.ServerName = "example.com"
	cfg.Dial = func(ctx context.Context) (net.Conn, error) {
		s.mu.Lock()
		s.dialed++
		s.mu.Unlock()
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		if s.below != nil && err == nil {
			c = s.below(c)
		}
		return watched{c, s.closed}, err
	}
	cfg.Secure = func(ctx context.Context, below net.Conn) (net.Conn, error) {
		c := tls.Client(below, secure)
		return c, c.HandshakeContext(ctx)
	}
	transport := lean.New(cfg)
	t.Cleanup(transport.Close)
	s.Client = &http.Client{Transport: transport}
	return s
}

// What is asked is what arrives, and what is answered comes back: whatever its
// size, many at a time, over one connection.
func TestRequestsAndAnswersAreWhole(t *testing.T) {
	s := serve(t, lean.Config{}, http.HTTP2Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Asked", fmt.Sprint(r.Method, " ", r.URL.RequestURI(), " ", r.Header.Get("Accept"), " ", r.ContentLength))
		w.WriteHeader(http.StatusTeapot)
		for range 40 {
			w.Write(body)
		}
	})
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			body := strings.Repeat(string(rune('a'+i%26)), i*270)
			request, err := http.NewRequest(http.MethodPatch, fmt.Sprintf("%s/path?n=%d", s.server.URL, i), strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Accept", strings.Repeat("x", i*400)) // more than a frame
			answer, err := s.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			got, err := io.ReadAll(answer.Body)
			if err != nil || string(got) != strings.Repeat(body, 40) || answer.StatusCode != http.StatusTeapot {
				t.Errorf("%d: status %d, %d bytes, %v", i, answer.StatusCode, len(got), err)
			}
			want := fmt.Sprint("PATCH /path?n=", i, " ", request.Header.Get("Accept"), " ", len(body))
			if asked := answer.Header.Get("Asked"); asked != want {
				t.Errorf("%d: asked %.100q, want %.100q", i, asked, want)
			}
		})
	}
	all.Wait()
	if s.dials() != 1 {
		t.Errorf("%d connections", s.dials())
	}
}

// A server that takes little at a time is given little at a time, and one that
// takes few requests on a connection gets more connections.
func TestLimitsOfTheServerAreKept(t *testing.T) {
	limits := http.HTTP2Config{MaxConcurrentStreams: 2, MaxReceiveBufferPerStream: 1 << 10, MaxReceiveBufferPerConnection: 65535}
	full := make(chan bool, 4)
	s := serve(t, lean.Config{}, limits, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, len(body))
		if r.URL.Path == "/wait" {
			w.(http.Flusher).Flush()
			<-full
		}
	})
	for range 4 {
		answer, err := s.Post(s.server.URL, "text/plain", bytes.NewReader(make([]byte, lean.MaxBody)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(answer.Body); string(got) != fmt.Sprint(lean.MaxBody) || err != nil {
			t.Errorf("%s, %v", got, err)
		}
	}
	for range 4 {
		answer, err := s.Get(s.server.URL + "/wait")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
	}
	for range 4 {
		full <- true
	}
	if s.dials() != 2 {
		t.Errorf("%d connections for four requests, two on each", s.dials())
	}
}

// A body that is too large is refused before anything is sent.
func TestLargeBodiesAreRefused(t *testing.T) {
	s := serve(t, lean.Config{}, http.HTTP2Config{}, func(http.ResponseWriter, *http.Request) {})
	if _, err := s.Post(s.server.URL, "text/plain", bytes.NewReader(make([]byte, lean.MaxBody+1))); err == nil || s.dials() != 0 {
		t.Errorf("%v, %d connections", err, s.dials())
	}
}

// Whoever gives up is let go at once, before the answer and in the midst of it,
// and the server hears of it.
func TestGivingUp(t *testing.T) {
	asked, given := make(chan bool, 2), make(chan bool, 2)
	s := serve(t, lean.Config{}, http.HTTP2Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begun" {
			w.(http.Flusher).Flush()
		}
		asked <- true
		<-r.Context().Done()
		given <- true
	})
	for _, path := range []string{"/silent", "/begun"} {
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-asked
			cancel()
		}()
		answer, err := s.Do(request)
		if err == nil {
			_, err = io.ReadAll(answer.Body)
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", path, err)
		}
		<-given
		cancel()
	}
}

// What is followed is told whole and in order, its end too; and while nothing
// comes nobody waits for it.
func TestFollowing(t *testing.T) {
	more := make(chan string)
	s := serve(t, lean.Config{}, http.HTTP2Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		for text := range more {
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	})
	answer, err := s.Get(s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	type told struct {
		text string
		err  error
	}
	all := make(chan told, 1000)
	answer.Body.(*lean.Body).Follow(func(piece []byte, err error) { all <- told{string(piece), err} })
	stacks := make([]byte, 1<<20)
	if stacks = stacks[:runtime.Stack(stacks, true)]; strings.Contains(string(stacks), "drain") {
		t.Errorf("somebody waits:\n%s", stacks)
	}
	want := ""
	for i := range 200 {
		text := strings.Repeat(fmt.Sprintln(i), 1+i*10) // more than the window in all
		want += text
		more <- text
	}
	close(more)
	got := ""
	for one := range all {
		if one.err != nil {
			if one.err != io.EOF {
				t.Error(one.err)
			}
			break
		}
		got += one.text
	}
	if got != want {
		t.Errorf("told %d bytes of %d", len(got), len(want))
	}
}

// Who follows may stop, and is told nothing more but that.
func TestFollowingEnds(t *testing.T) {
	s := serve(t, lean.Config{}, http.HTTP2Config{}, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, "more")
			w.(http.Flusher).Flush()
		}
	})
	answer, err := s.Get(s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	answer.Body.(*lean.Body).Follow(func(_ []byte, err error) {
		if err == nil {
			answer.Body.Close()
			return
		}
		ended <- err
	})
	if err := <-ended; err == io.EOF {
		t.Error("the end was told to be complete")
	}
}

// A server that goes away ends what is under way, as incomplete, and is dialled
// anew.
func TestServerGoesAway(t *testing.T) {
	s := serve(t, lean.Config{}, http.HTTP2Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stay" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	answer, err := s.Get(s.server.URL + "/stay")
	if err != nil {
		t.Fatal(err)
	}
	s.server.CloseClientConnections()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the answer was read as if it were complete")
	}
	for range 2 {
		if _, err := s.Get(s.server.URL); err != nil {
			t.Error(err)
		}
	}
	if s.dials() != 2 {
		t.Errorf("%d connections", s.dials())
	}
}

// A server that is dead without saying so is found out.
func TestSilentServerIsLost(t *testing.T) {
	here, there := net.Pipe()
	go io.Copy(io.Discard, there) //nolint:errcheck // it takes all and says nothing
	t.Cleanup(func() { there.Close() })
	transport := lean.New(lean.Config{
		Dial:   func(context.Context) (net.Conn, error) { return here, nil },
		Silent: 10 * time.Millisecond, Patience: 10 * time.Millisecond,
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://dead.example", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transport.RoundTrip(request); err == nil || !strings.Contains(err.Error(), "client connection lost") {
		t.Error(err)
	}
}

// A connection on which nothing is under way does not stay.
func TestIdleConnectionIsClosed(t *testing.T) {
	s := serve(t, lean.Config{Idle: 20 * time.Millisecond}, http.HTTP2Config{}, func(http.ResponseWriter, *http.Request) {})
	if _, err := s.Get(s.server.URL); err != nil {
		t.Fatal(err)
	}
	<-s.closed
}

// Who follows is told on, whatever becomes of the context he asked with: nothing
// of it is kept.
func TestFollowingOutlastsTheContext(t *testing.T) {
	more := make(chan bool)
	s := serve(t, lean.Config{}, http.HTTP2Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "more")
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type large struct{ _ [1 << 10]byte }
	held, kept := make(chan bool), &large{}
	runtime.AddCleanup(kept, func(held chan bool) { close(held) }, held)
	request, err := http.NewRequestWithContext(context.WithValue(ctx, large{}, kept), http.MethodGet, s.server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body := answer.Body.(*lean.Body)
	kept, request, answer = nil, nil, nil
	told := make(chan string, 10)
	body.Follow(func(piece []byte, err error) { told <- fmt.Sprint(string(piece), err) })
	for tries := 0; ; tries++ {
		runtime.GC()
		select {
		case <-held:
		case <-time.After(10 * time.Millisecond):
			if tries < 500 {
				continue
			}
			close(more)
			t.Fatal("the context is kept")
		}
		break
	}
	cancel()
	close(more)
	if got := <-told; got != "more<nil>" {
		t.Errorf("told %q", got)
	}
	if got := <-told; got != "EOF" {
		t.Errorf("told %q at the end", got)
	}
}
