package connection

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Every request to a member uses one of the two clients of newHTTPClients. Their transports
// are, beginning at the connection: masking, bounded, those of Config.Wrap and the metrics, and
// the credentials.
//
// Watches and small requests share a long-lived connection. Lists and large objects use another
// one, which is closed soon after the last of them: a connection keeps buffers as large as its
// largest request and response, for each of thousands of clusters. Conn.Close replaces the long-lived one, too.
const (
	// largeBody is the size from which an object counts as large.
	largeBody   = 4 << 10
	idleTimeout = 90 * time.Second
	// bulkIdleTimeout is long enough for the lists of a cluster that was connected and for the namespaces that are read when
	// its first objects were created. A handshake takes more of a processor than all of them.
	bulkIdleTimeout = 3 * time.Second
	// If nothing is received on a connection for pingAfter, it is pinged. It is closed if there
	// is no response within pingTimeout. A bulk connection is pinged after bulkIdleTimeout, since
	// the timer of the ping keeps a closed connection in memory until it fires.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// headerTableSize is the size of the header tables of a connection, in which no header fits:
	// the tables would take more memory than they save in the few requests to a cluster. (0
	// would mean the default.)
	headerTableSize = 1
	// largestHeader is the maximum size of the headers of a response, and receiveBuffer that of what a
	// server may send before it is read, over one connection.
	largestHeader = 256 << 10
	receiveBuffer = 16 << 20
	// bulkBuffer is the part of receiveBuffer that one response may take. watchBuffer is that where
	// watches and small requests share a connection: watches wait for each other, so that many may be
	// unread at once, and together they must not fill the connection, over which others then get no answer.
	bulkBuffer  = receiveBuffer / 16
	watchBuffer = receiveBuffer / 128
)

// newTransport returns a transport with separate connections, over which one response may be unread up to
// buffer bytes.
func newTransport(cfg *transport.Config, tlsConfig *tls.Config, idle time.Duration, buffer int) *http.Transport {
	dial := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	if cfg.DialHolder != nil {
		dial = cfg.DialHolder.Dial
	}
	proxy := cfg.Proxy
	if proxy == nil {
		proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		TLSClientConfig: tlsConfig.Clone(), TLSHandshakeTimeout: 10 * time.Second, DialContext: dial, Proxy: proxy,
		IdleConnTimeout: idle, MaxIdleConnsPerHost: 25, MaxResponseHeaderBytes: largestHeader, DisableCompression: cfg.DisableCompression,
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: min(pingAfter, idle), PingTimeout: pingTimeout,
			MaxEncoderHeaderTableSize: headerTableSize, MaxDecoderHeaderTableSize: headerTableSize,
			MaxReceiveBufferPerConnection: receiveBuffer, MaxReceiveBufferPerStream: buffer,
		},
	}
}

// stayOnHost follows a redirect only to the host that the credentials are for, since every
// request carries them. Any other redirect is returned as the response.
func stayOnHost(r *http.Request, via []*http.Request) error {
	if to, from := r.URL, via[0].URL; to.Scheme != from.Scheme || to.Host != from.Host || len(via) >= 10 {
		return http.ErrUseLastResponse
	}
	return nil
}

// newHTTPClients returns the client for watches and small requests, the client for large ones,
// and a function that closes their idle connections.
func newHTTPClients(cfg *rest.Config, shared *quota) (client, bulk *http.Client, closeIdle func(), err error) {
	if cfg.Transport != nil { // a transport of the caller, as in tests
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return nil, nil, nil, err
		}
		return client, client, client.CloseIdleConnections, nil
	}
	settings, err := cfg.TransportConfig()
	if err != nil {
		return nil, nil, nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(settings)
	if err != nil {
		return nil, nil, nil, err
	}
	// A bulk connection is opened often, and resumes the session of the one before, with the client certificate of that session: not if a
	// program returns the certificate, which may be another one by then. tlsConfig is nil without TLS.
	if tlsConfig != nil && !settings.HasCertCallback() {
		tlsConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	lasting := &renewedTransport{newTransport: func() *http.Transport { return newTransport(settings, tlsConfig, idleTimeout, watchBuffer) }}
	brief := &renewedTransport{
		newTransport: func() *http.Transport { return newTransport(settings, tlsConfig, bulkIdleTimeout, bulkBuffer) }, idle: bulkIdleTimeout,
	}
	if client, err = newClient(settings, lasting, shared); err != nil {
		return nil, nil, nil, err
	}
	if bulk, err = newClient(settings, brief, shared); err != nil {
		return nil, nil, nil, err
	}
	return client, bulk, func() {
		lasting.CloseIdleConnections()
		brief.CloseIdleConnections()
	}, nil
}

// newClient adds to a transport what every request needs, such as credentials.
func newClient(settings *transport.Config, over http.RoundTripper, shared *quota) (*http.Client, error) {
	wrapped, err := transport.HTTPWrappersForConfig(settings, bounded{masking{over}, shared})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: wrapped, CheckRedirect: stayOnHost}, nil
}

// A sharedTransport is an http.Transport whose first requests wait until one of them has a connection, since an http.Transport would open
// another for each of them; with HTTP/2 they share it.
type sharedTransport struct {
	*http.Transport
	begun     atomic.Bool
	connected chan struct{}
}

func share(t *http.Transport) *sharedTransport {
	return &sharedTransport{Transport: t, connected: make(chan struct{})}
}

// RoundTrip implements http.RoundTripper.
func (t *sharedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.begun.CompareAndSwap(false, true) {
		done := sync.OnceFunc(func() { close(t.connected) })
		defer done()
		traced := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { done() }})
		return t.Transport.RoundTrip(r.WithContext(traced))
	}
	select {
	case <-t.connected:
	case <-r.Context().Done(): // RoundTrip returns its error
	}
	return t.Transport.RoundTrip(r)
}

// A renewedTransport has an http.Transport that is dropped by CloseIdleConnections and, if idle is set, that long after the last request: even
// without connections, a transport needs some KiB for each of thousands of clusters. The next request gets a new one.
type renewedTransport struct {
	newTransport func() *http.Transport
	idle         time.Duration

	mu      sync.Mutex
	current *sharedTransport // nil while there is none
	expire  *time.Timer      // nil if idle is not set
}

// RoundTrip implements http.RoundTripper.
func (t *renewedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.transport().RoundTrip(r)
}

func (t *renewedTransport) transport() *sharedTransport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		t.current = share(t.newTransport())
		if t.idle > 0 {
			t.expire = time.AfterFunc(t.idle, t.CloseIdleConnections)
		}
	}
	if t.expire != nil {
		t.expire.Reset(t.idle)
	}
	return t.current
}

// CloseIdleConnections drops the transport. Requests in progress are completed. Their connections are closed after
// bulkIdleTimeout if they have ended by then, as watches have that are resumed over another connection, and after idleTimeout otherwise.
func (t *renewedTransport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return
	}
	if t.expire != nil {
		t.expire.Stop()
	}
	t.current.CloseIdleConnections()
	time.AfterFunc(bulkIdleTimeout, t.current.CloseIdleConnections)
	t.current, t.expire = nil, nil
}
