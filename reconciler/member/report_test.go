package member

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// A stuck server answers everything until an object has been applied, and then no
// write of an inventory until it is let go on.
type stuck struct {
	next            http.RoundTripper
	applied, noting *atomic.Bool
	goOn            <-chan struct{}
}

// RoundTrip has the request answered, or waits.
func (s *stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method != http.MethodPatch:
	case strings.HasSuffix(r.URL.Path, "/namespaces/web"):
		s.applied.Store(true)
	case s.applied.Load() && strings.Contains(r.URL.Path, "/configmaps/inventory-"):
		s.noting.Store(true)
		select {
		case <-s.goOn:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return s.next.RoundTrip(r)
}

// Whoever waits for an object need not wait for the inventory that notes it:
// while that is being written, the object is reported as applied.
func TestAppliedIsToldBeforeTheInventoryIsWritten(t *testing.T) {
	cluster := simulated.New(simulated.Options{}).Cluster("east")
	goOn := make(chan struct{})
	var applied, noting atomic.Bool
	told := make(chan ledger.WorkSeen, 100)
	agent := New(Config{
		Name: "east", Fleet: "prod", Encoder: NewEncoder("prod", "https://git.example/hub.git"), Log: slog.New(slog.DiscardHandler),
		Connect: func(context.Context) (*rest.Config, error) { return cluster.Config(), nil },
		Wrap:    func(next http.RoundTripper) http.RoundTripper { return &stuck{next, &applied, &noting, goOn} },
		Report: func(o ledger.Observation) {
			if seen, ok := o.(ledger.WorkSeen); ok {
				told <- seen
			}
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	defer func() { cancel(); <-ended }()

	object := &api.Object{ID: api.ID{Kind: "Namespace", Name: "web"}, Hash: "one", Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "web"},
	}}}
	agent.Set([]work.Work{{
		Placement: api.PlacementKey{Name: "web"}, Revision: placement.Revision{Commit: "v1", Hash: "first"},
		Strategy:  api.ApplyStrategy{Type: api.ServerSideApply, WhenToTakeOver: api.TakeOverAlways},
		Manifests: []*work.Manifest{{Object: object}},
	}})
	for {
		select {
		case seen := <-told:
			if !seen.Applied() {
				continue
			}
		case <-ctx.Done():
			t.Fatalf("it is not reported as applied; was it applied %t, is that being noted %t", applied.Load(), noting.Load())
		}
		break
	}
	close(goOn)
	for !noting.Load() { // it is written all the same
		if ctx.Err() != nil {
			t.Fatal("the inventory does not say what was applied")
		}
		time.Sleep(time.Millisecond)
	}
}
