package connection

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Every request to a member passes one of the two clients of newHTTPClients: masking is next
// to the connection, then bounded; around them is what Config.Wrap and the metrics add, then
// the credentials.
//
// Watches and small requests share a connection that lasts. Lists and large objects have
// another, which is closed soon after the last of them: a connection keeps buffers as
// large as the largest request and answer it carried, and there is one for each of
// thousands of clusters.
const (
	// largeBody is the size of an object that is large.
	largeBody       = 4 << 10
	idleTimeout     = 90 * time.Second
	bulkIdleTimeout = 3 * time.Second
	// A connection on which nothing was received for pingAfter is pinged, and closed if
	// there is no answer within pingTimeout.
	pingAfter   = 15 * time.Second
	pingTimeout = 15 * time.Second
	// headerTableSize bounds what a connection remembers of headers: most are paths that
	// are requested once.
	headerTableSize = 512
)

// newTransport returns a transport with connections of its own.
func newTransport(cfg *transport.Config, tlsConfig *tls.Config, idle time.Duration) *http.Transport {
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
		IdleConnTimeout: idle, MaxIdleConnsPerHost: 25, DisableCompression: cfg.DisableCompression,
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
			MaxEncoderHeaderTableSize: headerTableSize, MaxDecoderHeaderTableSize: headerTableSize,
		},
	}
}

// stayOnHost lets a redirect be followed to where the credentials were meant for.
// Any other is the answer: each request carries them, wherever it goes.
func stayOnHost(r *http.Request, via []*http.Request) error {
	if to, from := r.URL, via[0].URL; to.Scheme != from.Scheme || to.Host != from.Host || len(via) >= 10 {
		return http.ErrUseLastResponse
	}
	return nil
}

// newHTTPClients returns the client for watches and small requests, the one for what may be
// large, and how to close their idle connections.
func newHTTPClients(cfg *rest.Config) (client, bulk *http.Client, closeIdle func(), err error) {
	if cfg.Transport != nil { // the caller's own, as in tests
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
	lasting := newTransport(settings, tlsConfig, idleTimeout)
	brief := &bulkTransport{newTransport: func() *http.Transport { return newTransport(settings, tlsConfig, bulkIdleTimeout) }}
	if client, err = newClient(settings, lasting); err != nil {
		return nil, nil, nil, err
	}
	if bulk, err = newClient(settings, brief); err != nil {
		return nil, nil, nil, err
	}
	return client, bulk, func() {
		lasting.CloseIdleConnections()
		brief.CloseIdleConnections()
	}, nil
}

// newClient adds to a transport what every request has, such as credentials.
func newClient(settings *transport.Config, over http.RoundTripper) (*http.Client, error) {
	wrapped, err := transport.HTTPWrappersForConfig(settings, bounded{masking{over}})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: wrapped, CheckRedirect: stayOnHost}, nil
}
