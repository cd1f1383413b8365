package member

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// The watches that exist at the end of a pass are opened then, and those that the pass has ended
// are not.
func TestWatchesInUseAreOpenedAfterAPass(t *testing.T) {
	watched := make(chan string, 10)
	shelf := apiserver.NewConfigMaps()
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
		shelf.ServeHTTP(w, r)
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
