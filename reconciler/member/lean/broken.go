package lean

import (
	"errors"

	"golang.org/x/net/http2"
)

// Broken reports whether the server and this package ever disagreed about the
// protocol. One of them is wrong, and will be again: whoever can is better served
// by another transport.
func (t *Transport) Broken() bool { return t.broken.Load() }

// hear takes in why the server ended a stream or a connection.
func (t *Transport) hear(why http2.ErrCode) {
	switch why {
	case http2.ErrCodeProtocol, http2.ErrCodeFlowControl, http2.ErrCodeFrameSize, http2.ErrCodeCompression,
		http2.ErrCodeStreamClosed, http2.ErrCodeSettingsTimeout, http2.ErrCodeHTTP11Required:
		t.broken.Store(true)
	}
}

// protest tells the server what it did wrong, if that is why the connection ends,
// and nobody else is writing.
func (c *conn) protest(err error) {
	var why http2.ConnectionError
	if errors.Is(err, http2.ErrFrameTooLarge) {
		why = http2.ConnectionError(http2.ErrCodeFrameSize)
	} else if !errors.As(err, &why) {
		return
	}
	c.of.broken.Store(true)
	if c.writing.TryLock() {
		defer c.writing.Unlock()
		c.writeLocked(func(f *http2.Framer) error { return f.WriteGoAway(0, http2.ErrCode(why), nil) }) //nolint:errcheck // it ends anyway
	}
}
