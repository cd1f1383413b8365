package discovery

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A kind that is not served, or not any more, is named with the versions in which it is, or with the
// APIService that is not available.
func TestWhyAKindIsNotServed(t *testing.T) {
	group := func(versions ...string) (g metav1.APIGroup) {
		for _, v := range versions {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{Version: v})
		}
		return g
	}
	kinds := func(kinds ...string) (l metav1.APIResourceList) {
		for _, k := range kinds {
			l.APIResources = append(l.APIResources, metav1.APIResource{Name: strings.ToLower(k) + "s", Kind: k})
		}
		return l
	}
	down := map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Available", "status": "False", "reason": "MissingEndpoints", "message": "endpoints for service/old in \"default\" have no addresses"},
	}}}
	const noAnswer = -1
	chest := schema.GroupVersionKind{Group: "old.example.com", Version: "v1beta1", Kind: "Chest"}
	cronJob := schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "CronJob"}
	for name, test := range map[string]struct {
		gvk       schema.GroupVersionKind
		forgotten bool
		answers   map[string]any
		want      string
	}{
		"another version": {chest, false, map[string]any{"/apis/old.example.com": group("v1", "v1beta1"), "/apis/old.example.com/v1": kinds("Chest")},
			`no matches for kind "Chest" in version "old.example.com/v1beta1": the cluster does not serve old.example.com/v1beta1 of kind Chest; it serves v1: change apiVersion in Git`},
		"not any more": {chest, true, map[string]any{"/apis/old.example.com": group("v2", "v1"), "/apis/old.example.com/v1": kinds("Chest"), "/apis/old.example.com/v2": kinds("Box", "Chest")},
			"the cluster no longer serves old.example.com/v1beta1 of kind Chest; it serves v2, v1: change"},
		"the version, and not the kind": {chest, false, map[string]any{"/apis/old.example.com": group("v1", "v1beta1"), "/apis/old.example.com/v1beta1": kinds("Box"), "/apis/old.example.com/v1": kinds("Chest")},
			"does not serve old.example.com/v1beta1 of kind Chest; it serves v1: change"},
		"another kind of the group": {chest, false, map[string]any{"/apis/old.example.com": group("v1"), "/apis/old.example.com/v1": kinds("Box")},
			"the cluster has no CustomResourceDefinition of kind Chest in group old.example.com with version v1beta1: place it"},
		"another version does not answer": {chest, false, map[string]any{"/apis/old.example.com": group("v2", "v1"), "/apis/old.example.com/v1": kinds("Chest"), "/apis/old.example.com/v2": noAnswer},
			"the cluster does not serve old.example.com/v1beta1 of kind Chest; it serves v1: change"},
		"a definition that went": {chest, true, nil, "the cluster no longer has a CustomResourceDefinition of kind Chest in group old.example.com"},
		"a built-in kind": {cronJob, false, map[string]any{"/apis/batch": group("v1"), "/apis/batch/v1": kinds("Job", "CronJob")},
			"the cluster does not serve batch/v1beta1 of kind CronJob; it serves v1: change apiVersion in Git"},
		"a built-in kind that is gone": {cronJob, false, nil, "the Kubernetes of the cluster does not have it"},
		"an API server that is down": {chest, false, map[string]any{"/apis/old.example.com/v1beta1": http.StatusServiceUnavailable, "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.old.example.com": down},
			`the cluster cannot serve old.example.com/v1beta1 now: its APIService v1beta1.old.example.com is not available: MissingEndpoints: endpoints for service/old in "default" have no addresses: not now`},
		"one of which nothing may be read": {chest, false, map[string]any{"/apis/old.example.com/v1beta1": http.StatusServiceUnavailable, "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.old.example.com": http.StatusForbidden},
			"the cluster cannot serve old.example.com/v1beta1 now: not now"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch a := test.answers[r.URL.Path].(type) {
				case nil:
					http.Error(w, "404 page not found", http.StatusNotFound)
				case int:
					if a == noAnswer {
						panic(http.ErrAbortHandler)
					}
					apiserver.Refuse(w, a, "not now")
				default:
					w.Header().Set("Content-Type", "application/json")
					json.NewEncoder(w).Encode(a) //nolint:errcheck // the client would see it
				}
			}))
			t.Cleanup(server.Close)
			k := kindsAt(server.URL)
			if test.forgotten {
				k.Forget(test.gvk)
			}
			if err := k.Resolve(t.Context(), map[schema.GroupVersionKind]bool{test.gvk: true}); err != nil {
				t.Fatal(err)
			}
			if got := k.Why(test.gvk).Error(); !strings.Contains(got, test.want) {
				t.Errorf("it says %q\nwant %q", got, test.want)
			}
		})
	}
}
