package lean

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// A stream is a request and its answer. All that changes belongs to the
// connection's lock.
type stream struct {
	conn *conn
	id   uint32

	bodiless bool // no body is asked for

	headed bool           // the answer has begun, or the stream has ended before
	left   int64          // how much of it is to come; unknown if the server has not said
	answer *http.Response // until somebody has it
	data   *bytes.Buffer  // what nobody has read yet; nil if there is nothing
	err    error          // why nothing more will come; nil while something may
	grown  sync.Cond      // the answer has begun, or there is more to read
	stop   func() bool    // ends the watch over the request's context

	sendWindow int64 // what we may send
	credit     int64 // what the server may send
	eaten      int64 // what was read since the server was told that it may send again

	tell    func([]byte, error) // who follows; nil if nobody does
	telling bool                // somebody is telling him
}

// finish ends a stream. The connection is locked.
func (s *stream) finish(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	c := s.conn
	delete(c.streams, s.id)
	c.used = time.Now()
	if s.stop != nil {
		s.stop()
	}
	s.headed = true
	s.rouse()
	c.mayGo.Broadcast()
	if len(c.streams) == 0 {
		c.rest()
	}
}

// unknown is how much is to come of an answer whose size was not told.
const unknown = -1

// complete ends a stream whose answer has come to its end. The connection is
// locked.
func (s *stream) complete() {
	if s.left > 0 {
		s.finish(io.ErrUnexpectedEOF)
		return
	}
	s.finish(io.EOF)
}

// abandon ends a stream that we want no more of, unless it has ended, and has the
// server told why.
func (s *stream) abandon(err error, why http2.ErrCode) {
	c := s.conn
	c.mu.Lock()
	over := s.err != nil
	s.finish(err)
	if s.data != nil { // it was not read to its end
		s.err = err
		s.drop()
	}
	c.mu.Unlock()
	if !over {
		go s.sayReset(why) // others may be writing, to a server that takes nothing
	}
}

func (s *stream) sayReset(why http2.ErrCode) {
	s.conn.write(func(f *http2.Framer) error { return f.WriteRSTStream(s.id, why) }) //nolint:errcheck // then the connection has ended
}

// refused ends a stream that the server wants no more of.
func (s *stream) refused(code http2.ErrCode) {
	s.conn.of.hear(code)
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	switch {
	case code == http2.ErrCodeRefusedStream && !s.headed:
		s.finish(errUnseen)
	default:
		s.finish(fmt.Errorf("http2: the server has ended the answer: %s", code))
	}
}

// sendBody sends as much as the server allows, until all is sent or the stream
// has ended.
func (s *stream) sendBody(body []byte) {
	c := s.conn
	for len(body) > 0 {
		c.mu.Lock()
		for s.err == nil && min(s.sendWindow, c.sendWindow) <= 0 {
			c.mayGo.Wait()
		}
		c.mu.Unlock()
		n, ok := s.sendPart(body)
		if !ok {
			return
		}
		body = body[n:]
	}
}

// sendPart sends some of the body, or nothing. It reports whether the stream goes
// on.
func (s *stream) sendPart(body []byte) (int, bool) {
	c := s.conn
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	err := s.err
	n := max(0, min(int64(len(body)), maxFrame, s.sendWindow, c.sendWindow))
	if err == nil {
		s.sendWindow -= n
		c.sendWindow -= n
	}
	c.mu.Unlock()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // it has answered without reading all
		c.writeLocked(func(f *http2.Framer) error { return f.WriteRSTStream(s.id, http2.ErrCodeNo) }) //nolint:errcheck // then the connection has ended
		return 0, false
	case err != nil:
		return 0, false
	case n == 0:
		return 0, true
	}
	return int(n), c.writeLocked(func(f *http2.Framer) error { return f.WriteData(s.id, int(n) == len(body), body[:n]) }) == nil
}

// takeData takes in a part of the answer. It returns what the server may be told
// that it can send again.
func (s *stream) takeData(f *http2.DataFrame) (more uint32, err error) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.err != nil {
		return 0, nil
	}
	data := f.Data()
	if s.tell != nil {
		s.conn.told = time.Now()
	}
	if s.credit -= int64(f.Length); s.credit < 0 {
		return 0, http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	known := s.left != unknown
	if !s.headed || known && int64(len(data)) > s.left {
		return 0, http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol}
	}
	if known {
		s.left -= int64(len(data))
	}
	if len(data) > 0 {
		if s.data == nil {
			s.data = buffers.Get().(*bytes.Buffer)
		}
		s.data.Write(data)
	}
	if f.StreamEnded() {
		s.complete()
		return 0, nil
	}
	if len(data) > 0 {
		s.rouse()
	}
	return s.credited(int(f.Length) - len(data)), nil // padding is not read
}

// rouse has somebody look at what has come. The connection is locked.
func (s *stream) rouse() {
	if s.tell != nil && !s.telling {
		s.telling = true
		go s.drain()
	}
	s.grown.Broadcast()
}

// drop forgets what nobody will read. The connection is locked.
func (s *stream) drop() {
	if s.data != nil {
		release(s.data)
		s.data = nil
	}
}

// credited returns what the server may be told that it can send again, since n
// more bytes were read. The connection is locked.
func (s *stream) credited(n int) uint32 {
	if s.eaten += int64(n); s.err != nil || s.eaten < streamWindow/4 {
		return 0
	}
	more := s.eaten
	s.credit += more
	s.eaten = 0
	return uint32(more)
}

func (s *stream) allow(more uint32) {
	if more > 0 {
		s.conn.write(func(f *http2.Framer) error { return f.WriteWindowUpdate(s.id, more) }) //nolint:errcheck // then the connection has ended
	}
}

// A Body is the body of an answer. It is either read or followed.
type Body struct{ *stream }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	s := b.stream
	s.conn.mu.Lock()
	for s.data == nil && s.err == nil {
		s.grown.Wait()
	}
	if s.data == nil {
		defer s.conn.mu.Unlock()
		return 0, s.err
	}
	n, _ := s.data.Read(p) // there is something
	if s.data.Len() == 0 {
		s.drop()
	}
	more := s.credited(n)
	s.conn.mu.Unlock()
	if more > 0 {
		go s.allow(more) // others may be writing, to a server that takes nothing
	}
	return n, nil
}

// Close ends the request. It may be called at any time.
func (b *Body) Close() error {
	b.abandon(errClosed, http2.ErrCodeCancel)
	return nil
}

var errClosed = errors.New("http2: the answer was closed")

// Follow has the rest of the answer told as it comes, piece after piece, each
// valid during the call only, and at last an error and nothing else: io.EOF if
// the answer is complete. It returns at once. No goroutine waits in between; tell
// may take its time, and is never called twice at once. It may close the body,
// and is then told so. The context of the request means nothing any more, and is
// not kept: who has had enough closes the body.
func (b *Body) Follow(tell func(piece []byte, err error)) {
	s := b.stream
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.tell = tell
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	if s.data != nil || s.err != nil {
		s.rouse()
	}
}

// drain tells what there is.
func (s *stream) drain() {
	s.conn.mu.Lock()
	for s.data != nil {
		data := s.data
		s.data = nil
		s.conn.mu.Unlock()
		s.tell(data.Bytes(), nil)
		s.conn.mu.Lock()
		more := s.credited(data.Len())
		s.conn.mu.Unlock()
		release(data)
		s.allow(more)
		s.conn.mu.Lock()
	}
	err := s.err
	s.telling = err != nil // nobody tells any more
	s.conn.mu.Unlock()
	if err != nil {
		s.tell(nil, err)
	}
}
