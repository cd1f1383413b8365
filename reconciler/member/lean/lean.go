// Package lean speaks HTTP/2 to one server, and holds little of it while nothing
// happens.
//
// The transport of the standard library keeps, of every connection, buffers as
// large as its largest frame, and of every request that is under way two
// goroutines. That is right for those who ask much. Whoever waits for news from
// thousands of servers pays it thousands of times. Here a connection is one
// goroutine with a small stack, buffers are shared by all connections and held
// only while there is something in them, and an answer that has no end may be
// followed instead of read: then nobody waits for it.
//
// Requests have small bodies; TLS is the caller's.
package lean

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how a server is reached. Dial must be set; zero durations mean
// never.
type Config struct {
	// Dial returns a connection to the server.
	Dial func(context.Context) (net.Conn, error)
	// Secure returns a connection over another, such as that of crypto/tls, on
	// which both sides have agreed on HTTP/2. An error of the other that is
	// temporary must be so above it. If it is nil, they have agreed already.
	Secure func(context.Context, net.Conn) (net.Conn, error)
	// Idle is how long a connection is kept on which nothing is under way.
	Idle time.Duration
	// Silent is how long a server may say nothing before it is asked whether it is
	// still there; it then has Patience to answer.
	Silent, Patience time.Duration
	// Renew is how long, once or twice, a connection is kept after much came on it
	// at once. Whoever follows an answer is told ErrRenewed then.
	Renew time.Duration
}

// A Transport is a http.RoundTripper. It has one connection, and more if the
// server allows no more requests on those there are.
type Transport struct {
	cfg Config

	broken    atomic.Bool
	renewFrom atomic.Int64 // when another connection may be renewed, in nanoseconds
	// wasted counts connections in a row on which nothing could be asked.
	wasted atomic.Int32

	mu      sync.Mutex
	conns   []*conn
	dialing *dial // nil if nobody does
	closed  bool  // nothing is asked any more
}

// New returns a transport that connects when it is first asked for something.
func New(cfg Config) *Transport {
	return &Transport{cfg: cfg}
}

// MaxBody is the size of the largest body that a request may have.
const MaxBody = 16 << 10

var errBody = errors.New("http2: the body of the request is too large, or its size is not known")

// RoundTrip implements http.RoundTripper. The body of an answer is a *Body,
// unless it is empty. A request that the server says it has not looked at is sent
// again, a few times.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	q, err := newRequest(r)
	if err != nil {
		return nil, err
	}
	for unseen := 0; ; {
		c, err := t.conn(r.Context())
		if err != nil {
			return nil, err
		}
		answer, err := c.ask(r, q)
		switch {
		case errors.Is(err, errFull):
		case errors.Is(err, errUnseen) && unseen < mostUnseen:
			if err := pause(r.Context(), time.Duration(unseen)*100*time.Millisecond); err != nil {
				return nil, err
			}
			unseen++
		default:
			return answer, err
		}
	}
}

// mostUnseen is how often a request is sent again.
const mostUnseen = 4

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Transport) forget(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns = slices.DeleteFunc(t.conns, func(o *conn) bool { return o == c })
}

// Close ends what is being dialled, closes the connections on which nothing is under
// way, and the others as soon as that has ended. Nothing can be asked afterwards.
func (t *Transport) Close() {
	t.mu.Lock()
	t.closed = true
	d := t.dialing
	t.mu.Unlock()
	if d != nil {
		d.stop()
		<-d.done
	}
	t.mu.Lock()
	conns := slices.Clone(t.conns)
	t.mu.Unlock()
	for _, c := range conns {
		c.leave()
	}
}
