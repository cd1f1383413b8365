package hostlimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A host from which fetches take as long as they may is asked at most half of the time, and other hosts are not delayed.
func TestASlowHostDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(1 << 20)
		var running, most, attempts atomic.Int32
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Hour)
		defer cancel()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for ctx.Err() == nil {
					_ = h.Fetch(ctx, "slow:443", func(*Share) error {
						attempts.Add(1)
						most.Store(max(most.Load(), running.Add(1)))
						defer running.Add(-1)
						time.Sleep(10 * time.Minute)
						return errors.New("it takes too long")
					})
					time.Sleep(time.Second)
				}
			})
		}
		time.Sleep(time.Minute)
		start := time.Now()
		if err := h.Fetch(ctx, "other:443", func(*Share) error { return nil }); err != nil || time.Since(start) > 0 {
			t.Errorf("another host: %v after %v", err, time.Since(start))
		}
		time.Sleep(11 * time.Minute)
		err := h.Fetch(ctx, "slow:443", func(*Share) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "left alone") || !strings.Contains(err.Error(), "it takes too long") {
			t.Errorf("after it was slow: %v", err)
		}
		all.Wait()
		if most.Load() != ofHost || attempts.Load() > 12*6 {
			t.Errorf("%d fetches, %d at a time", attempts.Load(), most.Load())
		}
	})
}

// However many hosts there are, few are asked at the same time.
func TestFewHostsAreAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(1 << 20)
		var running, most atomic.Int32
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				_ = h.Fetch(t.Context(), fmt.Sprint(i), func(*Share) error {
					most.Store(max(most.Load(), running.Add(1)))
					defer running.Add(-1)
					time.Sleep(time.Second)
					return nil
				})
			})
		}
		all.Wait()
		if most.Load() != atOnce {
			t.Errorf("%d at a time", most.Load())
		}
		time.Sleep(2 * window)
		if h.of("new"); len(h.used) != 1 {
			t.Errorf("%d hosts are remembered", len(h.used))
		}
	})
}

// A host may send a number of bytes within an hour, and take a time, and then has to wait.
func TestTheShareOfAHostEnds(t *testing.T) {
	for name, use := range map[string]func(*Share){
		"limits.fetchBytes": func(s *Share) { s.Add(s.Bytes) },
		"30m0s":             func(s *Share) { time.Sleep(s.Time) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := New(1 << 20)
				fetch := func() error { return h.Fetch(t.Context(), "a", func(s *Share) error { use(s); return nil }) }
				if err := fetch(); err != nil {
					t.Fatal(err)
				}
				if err := fetch(); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("with nothing left: %v", err)
				}
				time.Sleep(window)
				if err := fetch(); err != nil {
					t.Errorf("an hour later: %v", err)
				}
			})
		})
	}
}

// A body counts, and ends with an error where the share of its host ends.
func TestABodyEndsWithTheShare(t *testing.T) {
	h := New(10) // 40 bytes an hour
	read := func(n int) error {
		return h.Fetch(t.Context(), "a", func(s *Share) error {
			_, err := io.Copy(io.Discard, s.Reader(io.NopCloser(strings.NewReader(strings.Repeat("x", n)))))
			return err
		})
	}
	if err := read(25); err != nil {
		t.Errorf("within the share: %v", err)
	}
	if err := read(25); !errors.Is(err, errShare) {
		t.Errorf("more than the rest: %v", err)
	}
	if err := read(1); err == nil || !strings.Contains(err.Error(), "asked again in") {
		t.Errorf("with nothing left: %v", err)
	}
}

// A host has one name, however it is written.
func TestName(t *testing.T) {
	for address, want := range map[string]string{"A.example": "a.example:443", "a.example:8443": "a.example:8443", "[::1]": "[::1]:443", "[::1]:80": "[::1]:80"} {
		if got := Name(address, 443); got != want {
			t.Errorf("%s is %s", address, got)
		}
	}
}
