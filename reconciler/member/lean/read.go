package lean

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http2"
)

// wait waits for frames, and has them taken in, until the connection ends. Between
// two of them it holds nothing. What comes is taken in by another goroutine, which
// needs a larger stack and is not there for long.
func (c *conn) wait() {
	done := make(chan bool)
	for ended := false; !ended; ended = <-done {
		c.line.await()
		go func() { done <- c.readOn() }()
	}
}

// readOn takes in the frames that have come, and reports whether the connection
// has ended.
func (c *conn) readOn() (ended bool) {
	for {
		err := c.readNext()
		switch {
		case err == nil:
			continue
		case errors.Is(err, errNothing):
			c.grown()
			return false
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			err = io.ErrUnexpectedEOF // nothing has come to its end by that; others know it by this very value
		default:
			c.protest(err)
			err = fmt.Errorf("http2: %w", err)
		}
		c.end(err)
		return true
	}
}

// readNext takes in one frame, if one has come.
func (c *conn) readNext() error {
	c.line.between = true
	n, err := c.net.Read(c.first[:])
	c.line.between = false
	if n == 0 {
		return err
	}
	return c.readFrame()
}

// readFrame reads the rest of a frame, and takes it in. An error is the end of
// the connection.
func (c *conn) readFrame() error {
	f := codecs.Get().(*codec)
	f.begun, f.in, f.ReadMetaHeaders = c.first[:], c.net, c.names
	frame, err := f.ReadFrame()
	if err == nil {
		err = c.take(frame)
	}
	f.in, f.ReadMetaHeaders = nil, nil
	var one http2.StreamError
	switch {
	case errors.As(err, &one):
		c.reset(one) // and the codec may be in the midst of something
		return nil
	case err == nil:
		codecs.Put(f)
	}
	return err
}

// reset ends one stream that the server has made a mistake in.
func (c *conn) reset(why http2.StreamError) {
	c.of.broken.Store(true)
	if s := c.stream(why.StreamID); s != nil {
		s.abandon(why, why.Code)
	}
}

func (c *conn) stream(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

func (c *conn) take(frame http2.Frame) error {
	c.mu.Lock()
	c.heard = time.Now()
	s := c.streams[frame.Header().StreamID]
	begun, settled := frame.Header().StreamID < c.next, c.settled
	c.mu.Unlock()
	if settings, ok := frame.(*http2.SettingsFrame); !settled && (!ok || settings.IsAck()) {
		return http2.ConnectionError(http2.ErrCodeProtocol) // it does not speak HTTP/2
	}
	switch frame.(type) {
	case *http2.UnknownFrame, *http2.PriorityFrame:
		return nil // these may be about anything
	}
	if !begun {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		if s != nil {
			return s.takeHeaders(f)
		}
	case *http2.DataFrame:
		return c.takeData(s, f)
	case *http2.RSTStreamFrame:
		if s != nil {
			s.refused(f.ErrCode)
		}
	case *http2.SettingsFrame:
		return c.takeSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.write(func(w *http2.Framer) error { return w.WritePing(true, f.Data) })
		}
	case *http2.GoAwayFrame:
		c.takeLeave(f)
	case *http2.WindowUpdateFrame:
		return c.takeWindow(s, f)
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol) // we asked for none
	}
	return nil
}

func (c *conn) takeSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			c.most = s.Val
		case http2.SettingInitialWindowSize:
			for _, other := range c.streams {
				if other.sendWindow += int64(s.Val) - c.each; other.sendWindow > largestWindow {
					return http2.ConnectionError(http2.ErrCodeFlowControl)
				}
			}
			c.each = int64(s.Val)
		case http2.SettingHeaderTableSize:
			c.headers.SetMaxDynamicTableSize(s.Val)
		}
		return nil
	})
	if !c.settled {
		c.settled, c.used = true, time.Now()
		c.rest()
	}
	c.mayGo.Broadcast()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.writeLocked((*http2.Framer).WriteSettingsAck)
}

// takeLeave takes in that the server will take no more requests, and has seen
// none after the last.
func (c *conn) takeLeave(f *http2.GoAwayFrame) {
	c.of.hear(f.ErrCode)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	c.waste()
	for id, s := range c.streams {
		if id > f.LastStreamID {
			s.finish(errUnseen)
		}
	}
	c.rest()
}

const largestWindow = 1<<31 - 1

func (c *conn) takeWindow(s *stream, f *http2.WindowUpdateFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.mayGo.Broadcast()
	switch {
	case f.StreamID == 0:
		if c.sendWindow += int64(f.Increment); c.sendWindow > largestWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	case s != nil:
		if s.sendWindow += int64(f.Increment); s.sendWindow > largestWindow {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
		}
	}
	return nil
}

func (c *conn) takeData(s *stream, f *http2.DataFrame) error {
	if c.uncredited += int64(f.Length); c.uncredited >= connWindow/4 {
		more := uint32(c.uncredited)
		c.uncredited = 0
		if err := c.write(func(w *http2.Framer) error { return w.WriteWindowUpdate(0, more) }); err != nil {
			return err
		}
	}
	if s == nil {
		return nil // we want no more of it
	}
	more, err := s.takeData(f)
	s.allow(more)
	return err
}

func (s *stream) takeHeaders(f *http2.MetaHeadersFrame) error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	wrong := http2.StreamError{StreamID: s.id, Code: http2.ErrCodeProtocol}
	status, err := strconv.Atoi(f.PseudoValue("status"))
	switch {
	case s.err != nil:
		return nil
	case s.headed: // these come after the body
		if !f.StreamEnded() {
			return wrong
		}
		s.complete()
		return nil
	case f.Truncated || err != nil || status < 100 || status == http.StatusSwitchingProtocols:
		return wrong
	case status < 200:
		if f.StreamEnded() {
			return wrong
		}
		return nil // the answer is still to come
	}
	answer := &http.Response{
		Status: fmt.Sprint(status, " ", http.StatusText(status)), StatusCode: status, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{}, ContentLength: -1, Body: &Body{s},
	}
	for _, h := range f.RegularFields() {
		answer.Header.Add(h.Name, h.Value)
	}
	if n, err := strconv.ParseInt(answer.Header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		answer.ContentLength = n
	}
	if !s.bodiless && status != http.StatusNoContent && status != http.StatusNotModified {
		s.left = answer.ContentLength
	}
	if f.StreamEnded() && s.left <= 0 {
		if answer.Body = http.NoBody; !s.bodiless {
			answer.ContentLength = max(answer.ContentLength, 0)
		}
	}
	s.answer, s.headed = answer, true
	s.grown.Broadcast()
	if f.StreamEnded() {
		s.complete()
	}
	return nil
}
