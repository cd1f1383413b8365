package member

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// An object that waits for a namespace is retried as soon as we have created the namespace,
// before its next retry is due. The watch event that follows adds nothing.
func TestNamespaceWeMakeRevives(t *testing.T) {
	namespaces := connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Namespaced: false}
	app := api.ID{Kind: "Namespace", Name: "app"}
	web := api.PlacementKey{Name: "web"}
	m := &work.Manifest{Object: &api.Object{ID: app, Hash: "hash", Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "app"},
	}}}}
	for code, revived := range map[int]bool{http.StatusCreated: true, http.StatusOK: false} {
		made := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "1", ResourceVersion: "7", Labels: map[string]string{api.ManagedByLabel: "prod"}},
		}
		s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			json.NewEncoder(w).Encode(made) //nolint:errcheck // the test would see it
		}))
		s.cfg.Encoder, s.applier.fresh = NewEncoder("prod", ""), map[string]bool{}
		s.works = map[api.PlacementKey]work.Work{web: {Placement: web, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}}}
		later := time.Now().Add(5 * time.Minute)
		there, elsewhere := cm("there"), api.ID{Kind: "ConfigMap", Namespace: "other", Name: "elsewhere"}
		s.trouble = map[api.ID]*trouble{there: {next: later}, elsewhere: {next: later}}
		it := inventory.Item{Version: "v1", Kind: "Namespace", Name: "app"}
		s.inventory(web).Items.Put(it)
		s.applier.apply(t.Context(), []task{{wanted: wanted{web, m}, res: namespaces, item: &it, found: &finding{}}}, map[api.PlacementKey]bool{})
		if s.live.Of(app) == nil {
			t.Fatalf("%d: the namespace is not made: %+v", code, s.trouble[app])
		}
		if next := s.trouble[there].next; next.Before(later) != revived || !s.trouble[elsewhere].next.Equal(later) {
			t.Errorf("answered %d, what is in it is tried at %s, and not at %s; elsewhere at %s", code, next, later, s.trouble[elsewhere].next)
		}
	}
}

// An object that is to be retried at once is retried even if nothing else has to be done for
// it.
func TestHurryHasItTried(t *testing.T) {
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s.trouble[cm("x")] = &trouble{next: time.Now().Add(time.Hour)}
	s.hurry("app")
	s.reschedule()
	select {
	case <-s.retry.C:
	case <-time.After(10 * time.Second):
		t.Error("nobody looks at it again")
	}
}
