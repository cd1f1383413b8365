package discovery

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A kind counts as gone only if no version of it is served and no CustomResourceDefinition has it.
func TestServes(t *testing.T) {
	const group, definitions = "/apis/example.com", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	resources := func(gv string) metav1.APIResourceList {
		return metav1.APIResourceList{GroupVersion: gv, APIResources: []metav1.APIResource{{Name: "gadgets", Kind: "Gadget", Namespaced: true}}}
	}
	versions := metav1.APIGroup{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}, {Version: "v2"}}}
	list := func(names ...string) metav1.PartialObjectMetadataList {
		l := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		for _, name := range names {
			l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return l
	}
	definition := func(kind string) map[string]any {
		return map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gadgets.example.com"},
			"spec": map[string]any{"names": map[string]any{"kind": kind}},
		}
	}
	gadget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	tests := map[string]struct {
		kind    schema.GroupVersionKind
		answers map[string]any // responses by path; a number is a status code; other paths are not found
		version string         // the served version; empty if the kind is gone
		err     string
	}{
		"the same version":       {gadget, map[string]any{group: versions, group + "/v1": resources("example.com/v1"), group + "/v2": resources("example.com/v2")}, "v1", ""},
		"another version":        {gadget, map[string]any{group: versions, group + "/v2": resources("example.com/v2")}, "v2", ""},
		"no definition":          {gadget, map[string]any{definitions: list("gadgets.example.org")}, "", ""},
		"a definition that went": {gadget, map[string]any{definitions: list("gadgets.example.com")}, "", ""},
		"another definition":     {gadget, map[string]any{definitions: list("gadgets.example.com"), definitions + "/gadgets.example.com": definition("Gizmo")}, "", ""},
		"its definition":         {gadget, map[string]any{definitions: list("gadgets.example.com"), definitions + "/gadgets.example.com": definition("Gadget")}, "", "but has its CustomResourceDefinition gadgets.example.com"},
		"definitions forbidden":  {gadget, map[string]any{definitions: http.StatusForbidden}, "", "whether the kind Gadget.example.com is gone for good cannot be told: not now"},
		"a group that is down":   {gadget, map[string]any{group: versions, group + "/v1": http.StatusServiceUnavailable}, "", "not now"},
		"a built-in kind":        {schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "CronJob"}, map[string]any{"/api": metav1.APIVersions{}}, "", ""},
		"behind a proxy":         {schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "CronJob"}, nil, "", "whether the kind CronJob.batch is gone for good cannot be told"},
		"a login page":           {gadget, map[string]any{group: "hello"}, "", connection.ErrNotObject.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				switch a := test.answers[r.URL.Path].(type) {
				case nil:
					apiserver.Refuse(w, http.StatusNotFound, "the server could not find the requested resource")
				case int:
					apiserver.Refuse(w, a, "not now")
				default:
					w.Header().Set("Content-Type", "application/json")
					json.NewEncoder(w).Encode(a) //nolint:errcheck // the client would see it
				}
			}))
			t.Cleanup(server.Close)
			metrics := connection.NewMetrics()
			conn, err := connection.New(connection.Config{Cluster: "east", Timeout: time.Minute, Metrics: &metrics}, &rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(conn.Close)
			finder, before := NewFinder(conn, New(conn.Discovery)), 0
			for range 2 {
				got, served, err := finder.Serves(t.Context(), test.kind)
				if served != (test.version != "") || got.Version != test.version || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Errorf("served %t as %v, %v", served, got, err)
				}
				if before == 0 {
					before = asked
				}
			}
			if asked != before {
				t.Errorf("%d requests at once again", asked-before)
			}
		})
	}
}

// A kind that is known is not requested.
func TestServesKnownKinds(t *testing.T) {
	known := New(nil)
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	want := connection.Resource{GroupVersionResource: gvk.GroupVersion().WithResource("configmaps"), Namespaced: true}
	known.Add(gvk, want)
	if got, served, err := NewFinder(nil, known).Serves(t.Context(), gvk); got != want || !served || err != nil {
		t.Errorf("served %t as %v, %v", served, got, err)
	}
}
