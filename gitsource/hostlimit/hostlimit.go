// Package hostlimit limits what fetches from other hosts take together.
//
// A host that answers slowly, or with much, must neither delay fetches from other hosts for long, nor take more than its share
// of time and disk. Fetch calls a function once few enough others run, with what is left of the share of its host.
package hostlimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// atOnce is the maximum number of fetches at the same time, and ofHost that of one host.
	atOnce = 4
	ofHost = 2
	// Within window, fetches from one host may take hostTime, and HostFetches times as much as one fetch may.
	window   = time.Hour
	hostTime = 30 * time.Minute
	// HostFetches is how many of the largest fetches one host may serve within an hour.
	HostFetches = 4
	// A host from which a fetch has failed after more than quickFailure is left alone for as long as that took.
	quickFailure = 5 * time.Second
)

// Hosts are the hosts that something is fetched from. It is safe for concurrent use.
type Hosts struct {
	bytes   int64 // what one host may send within window
	running chan struct{}

	mu   sync.Mutex
	used map[string]*host
}

// A host is what fetches from one host have taken since a time, and the last that has failed slowly.
type host struct {
	running  chan struct{}
	since    time.Time
	took     time.Duration
	received int64

	failure error
	until   time.Time
}

// New returns limits for fetches of at most fetchBytes each.
func New(fetchBytes int64) *Hosts {
	return &Hosts{bytes: HostFetches * fetchBytes, running: make(chan struct{}, atOnce), used: map[string]*host{}}
}

// A Share is what one fetch from a host may take.
type Share struct {
	// Time and Bytes are what is left to the host for this hour.
	Time     time.Duration
	Bytes    int64
	received atomic.Int64
}

// Add counts bytes that were received.
func (s *Share) Add(n int64) { s.received.Add(n) }

// errShare ends a fetch that has taken the whole share of its host.
var errShare = errors.New("the host has sent all that it may send within an hour")

// Reader returns a body whose bytes count, and which fails once they are more than the share.
func (s *Share) Reader(body io.ReadCloser) io.ReadCloser { return counted{body, s} }

type counted struct {
	io.ReadCloser
	share *Share
}

// Read implements io.Reader.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.share.received.Add(int64(n)) > c.share.Bytes {
		return n, errShare
	}
	return n, err
}

// Name returns the name of a host for Fetch: HOST:PORT in lower case. address is HOST or HOST:PORT.
func Name(address string, defaultPort int) string {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = fmt.Sprintf("%s:%d", address, defaultPort)
	}
	return strings.ToLower(address)
}

// Fetch calls do once few enough other fetches run, with what is left of the share of a host, or returns an error if
// nothing is left. do must not call Fetch, since all that run could wait for each other.
func (h *Hosts) Fetch(ctx context.Context, name string, do func(*Share) error) error {
	of := h.of(name)
	for _, slots := range []chan struct{}{of.running, h.running} {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	share, err := h.share(of, time.Now())
	if err != nil {
		return err
	}
	start := time.Now()
	err = do(share)
	h.mu.Lock()
	defer h.mu.Unlock()
	took := time.Since(start)
	of.took, of.received = of.took+took, of.received+share.received.Load()
	if err != nil && took > quickFailure && ctx.Err() == nil {
		of.failure, of.until = err, time.Now().Add(took)
	}
	return err
}

// of returns what is known of a host, and forgets hosts that were not used for long.
func (h *Hosts) of(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for other, of := range h.used {
		if len(of.running) == 0 && now.Sub(of.since) > window && now.After(of.until) {
			delete(h.used, other)
		}
	}
	of := h.used[name]
	if of == nil {
		of = &host{running: make(chan struct{}, ofHost), since: now}
		h.used[name] = of
	}
	return of
}

func (h *Hosts) share(of *host, now time.Time) (*Share, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(of.since) >= window {
		of.since, of.took, of.received = now, 0, 0
	}
	again := of.since.Add(window).Sub(now).Round(time.Second)
	switch {
	case now.Before(of.until):
		return nil, fmt.Errorf("the host is left alone for %s, since a fetch from it has failed slowly: %w", of.until.Sub(now).Round(time.Second), of.failure)
	case of.took >= hostTime:
		return nil, fmt.Errorf("too large: fetches from the host have taken %s within an hour; it is asked again in %s", hostTime, again)
	case of.received >= h.bytes:
		return nil, fmt.Errorf("too large: the host has sent more than %d MiB within an hour (%d times limits.fetchBytes); it is asked again in %s", h.bytes>>20, HostFetches, again)
	}
	return &Share{Time: hostTime - of.took, Bytes: h.bytes - of.received}, nil
}
