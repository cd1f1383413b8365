package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// A remoteLedger cannot be read while it has an error.
type remoteLedger struct {
	mu  sync.Mutex
	err error
}

// fleet reads the fleet.
func (r *remoteLedger) fleet(context.Context) (protocol.Fleet, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return protocol.Fleet{Name: "prod"}, r.err
}

func (r *remoteLedger) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

var errUnreached = &url.Error{Op: "Get", URL: "https://management.example", Err: errors.New("connection refused")}

// A replica that starts while the management cluster does not respond serves requests, reports
// that it waits for the ledger, has the reason only in its log, and continues once there is a
// response. A response that is not a ledger ends it.
func TestStartWaitsForTheLedger(t *testing.T) {
	for name, test := range map[string]struct {
		then error
		want string
	}{
		"an answer":        {nil, ""},
		"a damaged ledger": {&ledger.DamagedError{Why: "its index is missing"}, "its index is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			store := &remoteLedger{err: errUnreached}
			go func() {
				defer store.fail(test.then)
				resp, err := http.Get("http://" + listener.Addr().String() + "/readyz")
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "waiting for the ledger in the management cluster\n") || strings.Contains(string(text), "example") {
					t.Errorf("%d %s %v", resp.StatusCode, text, err)
				}
			}()
			var log strings.Builder
			fleet, err := savedFleet(t.Context(), store.fleet, server.New(server.NewRegistry()), listener, slog.New(slog.NewTextHandler(&log, nil)))
			if test.want == "" && (err != nil || fleet.Name != "prod") || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%+v, %v, want %q", fleet, err, test.want)
			}
			if !strings.Contains(log.String(), "https://management.example") {
				t.Errorf("logged:\n%s", log.String())
			}
		})
	}
}

// A replica that waits for the management cluster can be stopped.
func TestStartThatWaitsIsStopped(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := savedFleet(ctx, (&remoteLedger{err: errUnreached}).fleet, server.New(nil), listener, slog.New(slog.DiscardHandler)); !errors.Is(err, ctx.Err()) || ctx.Err() == nil {
		t.Errorf("ended with %v", err)
	}
}

// The start waits for the management cluster if a retry may help, and never because of a file.
func TestMayRecover(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":            {nil, false},
		"not reached":     {errUnreached, true},
		"refused":         {apierrors.NewTooManyRequests("later", 1), true},
		"no answer":       {context.DeadlineExceeded, true},
		"cut off":         {io.ErrUnexpectedEOF, true},
		"reset":           {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		"damaged":         {&ledger.DamagedError{Why: "its index is missing"}, false},
		"unreadable file": {&fs.PathError{Op: "open", Path: "ledger.db", Err: syscall.EACCES}, false},
	} {
		err := test.err
		if err != nil {
			err = fmt.Errorf("read ledger: %w", err)
		}
		if got := mayRecover(err); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
