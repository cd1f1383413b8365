package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// The delay doubles up to its maximum, and is short again after a success.
func TestRetriesAreSpacedOut(t *testing.T) {
	var b Backoff
	if b.Wait(noon) > 0 || b.String() != "" || b.Succeed() {
		t.Errorf("what has not failed waits for %s: %s", b.Wait(noon), b.String())
	}
	down := errors.New("connection refused")
	for i, want := range []time.Duration{First, 2 * First, 4 * First} {
		if changed := b.Fail(down, noon); changed != (i == 0) || b.Wait(noon) != want || b.Failures() != i+1 {
			t.Errorf("error %d: changed %v, %d failures, next in %s, want %s", i+1, changed, b.Failures(), b.Wait(noon), want)
		}
	}
	for range 100 {
		b.Fail(down, noon)
	}
	if b.Wait(noon) != Last {
		t.Errorf("next in %s", b.Wait(noon))
	}
	if !b.Fail(errors.New("no route to host"), noon.Add(time.Hour)) || b.String() != "since 2026-06-01T12:00:00Z: no route to host" {
		t.Errorf("it says %q", b.String())
	}
	if !b.Succeed() || b.Wait(noon) > 0 || b.Failures() != 0 {
		t.Errorf("after a success, next in %s", b.Wait(noon))
	}
}

// What is said of an error begins with the reason, without the address that was asked.
func TestTheReasonIsSaid(t *testing.T) {
	var b Backoff
	down := &url.Error{Op: "Get", URL: "https://git.example.com/api/v1/repos/a/b/pulls?page=1", Err: errors.New("the forge does not answer: connection refused")}
	b.Fail(fmt.Errorf("list pull requests: %w", down), noon)
	if got := b.String(); got != "since 2026-06-01T12:00:00Z: list pull requests: the forge does not answer: connection refused" {
		t.Errorf("it says %q", got)
	}
}

// No request is sent before the time that a server asked for.
func TestServersAreLeftAlone(t *testing.T) {
	for _, err := range []error{
		&forge.StatusError{Status: 429, RetryAfter: time.Hour}, &remote.HTTPError{Status: 429, RetryAfter: time.Hour},
	} {
		var b Backoff
		if b.Fail(fmt.Errorf("list: %w", err), noon); b.Wait(noon) != time.Hour || b.ServerDelay(noon) != time.Hour {
			t.Errorf("%v: next in %s, left alone for %s", err, b.Wait(noon), b.ServerDelay(noon))
		}
		if b.Fail(errors.New("connection refused"), noon); b.ServerDelay(noon) > 0 {
			t.Errorf("left alone for %s after another error", b.ServerDelay(noon))
		}
	}
}

// A loop makes a pass in each interval and when it is woken, but not one after the other, and waits as long as a pass asks.
func TestPassesAreSpacedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began, loop := time.Now(), NewLoop()
		var passes []time.Duration
		go loop.Run(ctx, time.Minute, func(_ context.Context, now time.Time) time.Duration {
			passes = append(passes, now.Sub(began))
			if len(passes) == 3 {
				return time.Hour
			}
			return 0
		})
		loop.Wake()
		loop.Wake()
		time.Sleep(time.Second)
		loop.Wake()
		time.Sleep(3 * time.Hour / 2)
		cancel()
		synctest.Wait()
		want := []time.Duration{0, Spacing, Spacing + time.Minute, Spacing + time.Minute + time.Hour}
		if !slices.Equal(passes[:min(4, len(passes))], want) {
			t.Errorf("passes after %v, want %v", passes, want)
		}
	})
}

// The log says once that requests fail, and once that they succeed again.
func TestFailuresAreLoggedOnce(t *testing.T) {
	var b Backoff
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.Record(ended, context.Canceled, noon, log, "down", "up")
	for range 2 {
		b.Record(t.Context(), errors.New("connection refused"), noon, log, "down", "up")
	}
	for range 2 {
		b.Record(t.Context(), nil, noon, log, "down", "up")
	}
	if want := "level=WARN msg=\"down; trying again\" err=\"connection refused\"\nlevel=INFO msg=up\n"; text.String() != want {
		t.Errorf("logged %q, want %q", text.String(), want)
	}
}
