package gitsource

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// What fetches of bases may take together: a host that answers slowly, or with much, must neither delay those from other
// hosts for long, nor fill the disk.
const (
	// basesAtOnce is the maximum number of fetches at the same time, and basesOfHost that of one host.
	basesAtOnce = 4
	basesOfHost = 2
	// Within hostWindow, fetches from one host may take hostTime, and hostFetches times as much as one fetch may.
	hostWindow  = time.Hour
	hostTime    = 30 * time.Minute
	hostFetches = 4
	// cacheFetches says how many times as much as one fetch all commits in the cache may take.
	cacheFetches = 8
	// A host from which a fetch has failed after more than quickFailure is left alone for as long as that took.
	quickFailure = 5 * time.Second
	// baseObjects and baseUnpacked limit one fetch, like Limits.Objects and Limits.UnpackedBytes.
	baseObjects  = 500_000
	baseUnpacked = 4 << 30
)

// hosts are the hosts from which bases are fetched. It is safe for concurrent use.
type hosts struct {
	bytes   int64 // what one host may send within hostWindow
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

func newHosts(fetchBytes int64) *hosts {
	return &hosts{bytes: hostFetches * fetchBytes, running: make(chan struct{}, basesAtOnce), used: map[string]*host{}}
}

// A hostShare is what one fetch from a host may take.
type hostShare struct {
	time  time.Duration
	bytes int64
	// received is how many bytes were received.
	received int64
}

// fetch calls do once few enough other fetches run, with what is left of the share of the host, or returns an error if
// nothing is left.
func (h *hosts) fetch(ctx context.Context, name string, do func(*hostShare) error) error {
	of := h.of(name)
	for _, slots := range []chan struct{}{of.running, h.running} {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return ctx.Err()
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
	of.took, of.received = of.took+took, of.received+share.received
	if err != nil && took > quickFailure && ctx.Err() == nil {
		of.failure, of.until = err, time.Now().Add(took)
	}
	return err
}

// of returns what is known of a host, and forgets hosts that were not used for long.
func (h *hosts) of(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for other, of := range h.used {
		if len(of.running) == 0 && now.Sub(of.since) > hostWindow && now.After(of.until) {
			delete(h.used, other)
		}
	}
	of := h.used[name]
	if of == nil {
		of = &host{running: make(chan struct{}, basesOfHost), since: now}
		h.used[name] = of
	}
	return of
}

func (h *hosts) share(of *host, now time.Time) (*hostShare, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(of.since) >= hostWindow {
		of.since, of.took, of.received = now, 0, 0
	}
	again := of.since.Add(hostWindow).Sub(now).Round(time.Second)
	switch {
	case now.Before(of.until):
		return nil, fmt.Errorf("the host is left alone for %s, since a fetch from it has failed slowly: %w", of.until.Sub(now).Round(time.Second), of.failure)
	case of.took >= hostTime:
		return nil, fmt.Errorf("%w: fetches from the host have taken %s within an hour; it is asked again in %s", ErrTooLarge, hostTime, again)
	case of.received >= h.bytes:
		return nil, fmt.Errorf("%w: the host has sent more than %d MiB within an hour (%d times limits.fetchBytes); it is asked again in %s", ErrTooLarge, h.bytes>>20, hostFetches, again)
	}
	return &hostShare{time: hostTime - of.took, bytes: h.bytes - of.received}, nil
}

// limit lowers the limits of a fetch to those of bases, and of the share.
func (s *hostShare) limit(l Limits) Limits {
	l.FetchTime, l.FetchBytes = min(l.FetchTime, s.time), min(l.FetchBytes, s.bytes)
	l.Objects, l.UnpackedBytes = min(l.Objects, baseObjects), min(l.UnpackedBytes, baseUnpacked)
	return l
}

// counted is a pack whose bytes count for a share.
type counted struct {
	io.ReadCloser
	share *hostShare
}

// Read implements io.Reader.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.share.received += int64(n)
	return n, err
}
