package member

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
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
	member.Name, member.Fleet, member.Encoder = "east", "prod", apply.NewEncoder("prod", "")
	member.Log, member.Report = slog.New(slog.NewTextHandler(t.Output(), nil)), func(protocol.Observation) {}
	a := New(member)
	c, err := connection.New(a.connection, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return a.newSession(c)
}

// held is an inventory of some objects of crp/web, and heldBy one of another placement.
func held(n int) *inventory.Inventory { return heldBy(web, n) }

func heldBy(p api.PlacementKey, n int) *inventory.Inventory {
	inv := inventory.New(p, placement.Revision{Commit: "c1", Hash: "h1"})
	for i := range n {
		inv.Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: fmt.Sprint("cm-", i), Commit: "c1", Hash: "h1"})
	}
	return inv
}

func oneManifest() *work.Manifest {
	id := api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}
	return &work.Manifest{Object: &api.Object{ID: id, Hash: "hash", Content: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "web"},
	}}}}
}

var (
	here    = protocol.Fleet{Name: "prod", ID: "ours", Source: "git.example.com/fleet"}
	another = protocol.Fleet{Name: "prod", ID: "theirs", Source: "git.example.com/other"}
)

// memberOf returns a session of a fleet at a server that sessions of other fleets use too.
func memberOf(t *testing.T, f protocol.Fleet, at *apiserver.ConfigMaps) *session {
	t.Helper()
	s := sessionAt(t, at)
	s.store.SetMembership(protocol.Membership{Fleet: f})
	s.membership.Fleet = f
	s.health.Namespaces = []string{api.Namespace}
	s.store.SetNamespaces(s.health.Namespaces)
	return s
}

// keeps makes a session write an inventory.
func keeps(t *testing.T, s *session, inv *inventory.Inventory) {
	t.Helper()
	s.lists(inv)
	if err := s.store.Save(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
}

// replaceWorks replaces the works, and nothing that was done for those before.
func (s *session) replaceWorks(works []*work.Work) {
	s.inventories.owned.ReplaceWorks(s.desired, works)
}

// lists makes an inventory one of those of the cluster.
func (s *session) lists(inv *inventory.Inventory) {
	all := s.inventories.owned.Inventories()
	all.Put(inv)
	s.inventories.owned.Loaded(all)
}

// inventory returns the inventory of a placement; nil if it has none.
func (s *session) inventory(p api.PlacementKey) *inventory.Inventory {
	return s.inventories.owned.Inventories().Of(p)
}

// failure returns why an object is not as desired; zero if it is.
func (s *session) failure(id api.ID) progress.Failure {
	f, _ := s.progress.Failure(id)
	return f
}

func cm(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "app", Name: name} }

var web = api.PlacementKey{Name: "web"}

func manifestOf(o map[string]any) *work.Manifest {
	u := &unstructured.Unstructured{Object: o}
	return &work.Manifest{Object: &api.Object{ID: api.IDOf(u), Content: u, Origin: api.Origin{Path: "apps/all.yaml", Line: 3}}}
}
