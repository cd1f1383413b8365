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
	stop context.CancelFunc
	done chan struct{}
	err  error // once it is done
}

var errEnded = errors.New("http2: the transport was closed")

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
		c, d, err := t.free(ctx)
		switch {
		case err != nil:
			return nil, err
		case c != nil:
			return c, nil
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

// free returns a connection that takes more, or the one in the making.
func (t *Transport) free(ctx context.Context) (*conn, *dial, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, errEnded
	}
	staying := 0
	for _, c := range t.conns {
		if c.takes() {
			return c, nil, nil
		}
		if !c.isLeaving() {
			staying++ // the others only have what they had
		}
	}
	switch {
	case t.dialing != nil:
	case staying >= mostConns:
		return nil, nil, ErrCrowded
	default:
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // others may wait for it
		t.dialing = &dial{stop: stop, done: make(chan struct{})}
		go t.dial(ctx, t.dialing)
	}
	return nil, t.dialing, nil
}

func (t *Transport) dial(ctx context.Context, d *dial) {
	// A server that greets and leaves is asked again later each time.
	err := pause(ctx, min(time.Duration(t.wasted.Load())*100*time.Millisecond, mostPause))
	if err == nil {
		err = t.open(ctx)
	}
	t.dialled(d, err)
}

// dialled has whoever waits for a connection know what has come of it.
func (t *Transport) dialled(d *dial, err error) {
	d.stop()
	t.mu.Lock()
	t.dialing, d.err = nil, err
	t.mu.Unlock()
	close(d.done)
}

var errBusy = errors.New("http2: another connection is in the making")

// replace connects though there may be a connection that takes more; stop ends ctx.
func (t *Transport) replace(ctx context.Context, stop context.CancelFunc) error {
	d := &dial{stop: stop, done: make(chan struct{})}
	t.mu.Lock()
	closed, busy := t.closed, t.dialing != nil
	if !closed && !busy {
		t.dialing = d
	}
	t.mu.Unlock()
	switch {
	case closed:
		return errEnded
	case busy:
		return errBusy
	}
	err := t.open(ctx)
	t.dialled(d, err)
	return err
}

// open connects, and returns when the server has said what it allows, or the context
// has ended.
func (t *Transport) open(ctx context.Context) error {
	below, err := t.cfg.Dial(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { below.Close() })
	defer stop()
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
	err = c.settle()
	if err == nil && !stop() {
		err = ctx.Err()
		c.end(err)
	}
	return err
}
