package probe

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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// What a cluster makes of an error is in the ledger, the status and the events.
func TestErrorsOfAClusterAreShort(t *testing.T) {
	if seen := (Result{Err: errors.New(strings.Repeat("x", 1<<20))}).Seen("east"); len(seen.Error) > connection.Longest+100 {
		t.Errorf("the error has %d bytes", len(seen.Error))
	}
}

// Each way in which a cluster fails to answer has its own message, short enough for a status.
// Only invalid credentials cause a request for new ones.
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
		want         string // error message; empty if there is none
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
			pr := proberAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); test.server(w, r) }))
			p := pr.Probe(t.Context(), false)
			check(t, p, test.want, test.unauthorized)
			if n := asked.Load(); n > 2 { // the transport repeats a request if its connection was closed
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

func check(t *testing.T, p Result, want string, unauthorized bool) {
	t.Helper()
	seen := p.Seen("east")
	if seen.Healthy != (want == "") || seen.Cluster != "east" || seen.At.IsZero() {
		t.Errorf("seen: %+v", seen)
	}
	if !strings.Contains(seen.Error, want) || want == "" && seen.Error != "" {
		t.Errorf("it says %q, want %q", seen.Error, want)
	}
	if len(seen.Error) > 200 || strings.Contains(seen.Error, "/readyz?") {
		t.Errorf("%d characters, with the URL: %s", len(seen.Error), seen.Error)
	}
	if p.Unauthorized != unauthorized {
		t.Errorf("unauthorized: %t", p.Unauthorized)
	}
}

// A server that does not respond is given up in time.
func TestProbeOfASilentServer(t *testing.T) {
	hang := make(chan struct{})
	pr := proberWith(t, 50*time.Millisecond, serverOf(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang })))
	defer close(hang)
	start := time.Now()
	check(t, pr.Probe(t.Context(), true), "the API server did not answer in time", false)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("gave up after %s", d)
	}
}

// A server that accepts requests and does not respond is not ready after a time that does not
// depend on the timeout of other requests.
func TestReadyWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var there net.Conn
		pr := proberOf(t, &rest.Config{Host: "http://silent.example", Dial: func(context.Context, string, string) (here net.Conn, err error) {
			here, there = net.Pipe()
			go io.Copy(io.Discard, there) //nolint:errcheck // until the client leaves
			return here, nil
		}})
		start := time.Now()
		check(t, pr.Probe(t.Context(), true), "the API server did not answer in time", false)
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("gave up after %s", d)
		}
		there.Close()
	})
}

// Each change of whether a cluster answers is published, also while its session is busy,
// perhaps waiting for the same server. The session then receives the newest result. No probe
// begins after the end.
func TestProbesGoOnWhileASessionIsAtWork(t *testing.T) {
	var silent atomic.Bool
	pr := proberWith(t, 50*time.Millisecond, serverOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if silent.Load() {
			<-r.Context().Done()
		}
		w.Write([]byte("ok")) // nolint:errcheck // the client may be gone
	})))
	told := make(chan protocol.ClusterSeen, 1000)
	pr.cfg.Interval = 5 * time.Millisecond
	pr.cfg.Publish = func(r Result) { told <- r.Seen("east") }
	ctx, cancel := context.WithCancel(t.Context())
	pr.Start(ctx, "")
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
	pr.Stop()
	pr.Wait()
	cancel()
	if p := <-pr.Results; p.Err == nil {
		t.Errorf("the session takes in a probe of before: %+v", p)
	}
	for len(told) > 0 {
		<-told
	}
	if pr.run(t.Context()); len(told) > 0 {
		t.Error("it probes on")
	}
}

// The probes of many clusters that are connected at the same time are spread over the interval,
// and so are their observations. Each cluster is still probed in every interval.
func TestProbesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clusters, most = 200, 50 // 20 are expected in each tenth
		start := time.Now()
		var mu sync.Mutex
		probes, observations := map[time.Duration]int{}, map[time.Duration]int{}
		server := apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			switch since := time.Since(start); r.URL.Path {
			case "/readyz":
				probes[since.Truncate(time.Second)]++
			case "/api/v1/nodes":
				observations[since.Truncate(6*time.Second)]++
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		for range clusters {
			pr := proberOf(t, &rest.Config{Host: "http://cluster.example", Transport: server})
			pr.Start(ctx, "")
			defer pr.Wait()
			defer pr.Stop()
		}
		defer cancel()
		time.Sleep(80 * time.Second) // an observation waits for the next probe
		mu.Lock()
		defer mu.Unlock()
		sum := 0
		for at, n := range probes {
			if n > most {
				t.Errorf("%d probes after %s", n, at)
			}
			if at < 10*time.Second {
				sum += n
			}
		}
		if sum != clusters {
			t.Errorf("%d probes in the first interval, want %d", sum, clusters)
		}
		sum = 0
		for at, n := range observations {
			if n > most {
				t.Errorf("%d observations after %s", n, at)
			}
			sum += n
		}
		if sum < clusters || sum > 2*clusters {
			t.Errorf("%d observations in 80 seconds", sum)
		}
	})
}

