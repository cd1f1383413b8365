package member

import (
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// A cluster is asked over two connections. One lasts as long as the session: it
// has the watches, and everything small. What may be large goes over the other,
// which is closed soon after, since a connection keeps buffers as large as the
// largest it ever carried, for each of thousands of clusters.
const (
	// headerTable bounds what a connection remembers of the headers it has
	// carried; most are paths that come once.
	headerTable = 512
	// largeBody is the size of a request that goes over the passing connection.
	largeBody = 4 << 10
)

// A keeping says how long a connection is kept that nobody uses, and how soon one
// is looked after that is silent: what is silent may be dead.
type keeping struct{ idle, silent time.Duration }

var keepLong, keepShort = keeping{90 * time.Second, 30 * time.Second}, keeping{3 * time.Second, 5 * time.Second}

// newTransport returns a transport with connections of its own.
func newTransport(cfg *transport.Config, keep keeping) (*http.Transport, error) {
	secure, err := transport.TLSConfigFor(cfg)
	if err != nil {
		return nil, err
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	t := &http.Transport{
		TLSClientConfig: secure, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: keep.idle, MaxIdleConnsPerHost: 25,
		DialContext: (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		Proxy:       cfg.Proxy, DisableCompression: cfg.DisableCompression,
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: keep.silent, PingTimeout: 15 * time.Second,
			MaxEncoderHeaderTableSize: headerTable, MaxDecoderHeaderTableSize: headerTable,
		},
	}
	if cfg.DialHolder != nil {
		t.DialContext = cfg.DialHolder.Dial
	}
	utilnet.SetOldTransportDefaults(t) // the proxy of the environment, but for addresses that need none
	return t, nil
}

// newClients returns clients for what lasts and for what passes, and how to close
// their connections.
func newClients(cfg *rest.Config) (longLived, shortLived *http.Client, closeIdle func(), err error) {
	if cfg.Transport != nil { // whoever brings one knows best
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return nil, nil, nil, err
		}
		return client, client, client.CloseIdleConnections, nil
	}
	of, err := cfg.TransportConfig()
	if err != nil {
		return nil, nil, nil, err
	}
	var clients [2]*http.Client
	var transports [2]*http.Transport
	for i, keep := range []keeping{keepLong, keepShort} {
		if transports[i], err = newTransport(of, keep); err != nil {
			return nil, nil, nil, err
		}
		wrapped, err := transport.HTTPWrappersForConfig(of, transports[i])
		if err != nil {
			return nil, nil, nil, err
		}
		clients[i] = &http.Client{Transport: wrapped}
	}
	return clients[0], clients[1], func() {
		for _, t := range transports {
			t.CloseIdleConnections()
		}
	}, nil
}
