package member

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// overLean asks over what lasts, and reports whether it was a lean connection.
func overLean(t *testing.T, cfg *rest.Config) (bool, error) {
	t.Helper()
	client, _, closeIdle, err := newClients(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeIdle)
	answer, err := client.Get(cfg.Host)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	_, yes := answer.Body.(*lean.Body)
	return yes, nil
}

// Whatever a kubeconfig says of how a server is reached holds for lean connections
// too, and what they cannot do goes over ordinary ones.
func TestServersAreReachedAsTheKubeconfigSays(t *testing.T) {
	secure, _ := listening(t, true)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	tests := map[string]struct {
		change func(*rest.Config)
		lean   bool
		err    string
	}{
		"as it is":        {func(*rest.Config) {}, true, ""},
		"by another name": {func(c *rest.Config) { c.ServerName = "example.com" }, true, ""},
		"by a wrong name": {func(c *rest.Config) { c.ServerName = "other.example" }, false, "not other.example"},
		"without looking": {func(c *rest.Config) { c.CAData, c.Insecure = nil, true }, true, ""},
		"without TLS":     {func(c *rest.Config) { c.Host, c.CAData = plain.URL, nil }, false, ""},
		"over a way of its own": {func(c *rest.Config) {
			c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") }
		}, false, "no way"},
	}
	for name, test := range tests {
		cfg := configFor(secure)
		test.change(cfg)
		yes, err := overLean(t, cfg)
		if yes != test.lean || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: lean %v, %v", name, yes, err)
		}
	}
}

// Servers with addresses of IPv6 are reached.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here")
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) }))
	server.Listener.Close()
	server.Listener, server.EnableHTTP2 = l, true
	server.StartTLS()
	t.Cleanup(server.Close)
	if yes, err := overLean(t, configFor(server)); !yes || err != nil {
		t.Errorf("lean %v, %v", yes, err)
	}
}

// A proxy that the environment names is asked, not the server. The environment is
// read once, so that this is another process.
func TestProxyOfTheEnvironment(t *testing.T) {
	if os.Getenv("HTTPS_PROXY") == "" {
		asked := make(chan string, 1)
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Method + " " + r.Host
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(proxy.Close)
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestProxyOfTheEnvironment$")
		child.Env = append(os.Environ(), "HTTPS_PROXY="+proxy.URL, "NO_PROXY=near.invalid")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := <-asked; got != "CONNECT far.invalid:443" {
			t.Error(got)
		}
		return
	}
	cfg := &rest.Config{Host: "https://far.invalid"}
	if _, err := overLean(t, cfg); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("through the proxy: %v", err)
	}
	cfg = &rest.Config{Host: "https://near.invalid", Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, errors.New("dialled " + address)
	}}
	if _, err := overLean(t, cfg); err == nil || !strings.Contains(err.Error(), "dialled near.invalid:443") {
		t.Errorf("past the proxy: %v", err)
	}
}

// Nobody gets the credentials by sending us somewhere else.
func TestRedirectsAreNotFollowedElsewhere(t *testing.T) {
	asked := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	t.Cleanup(thief.Close)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		case "/near":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		default:
			w.Write([]byte("{}"))
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	cfg := configFor(server)
	cfg.BearerToken = "secret"
	c, err := newConn(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	for _, client := range []*rest.RESTClient{c.rest, c.bulk} {
		if err := client.Get().AbsPath("away").Do(t.Context()).Error(); err == nil || len(asked) > 0 {
			t.Errorf("%v, asked elsewhere %d times", err, len(asked))
		}
		if err := client.Get().AbsPath("near").Do(t.Context()).Error(); err != nil {
			t.Error(err)
		}
	}
}

// Bodies whose size nobody has said are sent all the same.
func TestBodiesOfUnknownSizeAreSent(t *testing.T) {
	server, got := listening(t, true)
	client, _, closeIdle, err := newClients(configFor(server), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeIdle)
	answer, err := client.Post(server.URL, "text/plain", struct{ *strings.Reader }{strings.NewReader("body")})
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if a := <-got; a.body != "body" {
		t.Errorf("the server got %q", a.body)
	}
}

// A server that has another idea of HTTP/2 than a lean connection is asked over an
// ordinary one from then on.
func TestServersWithOtherIdeasAreAskedOrdinarily(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) }))
	first := true
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	cfg := configFor(server)
	strange := &tls.Config{Certificates: server.TLS.Certificates, NextProtos: []string{"h2"}}
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if !first {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		first = false
		here, there := net.Pipe()
		go func() {
			c := tls.Server(there, strange)
			defer c.Close()
			go io.Copy(io.Discard, c)                                   //nolint:errcheck // it takes all
			c.Write([]byte("\x00\x00\x00\x06\x00\x00\x00\x00\x09....")) //nolint:errcheck // as above
		}()
		return here, nil
	}
	var excuses []excuse
	client, _, closeIdle, err := newClients(cfg, func(why excuse) { excuses = append(excuses, why) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeIdle)
	if _, err := client.Get(server.URL); err == nil {
		t.Fatal("it was understood")
	}
	for range 2 {
		answer, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, yes := answer.Body.(*lean.Body); yes || answer.ProtoMajor != 2 {
			t.Errorf("asked by a lean connection: %v, %s", yes, answer.Proto)
		}
	}
	if !slices.Equal(excuses, []excuse{disagreeing}) {
		t.Errorf("the reasons are %v", excuses)
	}
}

// A connection that is being dialled when all are closed has ended by then, though
// nobody waits for it.
func TestDialsEndWithTheirClients(t *testing.T) {
	var dialling atomic.Bool
	cfg := &rest.Config{Host: "https://nobody.example", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dialling.Store(true)
		defer dialling.Store(false)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	client, _, closeIdle, err := newClients(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(request); !errors.Is(err, context.DeadlineExceeded) || !dialling.Load() {
		t.Errorf("%v, dialling: %t", err, dialling.Load())
	}
	closeIdle()
	if dialling.Load() {
		t.Error("it is still being dialled")
	}
}
