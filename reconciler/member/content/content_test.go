package content

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Objects that Kubernetes creates in each namespace, objects with an owner, and objects in an
// inventory may be deleted with the namespace. A label alone is not enough, since copies of an
// object have it too.
func TestWhatGoesWithItsNamespace(t *testing.T) {
	configMaps, ours := schema.GroupKind{Kind: "ConfigMap"}, map[string]string{api.ManagedByLabel: "prod"}
	tests := map[string]struct {
		kind schema.GroupKind
		meta metav1.ObjectMeta
		want bool
	}{
		"ours":                         {configMaps, metav1.ObjectMeta{Name: "one", Labels: ours}, true},
		"a copy of ours":               {configMaps, metav1.ObjectMeta{Name: "copy", Labels: ours}, false},
		"ours by its name only":        {configMaps, metav1.ObjectMeta{Name: "one"}, false},
		"of another fleet":             {configMaps, metav1.ObjectMeta{Name: "one", Labels: map[string]string{api.ManagedByLabel: "test"}}, false},
		"of another group":             {schema.GroupKind{Group: "example.com", Kind: "ConfigMap"}, metav1.ObjectMeta{Name: "one", Labels: ours}, false},
		"of somebody else":             {configMaps, metav1.ObjectMeta{Name: "theirs"}, false},
		"on its way out":               {configMaps, metav1.ObjectMeta{Name: "theirs", DeletionTimestamp: &metav1.Time{}}, true},
		"owned":                        {configMaps, metav1.ObjectMeta{Name: "theirs", OwnerReferences: []metav1.OwnerReference{{Name: "owner"}}}, true},
		"of Kubernetes":                {configMaps, metav1.ObjectMeta{Name: "kube-root-ca.crt"}, true},
		"like one of Kubernetes":       {schema.GroupKind{Group: "example.com", Kind: "ConfigMap"}, metav1.ObjectMeta{Name: "kube-root-ca.crt"}, false},
		"the service account of all":   {schema.GroupKind{Kind: "ServiceAccount"}, metav1.ObjectMeta{Name: "default"}, true},
		"a service account of its own": {schema.GroupKind{Kind: "ServiceAccount"}, metav1.ObjectMeta{Name: "app"}, false},
	}
	owned := api.ID{Kind: "ConfigMap", Namespace: "app", Name: "one"}
	c := &Checker{Fleet: "prod", Owns: func(id api.ID) bool { return id == owned }}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.meta.Namespace = "app"
			if got := c.deletableWithNamespace(&metav1.PartialObjectMetadata{ObjectMeta: test.meta}, test.kind); got != test.want {
				t.Errorf("it may go: %t, want %t", got, test.want)
			}
		})
	}
}

// An object is not deleted if something would be lost with it, or if that cannot be determined.
func TestWhatWouldBeLost(t *testing.T) {
	const (
		definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com"
		claim      = "/api/v1/namespaces/app/persistentvolumeclaims/data"
		defined    = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.example.com"},"spec":{"group":"example.com","names":{"plural":"gadgets"},"versions":[{"name":"v1alpha1"},{"name":"v1","served":true}]}}`
		list       = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{},"items":[`
	)
	crd := connection.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}}
	pvc := connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, Namespaced: true}
	gadgets := api.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.example.com"}
	data := api.ID{Kind: "PersistentVolumeClaim", Namespace: "app", Name: "data"}
	tests := map[string]struct {
		res     connection.Resource
		id      api.ID
		answers map[string]string // by path; any other request is answered with 404
		want    string
	}{
		"a definition with an object": {
			crd, gadgets, map[string]string{definition: defined, "/apis/example.com/v1/gadgets": list + `{"metadata":{"name":"one"}}]}`},
			"the CustomResourceDefinition has content that is not gitfleet's: gadgets one",
		},
		"a definition whose objects are being deleted": {
			crd, gadgets, map[string]string{definition: defined, "/apis/example.com/v1/gadgets": list + `{"metadata":{"name":"one","deletionTimestamp":"2026-01-01T00:00:00Z"}}]}`}, "",
		},
		"a definition whose objects cannot be listed": {
			crd, gadgets, map[string]string{definition: defined}, "it cannot be told whether the CustomResourceDefinition has content: ",
		},
		"a definition that is gone": {crd, gadgets, nil, ""},
		"a bound claim": {
			pvc, data, map[string]string{claim: `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"app"},"spec":{"volumeName":"disk-1"}}`},
			"the PersistentVolumeClaim has content that is not gitfleet's: the volume disk-1",
		},
		"a claim without a volume": {pvc, data, map[string]string{claim: `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"app"},"spec":{}}`}, ""},
		"another kind":             {pvc, api.ID{Kind: "ConfigMap", Namespace: "app", Name: "data"}, nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			metrics := connection.NewMetrics()
			conn, err := connection.New(connection.Config{Cluster: "east", Timeout: time.Minute, Metrics: &metrics, Log: slog.New(slog.DiscardHandler)},
				&rest.Config{Host: "https://server.example", QPS: -1, Transport: apiserver.Answer(func(r *http.Request) *http.Response {
					code, body := http.StatusOK, test.answers[r.URL.Path]
					if body == "" {
						code, body = http.StatusNotFound, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`
					}
					return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(body))}
				})})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := &Checker{Conn: conn, Fleet: "prod", Owns: func(api.ID) bool { return false }, Timeout: time.Minute}
			if got := c.Of(t.Context(), test.res, test.id); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("would be lost: %q, want %q", got, test.want)
			}
		})
	}
}
