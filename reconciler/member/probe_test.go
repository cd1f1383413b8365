package member

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Each way in which a cluster does not answer has its own words, short enough
// for a status; only credentials that no longer hold ask for new ones.
func TestProbe(t *testing.T) {
	answer := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { apiserver.Refuse(w, code, "no") }
	}
	plainText := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed", code)
		}
	}
	tests := map[string]struct {
		server       http.HandlerFunc
		want         string // of the error; empty if there is none
		unauthorized bool
	}{
		"ready":                  {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) }, "", false},
		"401":                    {answer(http.StatusUnauthorized), "no", true},
		"403":                    {answer(http.StatusForbidden), "no", false},
		"500":                    {plainText(http.StatusInternalServerError), "health probe failed with status code 500", false},
		"503":                    {answer(http.StatusServiceUnavailable), "health probe failed with status code 503", false},
		"404":                    {plainText(http.StatusNotFound), "health probe failed with status code 404", false},
		"429":                    {answer(http.StatusTooManyRequests), "health probe failed with status code 429", false},
		"a connection that ends": {func(w http.ResponseWriter, _ *http.Request) { hijack(w).Close() }, "the connection was closed before the answer was complete", false},
		"garbage": {func(w http.ResponseWriter, _ *http.Request) {
			c := hijack(w)
			c.Write([]byte("SSH-2.0-OpenSSH\r\n"))
			c.Close()
		}, "malformed HTTP response", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); test.server(w, r) }))
			p := s.probe(t.Context(), false)
			check(t, p, test.want, test.unauthorized)
			if n := asked.Load(); n > 2 { // the transport asks once more after a connection that ended
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	return c
}

func check(t *testing.T, p probe, want string, unauthorized bool) {
	t.Helper()
	seen := p.seen("east")
	if seen.Healthy != (want == "") || seen.Cluster != "east" || seen.At.IsZero() {
		t.Errorf("seen: %+v", seen)
	}
	if !strings.Contains(seen.Error, want) || want == "" && seen.Error != "" {
		t.Errorf("it says %q, want %q", seen.Error, want)
	}
	if len(seen.Error) > 200 || strings.Contains(seen.Error, "/readyz?") {
		t.Errorf("%d characters, with the URL: %s", len(seen.Error), seen.Error)
	}
	if p.unauthorized != unauthorized {
		t.Errorf("unauthorized: %t", p.unauthorized)
	}
}

// A server that does not answer is given up in time.
func TestProbeOfASilentServer(t *testing.T) {
	hang := make(chan struct{})
	s := sessionAt(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer close(hang)
	s.cfg.Timeout = 50 * time.Millisecond
	start := time.Now()
	check(t, s.probe(t.Context(), true), "the API server did not answer in time", false)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("gave up after %s", d)
	}
}

// A server that takes requests and does not answer is not ready after a time that
// does not depend on how long other requests may take.
func TestReadyWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var there net.Conn
		s := sessionOf(t, &rest.Config{Host: "http://silent.example", Dial: func(context.Context, string, string) (here net.Conn, err error) {
			here, there = net.Pipe()
			go io.Copy(io.Discard, there) //nolint:errcheck // until the client leaves
			return here, nil
		}})
		start := time.Now()
		check(t, s.probe(t.Context(), true), "the API server did not answer in time", false)
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("gave up after %s", d)
		}
		there.Close()
	})
}

