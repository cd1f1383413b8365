package member

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// A frugal transport is the one over which a cluster is watched. It holds very
// little while nothing happens. Where that cannot be, behind a proxy say, or with
// a server that has no HTTP/2, or another idea of it, it is an ordinary one.
type frugal struct {
	way *way
	// passing is for what is large; usual is the ordinary transport, made when it
	// is first needed.
	passing *brief
	usual   func() *http.Transport

	mu sync.Mutex
	// lean reaches host, the first that was asked; nil before.
	lean    *lean.Transport
	host    string
	without bool // the server has no HTTP/2
	used    bool // the ordinary transport is
	// excused is told why the ordinary transport is used, once of each reason; nil
	// tells nobody.
	excused func(excuse)
	told    map[excuse]bool
}

// An excuse is why a cluster is asked over an ordinary transport, which takes more
// memory.
type excuse string

const (
	withoutTLS   excuse = "not-https"
	behindProxy  excuse = "proxy"
	withoutHTTP2 excuse = "no-http2"
	disagreeing  excuse = "protocol"
	crowded      excuse = "crowded"
)

// meaning says the same for people.
var meaning = map[excuse]string{
	withoutTLS:   "it is reached without TLS",
	behindProxy:  "it is reached through a proxy",
	withoutHTTP2: "it does not speak HTTP/2",
	disagreeing:  "it has another idea of HTTP/2",
	crowded:      "it takes too few requests at a time on a connection",
}

// excuse notes why the ordinary transport is used. The transport is not locked.
func (f *frugal) excuse(why excuse) {
	f.mu.Lock()
	first := !f.told[why] && f.excused != nil
	if first && f.told == nil {
		f.told = map[excuse]bool{}
	}
	if first {
		f.told[why] = true
	}
	f.mu.Unlock()
	if first {
		f.excused(why)
	}
}

// renewal is how long the connection is kept on which much came at once, as after a
// first sync; twice that at the most, so that not all are renewed together. What is
// watched is asked for again, from where it was. Only tests change it.
var renewal = 10 * time.Second

// patience is how long a server may take to say that it is still there.
const patience = 15 * time.Second

var errWithoutHTTP2 = errors.New("the server does not speak HTTP/2")

// RoundTrip implements http.RoundTripper.
func (f *frugal) RoundTrip(r *http.Request) (*http.Response, error) {
	if !lean.Takes(r) {
		return f.passing.RoundTrip(r)
	}
	t, why := f.leanFor(r)
	if t != nil {
		again, err := again(r)
		if err != nil {
			return nil, err
		}
		answer, err := t.RoundTrip(r)
		without := errors.Is(err, errWithoutHTTP2)
		if !without && !errors.Is(err, lean.ErrCrowded) {
			return answer, err
		}
		f.mu.Lock()
		f.without = f.without || without
		f.mu.Unlock()
		if why = crowded; without {
			why = withoutHTTP2
		}
		r = again // nothing was sent
	}
	if why != "" {
		f.excuse(why)
	}
	f.mu.Lock()
	f.used = true
	f.mu.Unlock()
	return f.usual().RoundTrip(r)
}

// again returns a request that can be sent after another transport has had r.
func again(r *http.Request) (*http.Request, error) {
	if r.GetBody == nil {
		return r, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	other := r.Clone(r.Context())
	other.Body = body
	return other, nil
}

// leanFor returns the transport for a request; nil if it takes an ordinary one, and
// why, unless the request is not for the server of the cluster.
func (f *frugal) leanFor(r *http.Request) (*lean.Transport, excuse) {
	switch {
	case r.URL.Scheme != "https":
		return nil, withoutTLS
	case f.proxied(r):
		return nil, behindProxy
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lean == nil {
		f.host = r.URL.Host
		dial, secure := f.dialer(r)
		f.lean = lean.New(lean.Config{Dial: dial, Secure: secure, Idle: keepLong.idle, Silent: keepLong.silent, Patience: patience, Renew: renewal})
	}
	switch {
	case f.host != r.URL.Host:
		return nil, ""
	case f.without:
		return nil, withoutHTTP2
	case f.lean.Broken():
		return nil, disagreeing
	}
	return f.lean, ""
}

func (f *frugal) proxied(r *http.Request) bool {
	by, err := f.way.proxy(r)
	return by != nil || err != nil // an ordinary transport tells of the error
}

// dialer returns what connects to the server of a request, and what secures the
// connection.
func (f *frugal) dialer(r *http.Request) (dial func(context.Context) (net.Conn, error), secure func(context.Context, net.Conn) (net.Conn, error)) {
	address := r.URL.Host
	if r.URL.Port() == "" {
		address = net.JoinHostPort(r.URL.Hostname(), "443")
	}
	cfg := &tls.Config{}
	if f.way.secure != nil {
		cfg = f.way.secure.Clone()
	}
	if cfg.NextProtos = []string{"h2", "http/1.1"}; cfg.ServerName == "" {
		cfg.ServerName = r.URL.Hostname()
	}
	return func(ctx context.Context) (net.Conn, error) {
			return f.way.dial(ctx, "tcp", address)
		}, func(ctx context.Context, below net.Conn) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, handshake)
			defer cancel()
			secured := tls.Client(below, cfg)
			if err := secured.HandshakeContext(ctx); err != nil {
				return nil, err
			}
			if secured.ConnectionState().NegotiatedProtocol != "h2" {
				return nil, errWithoutHTTP2
			}
			return secured, nil
		}
}

// close ends what is being dialled, and closes the connections on which nothing is
// under way. Nothing is asked afterwards.
func (f *frugal) close() {
	f.mu.Lock()
	lean, used := f.lean, f.used
	f.mu.Unlock()
	if lean != nil {
		lean.Close()
	}
	if used {
		f.usual().CloseIdleConnections()
	}
}