// The probes and observations of a large fleet come less often, but each cluster is probed every four minutes, and soon once something
// suggests that it was restored.
func TestProbesOfALargeFleetAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes, observations atomic.Int32
		server := apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
			switch r.URL.Path {
			case "/readyz":
				probes.Add(1)
			case "/api/v1/nodes":
				observations.Add(1)
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
		})
		pace := &Pace{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pr := proberOf(t, &rest.Config{Host: "http://cluster.example", Transport: server})
		pr.cfg.Pace = pace
		for others, want := range map[int64]int32{0: 360, 499: 360, 2999: 60, 100_000: 15} {
			pace.add(others)
			probes.Store(0)
			observations.Store(0)
			pr.Start(ctx, "")
			time.Sleep(time.Hour)
			if got := probes.Load(); got < want*8/10 || got > want+2 {
				t.Errorf("%d probes in an hour beside %d other clusters, want %d", got, others, want)
			}
			if got, want := observations.Load(), want/observeEach; got < want*8/10 || got > want+2 {
				t.Errorf("%d observations in an hour beside %d other clusters, want %d", got, others, want)
			}
			pr.SuspectRestore()
			probes.Store(0)
			time.Sleep(15 * time.Second)
			if probes.Load() == 0 {
				t.Errorf("beside %d other clusters, a cluster that may have been restored is not probed", others)
			}
			pr.Stop()
			pr.over = false
			pace.add(-others)
		}
		if n := pace.clusters.Load(); n != 0 {
			t.Errorf("%d clusters are counted although none is probed", n)
		}
	})
}

// A watch that is interrupted again and again does not delay the probe that is due.
func TestProbesAreNotDelayedBySuspicions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int32
		pr := proberOf(t, &rest.Config{Host: "http://cluster.example", Transport: apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/readyz" {
				probes.Add(1)
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
		})})
		pr.cfg.Interval = 2 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		pr.Start(ctx, "")
		defer pr.Wait()
		defer pr.Stop()
		defer cancel()
		for range 60 {
			time.Sleep(time.Second)
			pr.SuspectRestore()
		}
		if got := probes.Load(); got < 29 || got > 31 {
			t.Errorf("%d probes in a minute, want one every two seconds", got)
		}
	})
}

