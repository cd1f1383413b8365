package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A daemon that is starting is healthy but not ready, and reports the step. Afterwards it
// serves at the same address.
func TestServeStarting(t *testing.T) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s := New(NewRegistry())
	check := func(path string, code int, text string) {
		t.Helper()
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != code || !strings.Contains(string(body), text) {
			t.Errorf("%s: %d %s %v, want %d %q", path, resp.StatusCode, body, err, code, text)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.ServeStarting(ctx, l, "waiting") }()
	check("/healthz", 200, "ok")
	check("/readyz", 503, "the daemon is starting: waiting")
	check("/report", 503, "the daemon is starting: waiting")
	check("/metrics", 200, "gitfleet_http_requests_total")
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ctx, stop = context.WithCancel(t.Context())
	go func() { done <- s.Serve(ctx, l) }()
	check("/readyz", 503, "no commit is in force yet")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
