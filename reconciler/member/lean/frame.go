package lean

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// buffers are shared by all connections. One that has grown large is not used
// again.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keptBuffer = 64 << 10

func release(b *bytes.Buffer) {
	if b.Cap() <= keptBuffer {
		b.Reset()
		buffers.Put(b)
	}
}

// A codec reads and writes frames. It belongs to a connection while there is one
// to be read or written.
type codec struct {
	*http2.Framer
	begun []byte // of a frame, and the rest comes from in
	in    io.Reader
	out   bytes.Buffer
}

var codecs = sync.Pool{New: func() any {
	c := &codec{}
	c.Framer = http2.NewFramer(&c.out, reader{c})
	c.SetMaxReadFrameSize(maxFrame)
	c.MaxHeaderListSize = 1 << 20
	return c
}}

// maxFrame is the size of frames that everyone has to accept, and that we do.
const maxFrame = 16 << 10

// reader reads from wherever a codec reads at the moment.
type reader struct{ *codec }

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	if len(r.begun) > 0 {
		n := copy(p, r.begun)
		r.begun = r.begun[n:]
		return n, nil
	}
	return r.in.Read(p)
}

// write sends what frames writes, at once and whole.
func (c *conn) write(frames func(*http2.Framer) error) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.writeLocked(frames)
}

func (c *conn) writeLocked(frames func(*http2.Framer) error) error {
	w := codecs.Get().(*codec)
	defer func() {
		if w.out.Reset(); w.out.Cap() <= keptBuffer {
			codecs.Put(w)
		}
	}()
	if err := frames(w.Framer); err != nil {
		return err
	}
	if err := c.deliver(w.out.Bytes()); err != nil {
		c.end(fmt.Errorf("http2: %w", err))
		return err
	}
	return nil
}

// deliver gives the server what was written. One that does not take it in time is
// lost: nobody else could write meanwhile.
func (c *conn) deliver(b []byte) error {
	if patience := c.of.cfg.Patience; patience > 0 {
		if err := c.net.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		defer c.net.SetWriteDeadline(time.Time{}) //nolint:errcheck // then it is closed
	}
	_, err := c.net.Write(b)
	return err
}