// Once a namespace was created, the next probe comes soon and reads the namespaces, and nothing else of the cluster.
func TestNamespacesAreReadOnceOneWasCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		pr := proberOf(t, &rest.Config{Host: "http://cluster.example", Transport: apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[r.URL.Path]++
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"items": [{"metadata": {"name": "shop"}}]}`)), Request: r}, nil
		})})
		var read [][]string
		pr.cfg.Interval, pr.observeAt = time.Hour, time.Now().Add(24*time.Hour)
		pr.cfg.Publish = func(p Result) { read = append(read, p.Seen("east").Namespaces) }
		ctx, cancel := context.WithCancel(t.Context())
		pr.Start(ctx, "")
		defer pr.Wait()
		defer pr.Stop()
		defer cancel()
		time.Sleep(2 * time.Hour)
		probes := len(read)
		for range 3 {
			pr.NamespaceCreated()
		}
		time.Sleep(createdDelay)
		synctest.Wait()
		if len(read) != probes+1 || !slices.Equal(read[probes], []string{"shop"}) || asked["/api/v1/namespaces"] != 1 || asked["/api/v1/nodes"] > 0 {
			t.Errorf("read %q, asked %v", read[probes:], asked)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if asked["/api/v1/namespaces"] != 1 || len(read) < probes+2 || read[len(read)-1] != nil {
			t.Errorf("then read %q, asked %v", read[probes:], asked)
		}
	})
}

// If the namespaces cannot be read once one was created, the next regular probe reads them.
func TestNamespacesAreReadAgainAfterAFailure(t *testing.T) {
	asked, refused := 0, true
	pr := proberOf(t, &rest.Config{Host: "http://cluster.example", Transport: apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
		code, body := http.StatusOK, `{"items": [{"metadata": {"name": "shop"}}]}`
		if r.URL.Path == "/api/v1/namespaces" {
			if asked++; refused {
				code, body = http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
			}
		}
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})})
	pr.NamespaceCreated()
	if p := pr.Probe(t.Context(), false); p.Namespaces != nil || asked == 0 {
		t.Fatalf("refused: %q, asked %d times", p.Namespaces, asked)
	}
	refused = false
	if p := pr.Probe(t.Context(), false); !slices.Equal(p.Namespaces, []string{"shop"}) {
		t.Errorf("then: %q", p.Namespaces)
	}
	before := asked
	if p := pr.Probe(t.Context(), false); p.Namespaces != nil || asked != before {
		t.Errorf("once they were read: %q, asked again %d times", p.Namespaces, asked-before)
	}
}

// A probe that replaces earlier results still has the information that the cluster was away,
// its identity and its namespaces. A session that receives it retries at once what failed
// meanwhile.
func TestProbeOvertakesOthers(t *testing.T) {
	lost, there := errors.New("lost"), []string{"default"}
	tests := map[string]struct {
		probes []Result
		want   Result
	}{
		"it was there":          {[]Result{{UID: "1", Namespaces: there}, {}}, Result{UID: "1", Namespaces: there}},
		"it is another one":     {[]Result{{UID: "1"}, {UID: "2"}, {}}, Result{UID: "2"}},
		"it was away":           {[]Result{{Err: lost}, {}}, Result{Returned: true}},
		"it was away before":    {[]Result{{Err: lost}, {}, {}}, Result{Returned: true}},
		"it is away":            {[]Result{{}, {Err: lost}}, Result{Err: lost}},
		"it is away once more":  {[]Result{{Err: lost}, {}, {Err: lost}}, Result{Err: lost}},
		"it came back for good": {[]Result{{UID: "1", Err: lost}, {Err: lost}, {Namespaces: there}, {}}, Result{UID: "1", Namespaces: there, Returned: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.probes[0]
			for _, p := range test.probes[1:] {
				p.addUnreceived(&got)
				got = p
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("it says %+v, want %+v", got, test.want)
			}
		})
	}
}

// The error says if nothing listens at an address, or something else than an API server.
func TestProbeOfTheWrongPlace(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	pr := proberOf(t, &rest.Config{Host: nobody.URL})
	check(t, pr.Probe(t.Context(), true), "connection refused", false)

	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.StartTLS()
	defer other.Close()
	pr = proberOf(t, &rest.Config{Host: other.URL})
	check(t, pr.Probe(t.Context(), true), "certificate signed by unknown authority", false)

	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
	pr = proberOf(t, &rest.Config{Host: strings.Replace(other.URL, "127.0.0.1", "localhost", 1), TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	check(t, pr.Probe(t.Context(), true), "not localhost", false)
}

// That replaced credentials cannot be used is published as soon as it is noticed, and so is its end,
// however rare probes are.
func TestUnusableCredentialsArePublishedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		cfg := &rest.Config{Host: "https://east.example", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok")), Request: r}, nil
		})}
		connect := func(context.Context) (*rest.Config, error) {
			if broken.Load() {
				return nil, errors.New("no such file")
			}
			return cfg, nil
		}
		c, err := connection.New(connection.Config{Cluster: "east", Connect: connect, Timeout: time.Minute, Metrics: new(connection.NewMetrics()), Log: slog.New(slog.DiscardHandler)}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var last protocol.ClusterSeen
		pr := New(c, Config{
			Cluster: "east", Interval: time.Hour, Observe: 24 * time.Hour, Log: slog.New(slog.DiscardHandler), Publish: func(r Result) { last = r.Seen("east") },
			Seconds: series.NewGauge("seconds", ""),
		})
		ctx, cancel := context.WithCancel(t.Context())
		pr.Start(ctx, "")
		for _, want := range []string{"no such file", "", "no such file"} {
			broken.Store(want != "")
			time.Sleep(connection.CredentialsPoll + time.Second)
			synctest.Wait()
			if last.Unrenewed != want || !last.Healthy {
				t.Errorf("published %+v, want %q", last, want)
			}
		}
		pr.Stop()
		cancel()
		pr.Wait()
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
