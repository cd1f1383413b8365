package connection

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// asked is a request that a server received.
type asked struct {
	proto int
	body  string
}

func listening(t *testing.T, http2 bool) (*httptest.Server, chan asked) {
	t.Helper()
	got := make(chan asked, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		body.ReadFrom(r.Body) // nolint:errcheck // the test compares the body
		got <- asked{r.ProtoMajor, body.String()}
		w.Write([]byte("{}"))
	}))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, got
}

// A server without HTTP/2 can be used. Requests that were sent before that is known are not
// lost.
func TestServersWithoutHTTP2AreAsked(t *testing.T) {
	server, got := listening(t, false)
	c, err := newClients(apiserver.Config(server), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, body := range []string{"one", "two"} {
		if err := c.rest.Patch(types.ApplyPatchType).AbsPath("api").Body([]byte(body)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		if a := <-got; a != (asked{1, body}) {
			t.Errorf("asked %+v, want %q", a, body)
		}
	}
}

// Nothing is sent to a server whose certificate does not match the kubeconfig.
func TestStrangersAreNotAsked(t *testing.T) {
	server, got := listening(t, true)
	other := apiserver.Config(server)
	other.CAData = nil
	c, err := newClients(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, client := range []*rest.RESTClient{c.rest, c.bulk} {
		if err := client.Get().AbsPath("api").Do(t.Context()).Error(); err == nil || len(got) > 0 {
			t.Errorf("%v, asked %d times", err, len(got))
		}
	}
}

// If there is a proxy, no request bypasses it.
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
	cfg := apiserver.Config(server)
	cfg.Proxy = http.ProxyURL(address)
	c, err := newClients(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.rest.Get().AbsPath("api").MaxRetries(0).Do(t.Context()).Error(); err == nil {
		t.Error("the server was reached past a proxy that lets nobody through")
	}
	if got, want := <-through, "CONNECT "+server.Listener.Addr().String(); got != want {
		t.Errorf("the proxy was asked %q, want %q", got, want)
	}
}

// Small and large requests use separate connections, both with HTTP/2 and the credentials of
// the cluster. The second one resumes the TLS session of the first,
// unless a credential plugin may return another client certificate.
func TestClustersAreAskedOverTwoConnections(t *testing.T) {
	asked := make(chan *http.Request, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.Write([]byte("{}"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	plugin := &clientcmdapi.ExecConfig{
		Command: "sh", Args: []string{"-c", `echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"secret"}}'`},
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	for name, cfg := range map[string]*rest.Config{"token": {BearerToken: "secret"}, "credential plugin": {ExecProvider: plugin}} {
		cfg.Host, cfg.CAData = server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		c, err := newClients(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		from := map[string]int{}
		for _, client := range []*rest.RESTClient{c.rest, c.bulk, c.rest, c.bulk} {
			if err := client.Get().AbsPath("api").Do(t.Context()).Error(); err != nil {
				t.Fatal(err)
			}
			r := <-asked
			if from[r.RemoteAddr]++; r.TLS.DidResume != (client == c.bulk && cfg.ExecProvider == nil) {
				t.Errorf("%s: the TLS session was resumed: %t, over the bulk connection: %t", name, r.TLS.DidResume, client == c.bulk)
			}
			if r.ProtoMajor != 2 || r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("%s: asked by %s with %q", name, r.Proto, r.Header.Get("Authorization"))
			}
		}
		if len(from) != 2 {
			t.Errorf("%s: over %d connections: %v", name, len(from), from)
		}
	}
}

// The first requests of a client share its connection.
func TestFirstRequestsShareAConnection(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("{}")) }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c, err := newClients(apiserver.Config(server), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var requests sync.WaitGroup
	for _, client := range []*rest.RESTClient{c.rest, c.bulk, c.rest, c.bulk, c.rest, c.bulk} {
		requests.Go(func() {
			if err := client.Get().AbsPath("api").MaxRetries(0).Do(t.Context()).Error(); err != nil {
				t.Error(err)
			}
		})
	}
	requests.Wait()
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections for requests at the same time, want one for small and one for large ones", n)
	}
}

// A request that waits for the connection of the first one ends with its own context, and no longer waits once the first one has failed.
func TestRequestsDoNotWaitForAFailedConnection(t *testing.T) {
	dials := make(chan struct{}, 2)
	over := share(&http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dials <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	send := func() (cancel func(), failed chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		failed = make(chan error, 1)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://east.example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := over.RoundTrip(r) //nolint:bodyclose // there is no response
			failed <- err
		}()
		return cancel, failed
	}
	cancelFirst, first := send()
	<-dials
	cancelSecond, second := send()
	cancelThird, third := send()
	cancelSecond()
	if err := <-second; !errors.Is(err, context.Canceled) || len(dials) > 0 {
		t.Errorf("the second request: %v, after %d dials more", err, len(dials))
	}
	cancelFirst()
	<-first
	<-dials
	cancelThird()
	<-third
}

// The connection of a bulk request leaves the memory soon after it is closed, with its buffers.
func TestAClosedBulkConnectionIsFreed(t *testing.T) {
	t.Parallel()
	server, asked := listening(t, true)
	freed := make(chan struct{})
	bulk := &renewedTransport{idle: bulkIdleTimeout, newTransport: func() *http.Transport {
		tlsConfig := server.Client().Transport.(*http.Transport).TLSClientConfig
		tr := newTransport(&transport.Config{}, tlsConfig, bulkIdleTimeout, bulkBuffer)
		runtime.AddCleanup(tr, func(int) { close(freed) }, 0)
		return tr
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := bulk.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := <-asked; got.proto != 2 {
		t.Fatalf("asked by HTTP/%d, want HTTP/2", got.proto)
	}
	for deadline := time.Now().Add(pingAfter - time.Second); time.Now().Before(deadline); {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
	t.Error("the transport of a closed connection is still in memory")
}

// A watch goes on when the connections are closed, and later requests use another one. Its connection is closed once the watch has ended.
func TestClosedConnectionsEndAfterTheirWatches(t *testing.T) {
	t.Parallel()
	from, events, closed := make(chan string, 1), make(chan struct{}), make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from <- r.RemoteAddr
		if r.URL.Query().Get("watch") == "" {
			return
		}
		w.(http.Flusher).Flush()
		<-events
		w.Write([]byte("event")) //nolint:errcheck // the test would see it
	}))
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- c.RemoteAddr().String()
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c, err := newClients(apiserver.Config(server), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	watch, err := c.rest.Get().AbsPath("api").Param("watch", "true").Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := <-from
	c.Close()
	if err := c.rest.Get().AbsPath("api").Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	if again := <-from; again == first {
		t.Error("a later request uses the connection that was closed")
	}
	close(events)
	if got, err := io.ReadAll(watch); err != nil || string(got) != "event" {
		t.Errorf("the watch has received %q, %v", got, err)
	}
	watch.Close()
	select {
	case ended := <-closed:
		if ended != first {
			t.Errorf("the connection %s is closed, want %s", ended, first)
		}
	case <-time.After(bulkIdleTimeout + 20*time.Second):
		t.Error("the connection of the watch is not closed")
	}
}

// Many watches that nobody reads at the moment, since they wait for each other, do not delay small requests
// over the same connection.
func TestUnreadWatchesDelayNothing(t *testing.T) {
	var writes atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("{}")) //nolint:errcheck // the test would see it
			return
		}
		event := bytes.Repeat([]byte("x"), 64<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(event); err != nil {
				return
			}
			writes.Add(1)
			w.(http.Flusher).Flush()
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	config := apiserver.Config(server)
	config.QPS = -1 // as for members; client-go sends five requests a second otherwise
	c, err := newClients(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for range 20 {
		watch, err := c.rest.Get().AbsPath("api/v1/pods").Param("watch", "true").Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { watch.Close() })
	}
	// Each write blocks once its watch is filled.
	for before := int64(0); before == 0 || before != writes.Load(); time.Sleep(200 * time.Millisecond) {
		before = writes.Load()
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := c.rest.Patch(types.ApplyPatchType).AbsPath("api").Body([]byte("{}")).MaxRetries(0).Do(ctx).Error()
		cancel()
		if err != nil {
			t.Fatalf("a small request behind unread watches: %v", err)
		}
	}
}
