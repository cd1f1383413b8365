package member

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Without credentials an agent reports that and tries again with backoff, since a member may be
// declared before its credentials exist.
func TestAgentWithoutCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		var told []protocol.Observation
		var logged strings.Builder
		why := "no credentials for member east"
		a := New(Config{
			Name: "east", Fleet: "prod", Log: slog.New(slog.NewTextHandler(&logged, nil)), Encoder: apply.NewEncoder("prod", "url"),
			Report: func(o protocol.Observation) {
				told, tries = append(told, o), append(tries, time.Now())
			},
			Connect: func(context.Context) (*rest.Config, error) { return nil, errors.New(why) },
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		a.Run(ctx)
		if n := len(tries); n < 20 || n > 35 {
			t.Errorf("tried %d times in ten minutes", n)
		}
		for i := 1; i < len(tries); i++ {
			if gap := tries[i].Sub(tries[i-1]); gap > 30*time.Second || i > 6 && gap < 20*time.Second {
				t.Errorf("try %d came after %s", i, gap)
			}
		}
		for _, o := range told {
			if c, ok := o.(protocol.ClusterSeen); !ok || c.Healthy || c.Error != "no credentials for member east" || c.Cluster != "east" {
				t.Errorf("told %+v", o)
			}
		}
		if n := strings.Count(logged.String(), "cluster lost"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &logged)
		}
		why = "something else"
		longer, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		a.Run(longer) // nolint:errcheck // it cannot fail
		if n := strings.Count(logged.String(), "cluster lost"); n != 3 {
			t.Errorf("logged %d times, want one more for the new reason and one after an hour:\n%s", n, &logged)
		}
	})
}

// Set never blocks, and the newest call counts.
func TestSetNeverBlocks(t *testing.T) {
	a := New(Config{Name: "east"})
	for _, name := range []string{"one", "two", "three"} {
		a.Set([]*work.Work{{Placement: api.PlacementKey{Name: name}}})
	}
	if got := <-a.newWorks; got[0].Placement.Name != "three" {
		t.Errorf("taken: %s", got[0].Placement)
	}
	if len(a.newWorks) > 0 {
		t.Error("an older one is left")
	}
}

// It is logged once that a cluster does not answer any more, although each attempt is from
// another port, and once that it answers again.
func TestUnreachableClusterIsLoggedOnce(t *testing.T) {
	var logged strings.Builder
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
	for port := range 5 {
		at := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port} }
		err := &net.OpError{Op: "read", Net: "tcp", Source: at(50000 + port), Addr: at(6443), Err: io.ErrUnexpectedEOF}
		s.publishProbe(probe.Result{At: time.Now(), Err: err})
	}
	s.logAnswer(nil)
	s.logAnswer(nil)
	if text := logged.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "cluster lost; trying again") || !strings.Contains(text, "cluster answers again") {
		t.Errorf("logged:\n%s", text)
	}
}
