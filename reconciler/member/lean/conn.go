package lean

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A conn is one connection. Its goroutine waits for frames; whoever asks writes
// them.
type conn struct {
	of   *Transport
	line *line
	net  net.Conn // what is secured over the line

	// writing is held while frames are written, so that streams begin in the order
	// of their numbers. It is taken before mu.
	writing sync.Mutex
	headers *hpack.Encoder
	block   bytes.Buffer // what headers writes

	names *hpack.Decoder // only who reads has it
	first [1]byte

	mu      sync.Mutex
	streams map[uint32]*stream
	next    uint32
	err     error // why it ended; nil while it has not
	leaving bool  // it takes no more requests
	wasted  bool  // it never took any
	timer   *time.Timer
	heard   time.Time // when the server last said something
	used    time.Time // when something was last under way
	told    time.Time // when something last came that somebody follows
	renewAt time.Time // when the connection is to be renewed; zero if it is not
	asked   time.Time // when the server was asked whether it is there; zero if it has answered

	// settled says that the server has said what it allows: nothing is asked before.
	settled bool
	// What the server allows: requests at a time, bytes of each, of all.
	most       uint32
	each       int64
	sendWindow int64
	mayGo      sync.Cond // a window has grown, or a stream has ended
	uncredited int64     // what was received and the server was not told that it may send again
}

const (
	// streamWindow bounds what is held of an answer that nobody reads.
	streamWindow = 256 << 10
	// connWindow is what all answers together may bring before more is allowed.
	connWindow = 1 << 30
	// headerTable bounds what a connection remembers of the headers it has carried.
	// Most are paths that come once, and what is remembered of the others costs
	// more than sending them again.
	headerTable = 0
	// headerTableServed is what a server may have it remember all the same: there
	// are servers that do not listen. One that does costs nothing.
	headerTableServed = 4 << 10
	// streamsUnlessTold is how many requests are sent to a server that does not say
	// how many it takes.
	streamsUnlessTold = 1000
)

var (
	errFull   = errors.New("http2: the connection takes no more requests")
	errUnseen = errors.New("http2: the server has not looked at the request")
	errIdle   = errors.New("http2: the connection was idle")
	// errLost is told in the words by which others know it.
	errLost = errors.New("http2: client connection lost")
)

// begin greets the server. Nothing is read yet.
func begin(t *Transport, l *line, secured net.Conn) (*conn, error) {
	now := time.Now()
	c := &conn{
		of: t, line: l, net: secured, streams: map[uint32]*stream{}, next: 1, heard: now, used: now,
		most: streamsUnlessTold, each: 65535, sendWindow: 65535,
		names: hpack.NewDecoder(headerTableServed, nil),
	}
	c.mayGo.L = &c.mu
	c.headers = hpack.NewEncoder(&c.block)
	c.headers.SetMaxDynamicTableSizeLimit(headerTable)
	c.timer = time.AfterFunc(time.Hour, c.look)
	c.timer.Stop()
	err := c.deliver([]byte(http2.ClientPreface))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("http2: %w", err), secured.Close())
	}
	err = c.write(func(f *http2.Framer) error {
		return errors.Join(f.WriteSettings(
			http2.Setting{ID: http2.SettingEnablePush, Val: 0},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
			http2.Setting{ID: http2.SettingHeaderTableSize, Val: headerTable},
			http2.Setting{ID: http2.SettingMaxFrameSize, Val: maxFrame},
		), f.WriteWindowUpdate(0, connWindow-65535))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("http2: %w", err), secured.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest()
	return c, nil
}

// settle waits until the server has said what it allows, or the connection ends.
func (c *conn) settle() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.settled && c.err == nil {
		c.mayGo.Wait()
	}
	return c.err
}

// takes reports whether there is room for another request.
func (c *conn) takes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takesLocked()
}

func (c *conn) isLeaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

func (c *conn) takesLocked() bool {
	return c.err == nil && c.settled && !c.leaving && uint32(len(c.streams)) < c.most && c.next < 1<<31-1
}

// ask sends a request and waits until its answer begins.
func (c *conn) ask(r *http.Request, q request) (*http.Response, error) {
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sent := make(chan result, 1)
	go func() { // whoever asks does not wait for a server that takes nothing, nor for who does
		s, err := c.begun(ctx, q)
		if sent <- (result{s, err}); err == nil {
			s.sendBody(q.body)
		}
	}()
	var s *stream
	select {
	case was := <-sent:
		if was.err != nil {
			return nil, was.err
		}
		s = was.stream
	case <-ctx.Done():
		return nil, ctx.Err() // the stream, should it begin, ends at once
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for !s.headed {
		s.grown.Wait()
	}
	answer := s.answer
	if s.answer = nil; answer == nil {
		return nil, s.err
	}
	answer.Request = r
	return answer, nil
}

// A result is what has come of beginning a stream.
type result struct {
	*stream
	err error
}

// begun begins a stream, which ends with its context.
func (c *conn) begun(ctx context.Context, q request) (*stream, error) {
	s, err := c.send(q)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.abandon(ctx.Err(), http2.ErrCodeCancel) })
	c.mu.Lock()
	if s.stop = stop; s.err != nil {
		stop()
	}
	c.mu.Unlock()
	return s, nil
}

