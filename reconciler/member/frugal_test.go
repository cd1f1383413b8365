package member

import (
	"bytes"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// asked is what a server got.
type asked struct {
	proto int
	body  string
}

func listening(t *testing.T, http2 bool) (*httptest.Server, chan asked) {
	t.Helper()
	got := make(chan asked, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		body.ReadFrom(r.Body) //nolint:errcheck // what is missing is missed
		got <- asked{r.ProtoMajor, body.String()}
		w.Write([]byte("{}"))
	}))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, got
}

func configFor(server *httptest.Server) *rest.Config {
	return &rest.Config{
		Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	}
}

// A server that has no HTTP/2 is asked all the same, and loses nothing of what it
// was sent before that was known.
func TestServersWithoutHTTP2AreAsked(t *testing.T) {
	server, got := listening(t, false)
	var excuses []excuse
	c, err := newConn(configFor(server), func(why excuse) { excuses = append(excuses, why) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	for _, body := range []string{"one", "two"} {
		if err := c.rest.Patch(types.ApplyPatchType).AbsPath("api").Body([]byte(body)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		if a := <-got; a != (asked{1, body}) {
			t.Errorf("asked %+v, want %q", a, body)
		}
	}
	if !slices.Equal(excuses, []excuse{withoutHTTP2}) {
		t.Errorf("the reasons are %v", excuses)
	}
}

// Why a cluster is not asked frugally is logged once, and counted for each
// session.
func TestExcusesAreLoggedOnce(t *testing.T) {
	var logged strings.Builder
	a := New(Config{Name: "east", Log: slog.New(slog.NewTextHandler(&logged, nil))})
	for _, why := range []excuse{behindProxy, crowded, behindProxy} {
		a.excused(why)
	}
	if text := logged.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, meaning[behindProxy]) || !strings.Contains(text, meaning[crowded]) {
		t.Errorf("logged:\n%s", text)
	}
	if n := testutil.ToFloat64(a.cfg.Metrics.Ordinary.WithLabelValues("east", "proxy")); n != 2 {
		t.Errorf("counted %v", n)
	}
}

// Who answers with another certificate than the kubeconfig vouches for is told
// nothing.
func TestStrangersAreNotAsked(t *testing.T) {
	server, got := listening(t, true)
	other := configFor(server)
	other.CAData = nil
	c, err := newConn(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	for _, client := range []*rest.RESTClient{c.rest, c.bulk} {
		if err := client.Get().AbsPath("api").Do(t.Context()).Error(); err == nil || len(got) > 0 {
			t.Errorf("%v, asked %d times", err, len(got))
		}
	}
}

// Behind a proxy nothing goes past it.
func TestProxiesAreUsed(t *testing.T) {
	server, _ := listening(t, true)
	through := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through <- r.Method + " " + r.Host
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	cfg := configFor(server)
	cfg.Proxy = http.ProxyURL(address)
	var excuses []excuse
	c, err := newConn(cfg, func(why excuse) { excuses = append(excuses, why) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	if err := c.rest.Get().AbsPath("api").MaxRetries(0).Do(t.Context()).Error(); err == nil {
		t.Error("the server was reached past a proxy that lets nobody through")
	}
	if got, want := <-through, "CONNECT "+server.Listener.Addr().String(); got != want {
		t.Errorf("the proxy was asked %q, want %q", got, want)
	}
	if !slices.Equal(excuses, []excuse{behindProxy}) {
		t.Errorf("the reasons are %v", excuses)
	}
}

// What is sent somewhere else does not go over the connection to the cluster.
func TestOtherHostsHaveTheirOwnConnections(t *testing.T) {
	here, atHere := listening(t, true)
	there, atThere := listening(t, true)
	of, err := configFor(here).TransportConfig()
	if err != nil {
		t.Fatal(err)
	}
	of.TLS.CAData = append(of.TLS.CAData, configFor(there).CAData...)
	way, err := wayOf(of)
	if err != nil {
		t.Fatal(err)
	}
	f := &frugal{way: way, passing: &brief{make: func() *http.Transport { return way.transport(keepShort) }}, usual: func() *http.Transport { return way.transport(keepLong) }}
	t.Cleanup(f.close)
	wrapped, err := transport.HTTPWrappersForConfig(of, f)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: wrapped}
	for _, server := range []*httptest.Server{here, there} {
		answer, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := answer.Body.(*lean.Body); ok != (server == here) {
			t.Errorf("the body from %s is a %T", server.URL, answer.Body)
		}
		answer.Body.Close()
	}
	if len(atHere) != 1 || len(atThere) != 1 {
		t.Errorf("asked %d and %d times", len(atHere), len(atThere))
	}
}
