package connection

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// ask sends a request over the long-lived connection, and returns the HTTP version that was
// used.
func ask(t *testing.T, cfg *rest.Config) (int, error) {
	t.Helper()
	client, _, closeIdle, err := newHTTPClients(cfg, newQuota(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeIdle)
	answer, err := client.Get(cfg.Host)
	if err != nil {
		return 0, err
	}
	return answer.ProtoMajor, answer.Body.Close()
}

// Every setting of a kubeconfig about the connection to the server is respected.
func TestServersAreReachedAsTheKubeconfigSays(t *testing.T) {
	secure, _ := listening(t, true)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	tests := map[string]struct {
		change func(*rest.Config)
		http   int
		err    string
	}{
		"as it is":        {func(*rest.Config) {}, 2, ""},
		"by another name": {func(c *rest.Config) { c.ServerName = "example.com" }, 2, ""},
		"by a wrong name": {func(c *rest.Config) { c.ServerName = "other.example" }, 0, "not other.example"},
		"without looking": {func(c *rest.Config) { c.CAData, c.Insecure = nil, true }, 2, ""},
		"without TLS":     {func(c *rest.Config) { c.Host, c.CAData = plain.URL, nil }, 1, ""},
		"over a way of its own": {func(c *rest.Config) {
			c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") }
		}, 0, "no way"},
	}
	for name, test := range tests {
		cfg := apiserver.Config(secure)
		test.change(cfg)
		version, err := ask(t, cfg)
		if version != test.http || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: HTTP/%d, %v", name, version, err)
		}
	}
}

// Servers with IPv6 addresses can be reached.
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
	if version, err := ask(t, apiserver.Config(server)); version != 2 || err != nil {
		t.Errorf("HTTP/%d, %v", version, err)
	}
}

// A proxy in the environment is used. The environment is read once per process, so that this
// test runs in a new process.
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
	if _, err := ask(t, cfg); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("through the proxy: %v", err)
	}
	cfg = &rest.Config{Host: "https://near.invalid", Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, errors.New("dialled " + address)
	}}
	if _, err := ask(t, cfg); err == nil || !strings.Contains(err.Error(), "dialled near.invalid:443") {
		t.Errorf("past the proxy: %v", err)
	}
}

// Credentials are not sent to another host because of a redirect.
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
	cfg := apiserver.Config(server)
	cfg.BearerToken = "secret"
	c, err := newClients(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, client := range []*rest.RESTClient{c.rest, c.bulk} {
		if err := client.Get().AbsPath("away").Do(t.Context()).Error(); err == nil || len(asked) > 0 {
			t.Errorf("%v, asked elsewhere %d times", err, len(asked))
		}
		if err := client.Get().AbsPath("near").Do(t.Context()).Error(); err != nil {
			t.Error(err)
		}
	}
}

// Bodies of unknown size can be sent.
func TestBodiesOfUnknownSizeAreSent(t *testing.T) {
	server, got := listening(t, true)
	client, _, closeIdle, err := newHTTPClients(apiserver.Config(server), newQuota(nil))
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
