package member

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// The watches that exist at the end of a pass are opened then, and those that the pass has ended
// are not.
func TestWatchesInUseAreOpenedAfterAPass(t *testing.T) {
	watched := make(chan string, 10)
	server := apiserver.NewConfigMaps()
	s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			watched <- r.URL.Path
			<-r.Context().Done()
			return
		}
		if strings.HasPrefix(r.URL.Path, "/apis/apps/") {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`) //nolint:errcheck // the test would see it
			return
		}
		server.ServeHTTP(w, r)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer s.watch.Wait()
	defer cancel()
	deployments := connection.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespaced: true}
	unused := s.watch.Start(ctx, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, deployments, false)
	used := s.watch.Start(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, inventory.ConfigMaps, false)
	if !s.watch.WaitForLists(ctx, []*watch.Kind{unused, used}, time.Minute) {
		t.Fatal("nothing is listed")
	}
	if err := s.handle(ctx, byWorks); err != nil {
		t.Fatal(err)
	}
	if all := s.watch.All(); len(all) != 1 || all[0] != used {
		t.Errorf("there are %v", all)
	}
	if path := <-watched; path != "/api/v1/configmaps" {
		t.Errorf("%s is watched", path)
	}
}

// If works were replaced before they were used, everything is reported: the loop may have asked for something in between that
// the works before and after do not show.
func TestSkippedWorksHaveEverythingReported(t *testing.T) {
	for _, skipped := range []bool{false, true} {
		s := memberOf(t, here, apiserver.NewConfigMaps())
		if err := s.inventories.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		reported := map[string]bool{}
		s.cfg.Report = func(o protocol.Observation) {
			if w, ok := o.(protocol.WorkSeen); ok {
				reported[w.Placement.Name] = true
			}
		}
		works := func(version string) []*work.Work {
			return []*work.Work{{Placement: api.PlacementKey{Name: "same"}}, {Placement: web, Revision: placement.Revision{Hash: version}}}
		}
		s.setWorks(works("1"))
		s.sync(t.Context())
		clear(reported)
		if skipped {
			s.Set([]*work.Work{})
		}
		s.Set(works("2"))
		s.lastWorks = <-s.newWorks
		if err := s.act(t.Context(), byWorks); err != nil {
			t.Fatal(err)
		}
		if !reported[web.Name] || reported["same"] != skipped {
			t.Errorf("skipped: %t, reported: %v", skipped, reported)
		}
	}
}

// A session that has left its cluster handles nothing more, whatever arrives while it ends.
func TestNothingIsHandledAfterLeaving(t *testing.T) {
	for range 20 {
		s := memberOf(t, here, apiserver.NewConfigMaps())
		if err := s.inventories.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		s.Leave()
		go func() { ended <- s.run(ctx) }()
		<-s.left
		s.Set([]*work.Work{})
		s.SetMembership(protocol.Membership{Fleet: here})
		s.Check()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if len(s.newWorks) == 0 || len(s.newMembership) == 0 || len(s.check) == 0 {
			t.Fatal("something was handled after the cluster was left")
		}
	}
}

// A cluster is left even if there is other work to do.
func TestLeavingIsNotDelayed(t *testing.T) {
	s := sessionAt(t, apiserver.NewConfigMaps())
	if err := s.handle(t.Context(), byLeave); err != nil {
		t.Fatal(err)
	}
	s.reschedule() // as after every change that a watch reports
	select {
	case <-s.retry.C:
	case <-time.After(10 * time.Second):
		t.Error("nobody is woken to leave")
	}
}
