package member

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
)

// sessionAt returns a session that uses a test server.
func sessionAt(t *testing.T, h http.Handler) *session {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return sessionOf(t, &rest.Config{Host: srv.URL})
}

func sessionOf(t *testing.T, cfg *rest.Config) *session {
	t.Helper()
	return sessionWith(t, Config{}, cfg)
}

func sessionWith(t *testing.T, member Config, credentials *rest.Config) *session {
	t.Helper()
	member.Name, member.Fleet, member.Encoder = "east", "prod", NewEncoder("prod", "")
	member.Log, member.Report = slog.New(slog.NewTextHandler(t.Output(), nil)), func(ledger.Observation) {}
	a := New(member)
	c, err := connection.New(a.connection, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	known := discovery.New(c.Discovery)
	w := watch.New(c, watch.Config{Cluster: member.Name, Restarts: a.cfg.Metrics.WatchRestarts, Log: a.cfg.Log})
	s := &session{
		Agent: a, conn: c, watch: w, expressions: availability.New(&a.cfg.Encoder.expressions), kinds: known, finder: discovery.NewFinder(c, known),
		inv: map[api.PlacementKey]*inventory.Inventory{}, live: observed.Objects{},
	}
	s.pods = pods.New(c, pods.Config{Cluster: member.Name, FailureTimeout: a.cfg.PodFailureTimeout, Wake: w.Changes.Nudge, Log: a.cfg.Log})
	s.store = inventory.NewStore(c, a.membership, inventory.Config{Cluster: member.Name, Fleet: member.Fleet, Live: &s.live, Log: a.cfg.Log})
	return s
}

// held is an inventory of some objects.
func held(n int) *inventory.Inventory {
	inv := &inventory.Inventory{Placement: web, Revision: placement.Revision{Commit: "c1", Hash: "h1"}}
	for i := range n {
		inv.Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: fmt.Sprint("cm-", i), Commit: "c1", Hash: "h1"})
	}
	return inv
}
