package member

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
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
	return a.newSession(c)
}

// held is an inventory of some objects.
func held(n int) *inventory.Inventory {
	inv := &inventory.Inventory{Placement: web, Revision: placement.Revision{Commit: "c1", Hash: "h1"}}
	for i := range n {
		inv.Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: fmt.Sprint("cm-", i), Commit: "c1", Hash: "h1"})
	}
	return inv
}
