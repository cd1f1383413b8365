package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// MostConnections is the default limit of open connections; LimitConnections changes it.
const MostConnections = 1000

// connections is a listener with a limit of open connections. Requests are answered on at most seven eighths of them at the same
// time. On the others there is none, and a new connection replaces the one that has been idle longest. The probes of a kubelet, each on
// a connection of its own, are therefore answered however many clients there are.
type connections struct {
	net.Listener
	most int

	mu   sync.Mutex
	open map[*connection]bool
	// busy is how many of them have requests, other than checks of a kubelet, that are being answered.
	busy int
}

// A connection is one of connections, whose mutex protects its fields.
type connection struct {
	net.Conn
	of *connections
	// requests is how many of its requests are being answered, at most one unless it uses HTTP/2; those of them that are checks
	// do not count. checks is how many of these there are.
	requests, checks int
	// waiting is since when there are none.
	waiting time.Time
}

func limitConnections(l net.Listener, most int) *connections {
	return &connections{Listener: l, most: most, open: map[*connection]bool{}}
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: accepted, of: l, waiting: time.Now()}
		replaced, ok := l.add(c)
		if replaced != nil {
			_ = replaced.Conn.Close() // its client is gone, or connects again
		}
		if ok {
			return c, nil
		}
		_ = accepted.Close()
	}
}

// add adds a connection. If there are too many, it returns the one that it replaces, and false if there is none.
func (l *connections) add(c *connection) (replaced *connection, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		for other := range l.open {
			if other.requests+other.checks == 0 && (replaced == nil || other.waiting.Before(replaced.waiting)) {
				replaced = other
			}
		}
		if replaced == nil {
			return nil, false
		}
		delete(l.open, replaced)
	}
	l.open[c] = true
	return replaced, true
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// begin counts a request of a connection that begins to be answered. It reports whether it may be.
func (c *connection) begin(check bool) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch {
	case check:
		c.checks++
	case c.requests == 0 && c.of.busy >= c.of.most-c.of.most/8:
		return false
	default:
		if c.requests++; c.requests == 1 {
			c.of.busy++
		}
	}
	return true
}

// end counts a request that was answered.
func (c *connection) end(check bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if check {
		c.checks--
	} else if c.requests--; c.requests == 0 {
		c.of.busy--
	}
	c.waiting = time.Now()
}

type connectionKey struct{}

// withConnection is the ConnContext of a server on a listener of limited connections.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// perConnection counts the requests of each connection, and refuses those of too many connections.
func perConnection(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c, check := req.Context().Value(connectionKey{}).(*connection), isCheck(req)
		if !c.begin(check) {
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Connection", "close")
			http.Error(w, "requests of too many connections are being answered; try again", http.StatusServiceUnavailable)
			return
		}
		defer c.end(check)
		next.ServeHTTP(w, req)
	})
}

// isCheck reports whether a request is a check of a kubelet.
func isCheck(req *http.Request) bool { return req.URL.Path == "/healthz" || req.URL.Path == "/readyz" }
