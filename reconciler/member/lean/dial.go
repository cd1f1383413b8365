package lean

import (
	"context"
	"errors"
	"net"
	"time"
)

// A dial is a connection in the making. Whoever needs one waits for the same: if
// the server is not there, all know it at once.
type dial struct {
	done chan struct{}
	err  error // once it is done
}

// ErrCrowded says that the server takes no more requests on any connection.
// Nothing was sent.
var ErrCrowded = errors.New("http2: the server takes no more requests on any connection")

// mostPause is how long is waited before another connection is made.
const mostPause = 3 * time.Second

// mostConns bounds the connections on which the server might take more.
const mostConns = 8

// conn returns a connection that takes another request.
func (t *Transport) conn(ctx context.Context) (*conn, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, d := t.free(ctx)
		switch {
		case c != nil:
			return c, nil
		case d == nil:
			return nil, ErrCrowded
		}
		select {
		case <-d.done:
			if d.err != nil {
				return nil, d.err
			}
		case <-ctx.Done():
		}
	}
}

// free returns a connection that takes more, or the one in the making; neither if
// there are too many.
func (t *Transport) free(ctx context.Context) (*conn, *dial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	staying := 0
	for _, c := range t.conns {
		if c.takes() {
			return c, nil
		}
		if !c.isLeaving() {
			staying++ // the others only have what they had
		}
	}
	if t.dialing == nil && staying < mostConns {
		t.dialing = &dial{done: make(chan struct{})}
		go t.dial(context.WithoutCancel(ctx), t.dialing) // others may wait for it
	}
	return nil, t.dialing
}

func (t *Transport) dial(ctx context.Context, d *dial) {
	// A server that greets and leaves is asked again later each time.
	err := pause(ctx, min(time.Duration(t.wasted.Load())*100*time.Millisecond, mostPause))
	if err == nil {
		err = t.open(ctx)
	}
	t.mu.Lock()
	t.dialing, d.err = nil, err
	t.mu.Unlock()
	close(d.done)
}

// open connects, and returns when the server has said what it allows.
func (t *Transport) open(ctx context.Context) error {
	below, err := t.cfg.Dial(ctx)
	if err != nil {
		return err
	}
	l := &line{Conn: below}
	secured := net.Conn(l)
	if t.cfg.Secure != nil {
		if secured, err = t.cfg.Secure(ctx, l); err != nil {
			below.Close()
			return err
		}
		l.secured = l.largest
	}
	c, err := begin(t, l, secured)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.conns = append(t.conns, c)
	t.mu.Unlock()
	go c.wait()
	return c.settle()
}
