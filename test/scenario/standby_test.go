package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// A standby is a replica that follows the leader of a scene.
type standby struct {
	mu      sync.Mutex
	backup  ledger.Store // the leader's store
	version string
	err     error
	report  *status.Report
}

// Newer implements reconciler.Leadership.
func (s *standby) Newer(known string) (*ledger.Ledger, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || known == s.version {
		return nil, s.version, s.err
	}
	l, err := s.backup.Load()
	return l, s.version, err
}

// Leader implements reconciler.Leadership.
func (s *standby) Leader() string { return "one" }

// see sets the store that the standby reads, its version, and the error of reading it.
func (s *standby) see(store ledger.Store, version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backup, s.version, s.err = store, version, err
}

func (s *standby) publish(r *status.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report = r
}

func (s *standby) last() *status.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

// A standby reports the state of the leader, from the ledger alone. It starts no members and
// saves nothing. While it cannot read the ledger, it publishes nothing, so that its report
// becomes outdated.
func TestStandbyReportsWhatTheLeaderSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthyFleet(t, "east west")
		s.start()
		defer s.stop()
		time.Sleep(5 * time.Minute)

		source, follower := newSource(), &standby{}
		follower.see(s.store, "1", nil)
		source.push("v1", "", world.Files(t, "clusters east west\nnamespace web\nplace web\n"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		loop := reconciler.New(reconciler.Config{
			Source: source, Loader: hub.NewLoader(hub.Options{}), Past: hub.NewLoader(hub.Options{}), Store: forbidden{t},
			Member: func(*hub.Cluster, func(ledger.Observation)) reconciler.Member {
				t.Error("a standby starts a member")
				return nil
			},
			Publish: follower.publish, Log: slog.New(slog.DiscardHandler),
		})
		go func() { done <- loop.Follow(ctx, follower) }()
		time.Sleep(time.Minute)
		synctest.Wait()

		got, want := follower.last(), s.report
		if got == nil || got.Standby == nil || got.Standby.Leader != "one" || got.Source.InForce.Hash != "v1" {
			t.Fatalf("the standby reports %+v", got)
		}
		if age := time.Since(got.Standby.AsOf); age > 15*time.Second {
			t.Errorf("the report of a ledger that can be read is %s old", age)
		}
		for i, p := range want.Placements {
			if g, w := conditions(got.Placements[i].Status.Conditions), conditions(p.Status.Conditions); g != w {
				t.Errorf("the standby says of %s\n%s\nthe leader says\n%s", p.Name, g, w)
			}
		}

		follower.see(s.store, "2", errors.New("no answer"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		stale := follower.last()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if follower.last() != stale {
			t.Error("the standby publishes reports, and cannot read the ledger")
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the standby ended with %v", err)
		}
	})
}

// forbidden is a store that a standby must not use.
type forbidden struct{ t *testing.T }

func (f forbidden) Load() (*ledger.Ledger, error) {
	f.t.Error("a standby loads the ledger as a leader does")
	return ledger.New(), nil
}

func (f forbidden) Save(*ledger.Ledger) error {
	f.t.Error("a standby saves")
	return nil
}

func (f forbidden) Close() error { return nil }

// conditions formats conditions without their times, one per line.
func conditions(all []metav1.Condition) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s %s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}
