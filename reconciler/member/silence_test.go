package member

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// It is logged once that a cluster does not answer any more, although each attempt is from
// another port, and once that it answers again.
func TestSilenceIsLoggedOnce(t *testing.T) {
	var logged strings.Builder
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
	for port := range 5 {
		at := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port} }
		err := &net.OpError{Op: "read", Net: "tcp", Source: at(50000 + port), Addr: at(6443), Err: io.ErrUnexpectedEOF}
		s.publishProbe(probe.Result{At: time.Now(), Err: err})
	}
	s.answers(nil)
	s.answers(nil)
	if text := logged.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "cluster lost; trying again") || !strings.Contains(text, "cluster answers again") {
		t.Errorf("logged:\n%s", text)
	}
}

// Failures are retried once a cluster answers again.
func TestReturnedClusterIsTriedAgain(t *testing.T) {
	for _, returned := range []bool{false, true} {
		s := sessionAt(t, apiserver.NewConfigMaps())
		s.trouble = map[api.ID]*trouble{cm("x"): {next: time.Now().Add(time.Hour)}}
		if err := s.probed(t.Context(), probe.Result{Returned: returned}); err != nil {
			t.Fatal(err)
		}
		if again := s.trouble[cm("x")].next.IsZero(); again != returned {
			t.Errorf("returned: %t, tried again: %t", returned, again)
		}
	}
}
