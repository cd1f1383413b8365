package member

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An inventory drops an object that is to be removed only when the object is gone. It is not
// enough that discovery does not list its kind: discovery may be stale, an aggregated API may
// be down, or another version may be served.
func TestObjectsOfAKindThatIsNotServedAreNotForgotten(t *testing.T) {
	const version, group = "/apis/example.com/v1", "/apis/example.com"
	const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	const object = "/namespaces/web/gadgets/one"
	gadgets := metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "gadgets", Kind: "Gadget", Namespaced: true}}}
	newer := metav1.APIResourceList{GroupVersion: "example.com/v2", APIResources: gadgets.APIResources}
	gadget := func(version string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/" + version, Kind: "Gadget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "one", UID: "1", Labels: map[string]string{api.ManagedByLabel: "prod"}},
		}
	}
	crds := metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		Items:    []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.com"}}, {ObjectMeta: metav1.ObjectMeta{Name: "other.example.org"}}},
	}
	crd := func(kind string) map[string]any {
		return map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gadgets.example.com"},
			"spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": kind}},
		}
	}
	tests := map[string]struct {
		answers   map[string]any // responses by path; a number is a status code; other paths are not found
		forgotten bool
		deleted   string // the path
		says      string
	}{
		"kind and definition are gone": {
			map[string]any{definitionsPath: metav1.PartialObjectMetadataList{TypeMeta: crds.TypeMeta}}, true, "", "",
		},
		"a definition of another kind of the group": {
			map[string]any{definitionsPath: crds, definitionsPath + "/gadgets.example.com": crd("Gizmo")}, true, "", "",
		},
		"served again": {
			map[string]any{version: gadgets, version + object: gadget("v1")}, true, version + object, "",
		},
		"served in another version": {
			map[string]any{
				group:                           metav1.APIGroup{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{{Version: "v2"}}},
				"/apis/example.com/v2":          newer,
				"/apis/example.com/v2" + object: gadget("v2"),
			}, true, "/apis/example.com/v2" + object, "",
		},
		"discovery is stale": {
			map[string]any{definitionsPath: crds, definitionsPath + "/gadgets.example.com": crd("Gadget")}, false, "",
			"the cluster does not serve the kind Gadget.example.com, but has its CustomResourceDefinition gadgets.example.com",
		},
		"its API server is down":        {map[string]any{version: http.StatusServiceUnavailable}, false, "", "not now"},
		"its group cannot be read":      {map[string]any{group: http.StatusServiceUnavailable}, false, "", "not now"},
		"definitions cannot be read":    {map[string]any{definitionsPath: http.StatusForbidden}, false, "", "whether the kind Gadget.example.com is gone for good cannot be told: not now"},
		"its definition cannot be read": {map[string]any{definitionsPath: crds, definitionsPath + "/gadgets.example.com": http.StatusForbidden}, false, "", "cannot be told: not now"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked, deleted []string
			s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path)
				w.Header().Set("Content-Type", "application/json")
				switch a := test.answers[r.URL.Path].(type) {
				case nil:
					apiserver.Refuse(w, http.StatusNotFound, "the server could not find the requested resource")
				case int:
					apiserver.Refuse(w, a, "not now")
				default:
					if r.Method == http.MethodDelete {
						deleted = append(deleted, r.URL.Path)
						a = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
					}
					json.NewEncoder(w).Encode(a)
				}
			}))
			s.works, s.trouble, s.brake.braked = map[api.PlacementKey]work.Work{web: {Placement: web, Remove: true}}, map[api.ID]*trouble{}, map[api.ID]braked{}
			it := inventory.Item{Group: "example.com", Version: "v1", Kind: "Gadget", Namespace: "web", Name: "one", Hash: "hash", UID: "1"}
			s.inventory(web).Items.Put(it)
			if err := s.kinds.Resolve(t.Context(), map[schema.GroupVersionKind]bool{it.GroupVersionKind(): true}); err != nil {
				t.Fatal(err)
			}
			s.kinds = discovery.New(s.conn.Discovery) // discovery did not list the kind when the session began
			s.finder = discovery.NewFinder(s.conn, s.kinds)
			for range passingFailures {
				for _, bad := range s.trouble {
					bad.next = bad.since
				}
				s.pruner.prune(t.Context(), s.stales(it.ID()), map[api.PlacementKey]bool{})
			}
			if forgotten := !s.inv[web].Items.Has(it.ID()); forgotten != test.forgotten {
				t.Errorf("the inventory has forgotten it: %t, want %t; asked for %q", forgotten, test.forgotten, asked)
			}
			if want := slices.DeleteFunc([]string{test.deleted}, func(p string) bool { return p == "" }); !slices.Equal(deleted, want) {
				t.Errorf("deleted %q, want %q", deleted, want)
			}
			says := ""
			if t := s.trouble[it.ID()]; t != nil {
				says = t.notDeleted
			}
			if (says == "") != (test.says == "") || !strings.Contains(says, test.says) {
				t.Errorf("it says %q, want %q", says, test.says)
			}
		})
	}
}
