package server

import (
	"bufio"
	"context"
	"encoding/json"
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

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func reportAt(commit string) *status.Report {
	return &status.Report{Source: status.Source{InForce: hub.Commit{Hash: commit}, Newest: hub.Commit{Hash: commit}}}
}

// askFor sends a request without a network, so that time can be virtual.
func askFor(ctx context.Context, s *Server, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return w
}

func commitOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var r status.Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %s", got)
	}
	return r.Source.InForce.Hash
}

// A client that has the newest report gets a response when there is a newer one, and any other
// client at once. No request waits forever.
func TestReportAfterANumber(t *testing.T) {
	tests := map[string]struct {
		path   string
		before []string // published before
		later  string   // published five seconds later
		code   int
		commit string
		number string
		waits  time.Duration
	}{
		"there is one":             {"/report", []string{"a"}, "", 200, "a", "1", 0},
		"the newest of several":    {"/report", []string{"a", "b", "c"}, "", 200, "c", "3", 0},
		"none yet, one comes":      {"/report", nil, "a", 200, "a", "1", 5 * time.Second},
		"none yet, none comes":     {"/report", nil, "", 503, "", "", 30 * time.Second},
		"seen, one comes":          {"/report?after=1", []string{"a"}, "b", 200, "b", "2", 5 * time.Second},
		"seen, none comes":         {"/report?after=1", []string{"a"}, "", 200, "a", "1", 30 * time.Second},
		"an older one seen":        {"/report?after=1", []string{"a", "b"}, "", 200, "b", "2", 0},
		"seen before a restart":    {"/report?after=99", []string{"a"}, "", 200, "a", "1", 0},
		"not a number":             {"/report?after=x", []string{"a"}, "", 400, "", "", 0},
		"a negative number":        {"/report?after=-1", []string{"a"}, "", 400, "", "", 0},
		"nothing after the equals": {"/report?after=", []string{"a"}, "", 200, "a", "1", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(nil)
				for _, commit := range test.before {
					s.Publish(reportAt(commit))
				}
				if test.later != "" {
					time.AfterFunc(5*time.Second, func() { s.Publish(reportAt(test.later)) })
				}
				start := time.Now()
				w := askFor(t.Context(), s, test.path)
				if waited := time.Since(start); waited != test.waits {
					t.Errorf("waited %s, want %s", waited, test.waits)
				}
				if w.Code != test.code || w.Header().Get(NumberHeader) != test.number {
					t.Errorf("%d, number %q: %s", w.Code, w.Header().Get(NumberHeader), w.Body)
				}
				if test.code == http.StatusOK {
					if got := commitOf(t, w); got != test.commit {
						t.Errorf("report of %s, want %s", got, test.commit)
					}
				}
			})
		})
	}
}

// A response has the age of the report, since no newer report may have been necessary.
func TestReportsHaveTheirAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		s.Publish(reportAt("a"))
		time.Sleep(90 * time.Second)
		if age := askFor(t.Context(), s, "/report").Header().Get("Age"); age != "90" {
			t.Errorf("it says %q", age)
		}
		s.Publish(reportAt("b"))
		if age := askFor(t.Context(), s, "/report").Header().Get("Age"); age != "0" {
			t.Errorf("the next says %q", age)
		}
	})
}

// When a client disconnects, its waiting request ends.
func TestWaitEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		s.Publish(reportAt("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		askFor(ctx, s, "/report?after=1")
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}

// However many clients wait, one report wakes all of them, and each gets it once.
func TestReportWakesAllClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		s.Publish(reportAt("a"))
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				w := askFor(t.Context(), s, "/report?after=1")
				if w.Code != http.StatusOK || commitOf(t, w) != "b" || w.Header().Get(NumberHeader) != "2" {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		s.Publish(reportAt("b"))
		wg.Wait()
		if waited := time.Since(start); waited > 0 {
			t.Errorf("they waited %s more", waited)
		}
	})
}

// A client that requests one report after the other misses no lasting state, and gets none
// twice.
func TestReportsCanBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		go func() {
			for i := range 20 {
				time.Sleep(time.Second)
				s.Publish(reportAt(fmt.Sprint(i)))
			}
		}()
		after, last := "0", ""
		for range 20 {
			w := askFor(t.Context(), s, "/report?after="+after)
			got := commitOf(t, w)
			if got == last {
				t.Errorf("%s was told twice", got)
			}
			after, last = w.Header().Get(NumberHeader), got
		}
		if last != "19" {
			t.Errorf("the last one told is %s", last)
		}
	})
}

