package member

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"sync"
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

// A way is how the server of a cluster is reached, whatever the connection is for.
type way struct {
	secure  *tls.Config // nil for what every server gets
	proxy   func(*http.Request) (*url.URL, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	plainly bool // answers are not to be compressed
}

// handshake is how long a server may take to agree on a key.
const handshake = 10 * time.Second

func wayOf(cfg *transport.Config) (*way, error) {
	secure, err := transport.TLSConfigFor(cfg)
	if err != nil {
		return nil, err
	}
	w := &way{secure: secure, proxy: cfg.Proxy, dial: (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext, plainly: cfg.DisableCompression}
	if cfg.DialHolder != nil {
		w.dial = cfg.DialHolder.Dial
	}
	if w.proxy == nil { // that of the environment, but for addresses that need none
		w.proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	return w, nil
}

// transport returns a transport with connections of its own.
func (w *way) transport(keep keeping) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		TLSClientConfig: w.secure.Clone(), TLSHandshakeTimeout: handshake, IdleConnTimeout: keep.idle, MaxIdleConnsPerHost: 25,
		DialContext: w.dial, Proxy: w.proxy, DisableCompression: w.plainly,
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: keep.silent, PingTimeout: patience,
			MaxEncoderHeaderTableSize: headerTable, MaxDecoderHeaderTableSize: headerTable,
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

// newClients returns clients for what lasts and for what passes, and how to close
// their connections.
// excused, if it is not nil, is told why what lasts is not as frugal as it could be.
func newClients(cfg *rest.Config, excused func(excuse)) (longLived, shortLived *http.Client, closeIdle func(), err error) {
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
	way, err := wayOf(of)
	if err != nil {
		return nil, nil, nil, err
	}
	passing := &brief{make: func() *http.Transport { return way.transport(keepShort) }}
	lasting := &frugal{way: way, passing: passing, excused: excused, usual: sync.OnceValue(func() *http.Transport { return way.transport(keepLong) })}
	var clients [2]*http.Client
	for i, t := range []http.RoundTripper{lasting, passing} {
		wrapped, err := transport.HTTPWrappersForConfig(of, masking{t})
		if err != nil {
			return nil, nil, nil, err
		}
		clients[i] = &http.Client{Transport: wrapped, CheckRedirect: stayOnHost}
	}
	return clients[0], clients[1], func() {
		lasting.close()
		passing.CloseIdleConnections()
	}, nil
}
