package lean_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// Whoever gives up is not held up by a server that takes nothing, neither while
// others write to it nor by writing himself.
func TestGivingUpOnADeafServer(t *testing.T) {
	for name, body := range map[string]string{"headers": "", "a body": "body"} {
		here, there := net.Pipe() // it has no buffer
		t.Cleanup(func() { there.Close() })
		transport := lean.New(lean.Config{Dial: func(context.Context) (net.Conn, error) { return here, nil }})
		go func() {
			p := newPeer(there)
			io.ReadFull(there, make([]byte, len(http2.ClientPreface))) //nolint:errcheck // the client sees
			p.await(http2.FrameWindowUpdate)
			p.WriteSettings() //nolint:errcheck // as above
			p.await(http2.FrameSettings)
			if body != "" {
				p.await(http2.FrameHeaders)
			}
		}()
		ended := make(chan error)
		for range 2 { // one writes, one waits for him
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			go func() {
				request, err := http.NewRequestWithContext(ctx, http.MethodPatch, "https://deaf.example/", strings.NewReader(body))
				if err == nil {
					_, err = transport.RoundTrip(request)
				}
				ended <- err
			}()
		}
		for range 2 {
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: it waits for the server", name)
			}
		}
	}
}

// A server that greets and leaves is not asked again and again without a pause.
func TestServerThatOnlyGreets(t *testing.T) {
	for name, leave := range map[string]func(p *peer){
		"goes away": func(p *peer) { p.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"hangs up":  func(p *peer) { p.net.Close() },
	} {
		var dialed atomic.Int32
		transport := against(t, lean.Config{}, func(p *peer, nth int32) {
			dialed.Store(nth)
			p.greet()
			leave(p)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://hasty.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = transport.RoundTrip(request)
		cancel()
		if n := dialed.Load(); err == nil || n > 20 {
			t.Errorf("%s: %v, dialled %d times", name, err, n)
		}
	}
}