// Whether a cluster answers is told each time that changes, also while its session
// is at work, and perhaps waits for the same server; what the session then takes in
// is the newest. After the end nobody probes.
func TestProbesGoOnWhileASessionIsAtWork(t *testing.T) {
	var silent atomic.Bool
	s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if silent.Load() {
			<-r.Context().Done()
		}
		w.Write([]byte("ok")) //nolint:errcheck // perhaps nobody is there any more
	}))
	told := make(chan ledger.ClusterSeen, 1000)
	s.cfg.Timeout, s.cfg.Probe, s.probes = 50*time.Millisecond, 5*time.Millisecond, make(chan *probe, 1)
	s.cfg.Report = func(o ledger.Observation) { told <- o.(ledger.ClusterSeen) }
	s.probing.observed = time.Now()
	s.probing.start(time.Millisecond, func() { s.runProbe(t.Context()) })
	for _, hangs := range []bool{false, true, false, true} {
		silent.Store(hangs)
		giveUp := time.After(10 * time.Second)
		for is := !hangs; is != hangs; {
			select {
			case seen := <-told:
				if is = !seen.Healthy; is && seen.Error != "the API server did not answer in time" {
					t.Fatalf("told %+v", seen)
				}
			case <-giveUp:
				t.Fatalf("it hangs: %t; nothing of that is told", hangs)
			}
		}
	}
	s.probing.stop()
	s.running.Wait()
	if p := <-s.probes; p.err == nil {
		t.Errorf("the session takes in a probe of before: %+v", p)
	}
	for len(told) > 0 {
		<-told
	}
	if s.runProbe(t.Context()); len(told) > 0 {
		t.Error("it probes on")
	}
}

// A probe that takes the place of others says all the same that the cluster was
// away, who it is, and which namespaces it has; and a session that takes it in does
// at once what it could not do meanwhile.
func TestProbeOvertakesOthers(t *testing.T) {
	lost, there := errors.New("lost"), []string{"default"}
	tests := map[string]struct {
		probes []probe
		want   probe
	}{
		"it was there":          {[]probe{{uid: "1", namespaces: there}, {}}, probe{uid: "1", namespaces: there}},
		"it is another one":     {[]probe{{uid: "1"}, {uid: "2"}, {}}, probe{uid: "2"}},
		"it was away":           {[]probe{{err: lost}, {}}, probe{returned: true}},
		"it was away before":    {[]probe{{err: lost}, {}, {}}, probe{returned: true}},
		"it is away":            {[]probe{{}, {err: lost}}, probe{err: lost}},
		"it is away once more":  {[]probe{{err: lost}, {}, {err: lost}}, probe{err: lost}},
		"it came back for good": {[]probe{{uid: "1", err: lost}, {err: lost}, {namespaces: there}, {}}, probe{uid: "1", namespaces: there, returned: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.probes[0]
			for _, p := range test.probes[1:] {
				p.overtakes(&got)
				got = p
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("it says %+v, want %+v", got, test.want)
			}
			s := sessionAt(t, newShelf())
			s.trouble = map[api.ID]*trouble{cm("x"): {next: time.Now().Add(time.Hour)}}
			if err := s.probed(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			if tried := s.trouble[cm("x")].next.IsZero(); tried != got.returned {
				t.Errorf("what failed is tried again: %t", tried)
			}
		})
	}
}

// That a cluster answers no more is logged once, though each try is from another
// port, and so is that it does again.
func TestSilenceIsLoggedOnce(t *testing.T) {
	var logged strings.Builder
	s := sessionAt(t, newShelf())
	s.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
	for port := range 5 {
		at := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port} }
		err := &net.OpError{Op: "read", Net: "tcp", Source: at(50000 + port), Addr: at(6443), Err: io.ErrUnexpectedEOF}
		s.publishProbe(probe{at: time.Now(), err: err})
	}
	s.answers(nil)
	s.answers(nil)
	if text := logged.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "cluster lost; trying again") || !strings.Contains(text, "cluster answers again") {
		t.Errorf("logged:\n%s", text)
	}
}

// Where nobody listens, and where somebody else does, is said.
func TestProbeOfTheWrongPlace(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	s := sessionOf(t, &rest.Config{Host: nobody.URL})
	check(t, s.probe(t.Context(), true), "connection refused", false)

	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.StartTLS()
	defer other.Close()
	s = sessionOf(t, &rest.Config{Host: other.URL})
	check(t, s.probe(t.Context(), true), "certificate signed by unknown authority", false)

	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
	s = sessionOf(t, &rest.Config{Host: strings.Replace(other.URL, "127.0.0.1", "localhost", 1), TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	check(t, s.probe(t.Context(), true), "not localhost", false)
}