// The server is alive when it responds, and ready when there is a commit in force. Nothing can
// be changed, and unknown paths do not exist.
func TestHealth(t *testing.T) {
	noCommit := &status.Report{}
	tests := map[string]struct {
		report *status.Report
		method string
		path   string
		code   int
		body   string
	}{
		"alive":                    {nil, "GET", "/healthz", 200, "ok\n"},
		"not ready at first":       {nil, "GET", "/readyz", 503, "no commit is in force yet\n"},
		"not ready without commit": {noCommit, "GET", "/readyz", 503, "no commit is in force yet\n"},
		"ready":                    {reportAt("a"), "GET", "/readyz", 200, "ok\n"},
		"nothing to change":        {reportAt("a"), "POST", "/report", 405, "Method Not Allowed\n"},
		"nothing to delete":        {reportAt("a"), "DELETE", "/report", 405, "Method Not Allowed\n"},
		"nothing there":            {reportAt("a"), "GET", "/nowhere", 404, "404 page not found\n"},
		"no metrics asked for":     {reportAt("a"), "GET", "/metrics", 404, "404 page not found\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := New(nil)
			if test.report != nil {
				s.Publish(test.report)
			}
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
			if w.Code != test.code || w.Body.String() != test.body {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, test.code, test.body)
			}
		})
	}
}

// Other handlers can be mounted at their own paths.
func TestMount(t *testing.T) {
	s := New(nil)
	s.Mount("/webhook", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Method) }))
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/webhook", nil))
	if w.Body.String() != http.MethodPost {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// serving returns the address of a server on a real port, and a function that ends it.
func serving(t *testing.T, s *Server) (address string, end func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	end = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { end() })
	return l.Addr().String(), end
}

// large returns a report that does not fit into the buffers of a connection.
func large() *status.Report {
	r := reportAt("large")
	r.Source.LoadError = strings.Repeat("x", 16<<20)
	return r
}

// Clients that do not read their responses delay neither the daemon nor other clients.
func TestSlowClientsDoNotDelayOthers(t *testing.T) {
	s := New(nil)
	s.Publish(large())
	address, _ := serving(t, s)
	for range 4 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /report HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := bufio.NewReaderSize(c, 16).ReadString('\n'); err != nil { // the response has begun
			t.Fatal(err)
		}
	}
	start := time.Now()
	for i := range 1000 {
		s.Publish(reportAt(fmt.Sprint(i)))
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("publishing took %s", took)
	}
	resp, err := http.Get("http://" + address + "/report")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var r status.Report
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || r.Source.InForce.Hash != "999" {
		t.Errorf("%v, %s", err, r.Source.InForce.Hash)
	}
}

// When the daemon ends, the server completes the responses that are being sent, ends the
// waiting requests, and does not wait long for clients that do not read.
func TestServerShutsDownGracefully(t *testing.T) {
	s := New(nil)
	started, release, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.Mount("/slow", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-release
		fmt.Fprint(w, "done")
		close(finished)
	}))
	s.Publish(large())
	address, end := serving(t, s)
	lazy, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer lazy.Close()
	fmt.Fprintf(lazy, "GET /report HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := bufio.NewReaderSize(lazy, 16).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 2)
	get := func(path string) {
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		answer <- fmt.Sprintf("%d %s", resp.StatusCode, text)
	}
	go get("/slow")
	<-started
	time.AfterFunc(200*time.Millisecond, func() { close(release) })
	start := time.Now()
	if err := end(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s to end", took)
	}
	select {
	case <-finished:
	default:
		t.Error("ended while an answer was being made")
	}
	if got := <-answer; got != "200 done" {
		t.Errorf("the answer: %s", got)
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("somebody still listens")
	}
}

// When the daemon ends, waiting clients get a response that says so.
func TestShutdownEndsWaitingRequests(t *testing.T) {
	s := New(nil)
	s.Publish(reportAt("a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w := askFor(ctx, s, "/report?after=1"); w.Code != http.StatusServiceUnavailable || w.Body.String() != "the daemon is stopping\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A failure of the listener is an error.
func TestServeReturnsListenerErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := New(nil).Serve(t.Context(), l); err == nil {
		t.Error("served on a closed listener")
	}
}
