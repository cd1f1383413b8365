package replica

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// ErrFenced is returned for a write that was not sent because this replica may not be the
// leader any more.
var ErrFenced = errors.New("not sent: this replica does not certainly hold the lease")

// A Fence permits writes while this replica certainly holds the lease. The zero value permits
// none. It is safe for concurrent use.
type Fence struct {
	until atomic.Pointer[time.Time] // nil while closed
	now   func() time.Time          // nil for the system clock
	// closed is set once another replica has taken over. A later renewal does not open the
	// fence.
	closed atomic.Bool
}

// open permits writes until the given time.
func (f *Fence) open(until time.Time) { f.until.Store(&until) }

func (f *Fence) shut() { f.until.Store(nil) }

// close closes the fence forever.
func (f *Fence) close() {
	f.closed.Store(true)
	f.shut()
}

// opened reports whether the fence was opened and not closed since, however long ago.
func (f *Fence) opened() bool { return f.until.Load() != nil }

// Held reports whether the lease is certainly held now. The monotonic clock does not count the
// time for which a machine is suspended, and the wall clock can be set back. So both have to
// agree.
func (f *Fence) Held() bool {
	until := f.until.Load()
	if until == nil || f.closed.Load() {
		return false
	}
	now := time.Now()
	if f.now != nil {
		now = f.now()
	}
	return now.Before(*until) && now.Round(0).Before(until.Round(0))
}

// Wrap returns a transport that sends requests that may write only while the lease is held.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper { return &fenced{f, next} }

type fenced struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *fenced) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead && !t.fence.Held() {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, ErrFenced
	}
	return t.next.RoundTrip(req)
}

// Dial connects to a server that only the leader uses. Each packet is sent only while the lease
// is held, since a process that was stopped may have passed all earlier checks.
func (f *Fence) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &fencedConn{conn, f}, nil
}

type fencedConn struct {
	net.Conn
	fence *Fence
}

// Write implements net.Conn.
func (c *fencedConn) Write(p []byte) (int, error) {
	if !c.fence.Held() {
		return 0, ErrFenced
	}
	return c.Conn.Write(p)
}
