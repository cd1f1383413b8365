package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/mask"
	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// Limits limit one session.
type Limits struct {
	// FetchBytes limits what is received.
	FetchBytes int64
	// ListBytes limits the part of FetchBytes that the list of references may take.
	ListBytes int64
	// ListTime limits the listing of references.
	ListTime time.Duration
}

// A meter counts the bytes that a session receives, and ends the session at the limit. It
// records the first failure, since the library does not always return the cause.
type meter struct {
	limits Limits
	// credentials are masked in every error: the server may have echoed them.
	credentials mask.Credentials

	mu       sync.Mutex
	n        int64
	fetching bool
	err      error
}

func newMeter(limits Limits) *meter { return &meter{limits: limits} }

// fetch raises the limit from that of the list of references to that of the whole session.
func (m *meter) fetch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fetching = true
}

// count adds received bytes; it returns an error at the limit.
func (m *meter) count(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n += int64(n)
	most, what := m.limits.FetchBytes, " (limits.fetchBytes)"
	if !m.fetching && m.limits.ListBytes < most {
		most, what = m.limits.ListBytes, " in a list of references"
	}
	if m.n <= most {
		return nil
	}
	err := fmt.Errorf("%w: more than %d bytes%s", objects.ErrTooLarge, most, what)
	m.err = cmp.Or(m.err, err)
	return err
}

func (m *meter) total() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// fail records the first failure, and returns it.
func (m *meter) fail(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = cmp.Or(m.err, err)
	return err
}

func (m *meter) explain(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil && !errors.Is(err, m.err) {
		err = m.err
	}
	return shortened(m.credentials.Error(err))
}

// shortened returns err if its text is short. Otherwise it returns an error that wraps err and has the
// beginning of its text, on one line. The library puts what a server says into errors, and a line of the
// protocol has up to 64 KiB.
func shortened(err error) error {
	if err == nil || len(err.Error()) <= maxText {
		return err
	}
	return &shortenedError{oneLine(err.Error()), err}
}

type shortenedError struct {
	text string
	err  error
}

func (e *shortenedError) Error() string { return e.text }

func (e *shortenedError) Unwrap() error { return e.err }

// metered counts the bytes that are read from a stream.
type metered struct {
	io.ReadCloser
	meter *meter
}

func (r metered) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if over := r.meter.count(n); over != nil {
		return 0, over
	}
	return n, err
}