// send begins a stream.
func (c *conn) send(q request) (*stream, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	if !c.takesLocked() {
		c.mu.Unlock()
		return nil, errFull
	}
	s := &stream{conn: c, id: c.next, sendWindow: c.each, credit: streamWindow, left: unknown, bodiless: q.bodiless}
	s.grown.L = &c.mu
	c.streams[s.id] = s
	c.next += 2
	c.of.wasted.Store(0)
	c.mu.Unlock()

	c.block.Reset()
	for _, f := range q.fields {
		if err := c.headers.WriteField(f); err != nil {
			return nil, err // it writes to memory
		}
	}
	err := c.writeLocked(func(f *http2.Framer) error {
		block := c.block.Bytes()
		part := block[:min(len(block), maxFrame)]
		block = block[len(part):]
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: part, EndStream: len(q.body) == 0, EndHeaders: len(block) == 0})
		for err == nil && len(block) > 0 {
			part = block[:min(len(block), maxFrame)]
			block = block[len(part):]
			err = f.WriteContinuation(s.id, len(block) == 0, part)
		}
		return err
	})
	if c.block.Cap() > 1<<10 {
		c.block = bytes.Buffer{}
	}
	if err != nil {
		c.mu.Lock()
		s.finish(err)
		err = s.err // the server may have said before that it will not look at it
		c.mu.Unlock()
	}
	return s, err
}

// end ends the connection and all that is under way on it.
func (c *conn) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	if err != errIdle {
		c.waste()
	}
	c.timer.Stop()
	for _, s := range c.streams {
		s.finish(err)
	}
	c.mayGo.Broadcast()
	c.mu.Unlock()
	c.of.forget(c)
	c.net.Close()
}

// waste notes that the server has ended a connection before anything was asked on
// it. The connection is locked.
func (c *conn) waste() {
	if c.settled && c.next == 1 && !c.wasted {
		c.wasted = true
		c.of.wasted.Add(1)
	}
}

// closeIdle closes the connection if nothing has been under way for some time.
func (c *conn) closeIdle(least time.Duration) (closed bool) {
	c.mu.Lock()
	idle := c.settled && len(c.streams) == 0 && (c.leaving || time.Since(c.used) >= least)
	c.leaving = c.leaving || idle
	c.mu.Unlock()
	if idle {
		c.end(errIdle)
	}
	return idle
}

// leave closes the connection once nothing is under way on it.
func (c *conn) leave() {
	c.mu.Lock()
	c.leaving = true
	c.rest()
	c.mu.Unlock()
	c.closeIdle(0)
}

// rest sets the timer to when the connection is to be looked at next.
func (c *conn) rest() {
	next := time.Duration(0)
	sooner := func(at time.Time, after time.Duration) {
		if d := max(time.Until(at.Add(after)), time.Millisecond); after > 0 && (next == 0 || d < next) {
			next = d
		}
	}
	switch {
	case len(c.streams) > 0 || !c.settled:
	case c.leaving:
		sooner(c.used, 1)
	default:
		sooner(c.used, c.of.cfg.Idle)
	}
	if !c.renewAt.IsZero() && !c.leaving {
		sooner(c.renewAt, 1)
	}
	if c.asked.IsZero() {
		sooner(c.heard, c.of.cfg.Silent)
	} else {
		sooner(c.asked, c.of.cfg.Patience)
	}
	if next > 0 && c.err == nil {
		c.timer.Reset(next)
	}
}

// look closes a connection that is idle or dead, and asks the server of one that
// is silent whether it is there.
func (c *conn) look() {
	cfg := c.of.cfg
	if c.renews() {
		go c.renew()
	}
	if c.closeIdle(cmp.Or(cfg.Idle, math.MaxInt64)) {
		return
	}
	c.mu.Lock()
	if c.heard.After(c.asked) {
		c.asked = time.Time{}
	}
	ask, lost := false, false
	switch {
	case cfg.Silent <= 0:
	case !c.asked.IsZero():
		lost = time.Since(c.asked) >= cfg.Patience
	case time.Since(c.heard) >= cfg.Silent:
		c.asked, ask = time.Now(), true
	}
	c.rest()
	c.mu.Unlock()
	if lost {
		c.end(errLost)
	}
	if ask { // the timer is set: this may hang
		c.write(func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) }) //nolint:errcheck // then the connection has ended
	}
}
