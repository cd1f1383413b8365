package member

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// A changingServer serves the kind Gadget in some versions. It has one Gadget, which others have
// renamed versions for.
type changingServer struct {
	mu       sync.Mutex
	versions []string
	deleted  []string // the paths of deletions that succeeded
}

func (c *changingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var answer any
	rest, ofGroup := strings.CutPrefix(r.URL.Path, "/apis/example.com")
	version, path, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	switch {
	case r.URL.Path == "/api/v1":
		answer = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}}}
	case r.URL.Query().Has("watch"):
		<-r.Context().Done()
		return
	case ofGroup && version == "":
		group := metav1.APIGroup{Name: "example.com"}
		for _, v := range c.versions {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: v})
		}
		answer = group
	case ofGroup && !slices.Contains(c.versions, version):
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	case ofGroup && path == "":
		answer = metav1.APIResourceList{GroupVersion: "example.com/" + version, APIResources: []metav1.APIResource{{Name: "gadgets", Kind: "Gadget", Namespaced: true}}}
	case r.Method == http.MethodPatch:
		raw, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(raw, &answer) != nil {
			http.Error(w, "no object", http.StatusBadRequest)
			return
		}
		metadata := answer.(map[string]any)["metadata"].(map[string]any)
		metadata["uid"], metadata["resourceVersion"] = "1", "7"
	case r.Method == http.MethodDelete:
		c.deleted = append(c.deleted, r.URL.Path)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	default:
		answer = metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client would see it
}

func (c *changingServer) serve(versions ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions = versions
}

// When a cluster stops to serve the version of a manifest, the objects of the kind say so, also those
// that nobody has changed. What Git removes then is deleted in another version.
func TestVersionThatIsNoLongerServed(t *testing.T) {
	server := &changingServer{versions: []string{"v1", "v2"}}
	s := sessionAt(t, server)
	defer func() {
		for _, k := range s.watch.All() {
			k.Stop()
		}
		s.watch.Wait()
	}()
	one, two := gadget("one"), gadget("two")
	placed := func(manifests ...*work.Manifest) {
		s.setWorks([]*work.Work{{Placement: web, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}, Manifests: manifests, AllowDelete: true}})
		s.sync(t.Context())
	}
	placed(one, two)
	for _, m := range []*work.Manifest{one, two} {
		s.record.objects.Put(m.ID, &observed.Object{UID: "1", Version: 7, Fleet: "prod"})
		if state, _ := s.reporter.state(web, m.ID); !state.Applied.OK {
			t.Fatalf("not applied: %+v", state)
		}
	}
	server.serve("v2")
	changed := gadget("one")
	changed.Hash = "new"
	placed(changed, two)
	for range 5 { // what follows from the refusal
		s.record.progress.RetryAll()
		for id := range s.progress.Failures() {
			s.record.progress.Postpone(map[api.ID]bool{id: true})
		}
		if _, err := s.processChanges(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []api.ID{one.ID, two.ID} {
		state, _ := s.reporter.state(web, id)
		if want := "the cluster no longer serves example.com/v1 of kind Gadget; it serves v2: change apiVersion in Git"; !strings.Contains(state.Applied.Message(), want) {
			t.Errorf("%s says %q, want %q", id, state.Applied.Message(), want)
		}
	}
	placed()
	for range 3 {
		s.record.progress.RetryAll()
		s.sync(t.Context())
	}
	slices.Sort(server.deleted)
	if want := []string{"/apis/example.com/v2/namespaces/web/gadgets/one", "/apis/example.com/v2/namespaces/web/gadgets/two"}; !slices.Equal(server.deleted, want) {
		t.Errorf("deleted %q, want %q; %s", server.deleted, want, fmt.Sprint(maps.Collect(s.progress.Failures())))
	}
}

// An object without a namespace, of a kind that is namespaced on the cluster and that the commit does not define, says so.
func TestNamespacedObjectWithoutNamespace(t *testing.T) {
	s := sessionAt(t, &changingServer{versions: []string{"v1"}})
	defer func() {
		for _, k := range s.watch.All() {
			k.Stop()
		}
		s.watch.Wait()
	}()
	m := gadget("one")
	m.ID.Namespace = ""
	m.Object.Content.SetNamespace("")
	s.setWorks([]*work.Work{{Placement: web, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}, Manifests: []*work.Manifest{m}}})
	s.sync(t.Context())
	state, _ := s.reporter.state(web, m.ID)
	if want := "a Gadget is namespaced on this cluster, and the object has no namespace; write metadata.namespace"; state.Applied.OK || !strings.Contains(state.Applied.Message(), want) {
		t.Errorf("says %q, want %q", state.Applied.Message(), want)
	}
}

// Objects that Git removes right after their version went are not taken for gone.
func TestDeletionInAVersionThatIsNoLongerServed(t *testing.T) {
	server := &changingServer{versions: []string{"v1", "v2"}}
	s := sessionAt(t, server)
	defer func() {
		for _, k := range s.watch.All() {
			k.Stop()
		}
		s.watch.Wait()
	}()
	m := gadget("one")
	s.setWorks([]*work.Work{{Placement: web, Strategy: api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}, Manifests: []*work.Manifest{m}}})
	s.sync(t.Context())
	s.record.objects.Put(m.ID, &observed.Object{UID: "1", Version: 7, Fleet: "prod"})
	server.serve("v2")
	s.setWorks([]*work.Work{{Placement: web, AllowDelete: true}})
	s.sync(t.Context())
	if len(server.deleted) > 0 || s.inventory(web) == nil || !s.inventory(web).Items.Has(m.ID) {
		t.Fatalf("deleted %q, and the inventory has it: %v", server.deleted, s.inventory(web))
	}
	s.record.progress.RetryAll()
	s.sync(t.Context())
	if want := []string{"/apis/example.com/v2/namespaces/web/gadgets/one"}; !slices.Equal(server.deleted, want) {
		t.Errorf("deleted %q, want %q", server.deleted, want)
	}
}
