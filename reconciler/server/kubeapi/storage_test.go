package kubeapi

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newStorage(t *testing.T, k *kind, version string) *storage {
	t.Helper()
	return &storage{serve(t, reportOf(load(t, "c1", files), crpOf("api", 1), crpOf("docs", 1), crpOf("web", 1))).api.store, k, version}
}

// A list has the newest version. A request for a version that is not known yet, or for exactly an
// older one, is refused; an older one as a minimum is satisfied.
func TestListsHaveTheNewestVersion(t *testing.T) {
	s := newStorage(t, clusterPlacements, "v1beta1")
	now := s.store.Version()
	version := func(v uint64) string { return strconv.FormatUint(v, 10) }
	for name, test := range map[string]struct {
		options internalversion.ListOptions
		reason  metav1.StatusReason
	}{
		"any":                       {internalversion.ListOptions{}, ""},
		"from any cache":            {internalversion.ListOptions{ResourceVersion: "0"}, ""},
		"not older than an old":     {internalversion.ListOptions{ResourceVersion: version(now - 1), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, ""},
		"not older than the newest": {internalversion.ListOptions{ResourceVersion: version(now)}, ""},
		"exactly the newest":        {internalversion.ListOptions{ResourceVersion: version(now), ResourceVersionMatch: metav1.ResourceVersionMatchExact}, ""},
		"exactly an old":            {internalversion.ListOptions{ResourceVersion: version(now - 1), ResourceVersionMatch: metav1.ResourceVersionMatchExact}, metav1.StatusReasonExpired},
		"a version to come":         {internalversion.ListOptions{ResourceVersion: version(now + 1)}, metav1.StatusReasonTimeout},
		"no number":                 {internalversion.ListOptions{ResourceVersion: "x"}, metav1.StatusReasonBadRequest},
		"no token":                  {internalversion.ListOptions{Continue: "?"}, metav1.StatusReasonBadRequest},
		"a token of another form":   {internalversion.ListOptions{Continue: base64.RawURLEncoding.EncodeToString([]byte("[]"))}, metav1.StatusReasonBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.List(t.Context(), &test.options)
			if reason := apierrors.ReasonForError(err); err != nil && reason != test.reason || (err != nil) != (test.reason != "") {
				t.Fatalf("%v, want the reason %q", err, test.reason)
			}
			if err == nil && (got.(*list).ResourceVersion != version(now) || len(got.(*list).Items) != 3 || got.(*list).Kind != "ClusterResourcePlacementList") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// All pages of a list have the version of the first one, so that a watch from there misses nothing
// that changed between the pages.
func TestPagesHaveTheVersionOfTheFirst(t *testing.T) {
	s := serve(t, reportOf(nil, crpOf("api", 1), crpOf("docs", 1), crpOf("web", 1)))
	var first, second metav1.PartialObjectMetadataList
	const path = placementPath + "/clusterresourceplacements?limit=2"
	s.get(path, &first)
	if first.RemainingItemCount == nil || *first.RemainingItemCount != 1 || first.Continue == "" {
		t.Fatalf("the first page: %+v", first.ListMeta)
	}
	s.api.Publish(reportOf(nil, crpOf("api", 2), crpOf("web", 2)))
	s.get(path+"&continue="+url.QueryEscape(first.Continue), &second)
	if second.ResourceVersion != first.ResourceVersion || second.Continue != "" || second.RemainingItemCount != nil || len(second.Items) != 1 || second.Items[0].Generation != 2 {
		t.Errorf("the second page: %+v", second)
	}
}

// A watch begins with the existing objects, or after a version, as its options say; bookmarks are
// sent to clients that allow them.
func TestWatchesBeginAsRequested(t *testing.T) {
	const newest = "newest" // stands for that version
	yes, no := true, false
	for name, test := range map[string]struct {
		options internalversion.ListOptions
		initial int
		mark    string // whether the bookmark after the initial objects says that it ends them
		reason  metav1.StatusReason
	}{
		"without a version":                   {internalversion.ListOptions{}, 3, "", ""},
		"without a version, with bookmarks":   {internalversion.ListOptions{AllowWatchBookmarks: true}, 3, "plain", ""},
		"with initial events":                 {internalversion.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true}, 3, "initial", ""},
		"with initial events after a version": {internalversion.ListOptions{ResourceVersion: newest, SendInitialEvents: &yes, AllowWatchBookmarks: true}, 3, "initial", ""},
		"without initial events":              {internalversion.ListOptions{SendInitialEvents: &no}, 0, "", ""},
		"after a version":                     {internalversion.ListOptions{ResourceVersion: newest}, 0, "", ""},
		"after a version of another process":  {internalversion.ListOptions{ResourceVersion: "7"}, 0, "", metav1.StatusReasonExpired},
		"after no number":                     {internalversion.ListOptions{ResourceVersion: "x"}, 0, "", metav1.StatusReasonBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			served := serve(t, reportOf(nil, crpOf("api", 1), crpOf("docs", 1), crpOf("web", 1)))
			s := &storage{served.api.store, clusterPlacements, "v1beta1"}
			now := strconv.FormatUint(s.store.Version(), 10)
			if test.options.ResourceVersion == newest {
				test.options.ResourceVersion = now
			}
			w, err := s.Watch(t.Context(), &test.options)
			if err != nil || test.reason != "" {
				if reason := apierrors.ReasonForError(err); err == nil || reason != test.reason {
					t.Errorf("%v, want the reason %q", err, test.reason)
				}
				return
			}
			defer w.Stop()
			for range test.initial {
				if e := <-w.ResultChan(); e.Type != watch.Added {
					t.Errorf("event %+v", e)
				}
			}
			if test.mark != "" {
				e := <-w.ResultChan()
				m, err := json.Marshal(e.Object)
				if err != nil || e.Type != watch.Bookmark || strings.Contains(string(m), metav1.InitialEventsAnnotationKey) != (test.mark == "initial") || !strings.Contains(string(m), `"resourceVersion":"`+now+`"`) {
					t.Errorf("bookmark %s %s, %v", e.Type, m, err)
				}
			}
			served.api.Publish(reportOf(nil, crpOf("api", 1), crpOf("docs", 1), crpOf("web", 2)))
			if e := <-w.ResultChan(); e.Type != watch.Modified {
				t.Errorf("event %+v before the change", e)
			}
		})
	}
}

// A watch of the objects of a commit shows what a selector matches and no longer matches, and the last state of what is deleted.
func TestWatchOfDeclaredObjects(t *testing.T) {
	commit := func(labels string) *status.Report {
		all := maps.Clone(files)
		if labels != "" {
			all["a.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web, labels: " + labels + "}\ndata: {labels: '" + labels + "'}\n")}
		}
		all["b.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: web}\n")}
		return reportOf(load(t, "c", all))
	}
	first := commit("{team: shop}")
	served := serve(t, first)
	s := &storage{served.api.store, newCatalog(first.InForce).byResource[schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}], "v1"}
	shop, err := labels.Parse("team=shop")
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(request.WithNamespace(t.Context(), "web"), &internalversion.ListOptions{LabelSelector: shop})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	last := uint64(0)
	expect := func(typ watch.EventType, data string) {
		t.Helper()
		e := <-w.ResultChan()
		var o corev1.ConfigMap
		raw, err := e.Object.(*store.Object).JSON()
		if err != nil || json.Unmarshal(raw, &o) != nil || e.Type != typ || o.Name != "a" || o.Data["labels"] != data {
			t.Errorf("%s %s, %v", e.Type, raw, err)
		}
		if v, err := strconv.ParseUint(o.ResourceVersion, 10, 64); err != nil || v <= last {
			t.Errorf("the version is %s after %d", o.ResourceVersion, last)
		} else {
			last = v
		}
	}
	expect(watch.Added, "{team: shop}")
	for _, step := range []struct {
		labels string
		typ    watch.EventType
		data   string
	}{
		{"{team: shop, a: b}", watch.Modified, "{team: shop, a: b}"}, {"{team: web}", watch.Deleted, "{team: web}"},
		{"{team: shop}", watch.Added, "{team: shop}"}, {"", watch.Deleted, "{team: shop}"}, {"{team: shop}", watch.Added, "{team: shop}"},
	} {
		served.api.Publish(commit(step.labels))
		expect(step.typ, step.data)
	}
	served.api.Publish(reportOf(load(t, "none", files))) // no ConfigMap is left
	expect(watch.Deleted, "{team: shop}")
}

// An object is served in the requested version without the fields that it does not have. Unknown
// objects and namespaces are not found.
func TestGetInEachVersion(t *testing.T) {
	ctx := request.WithNamespace(t.Context(), "web")
	if o, err := newStorage(t, overrides, "v1beta1").Get(ctx, "login", nil); err != nil || o.GetObjectKind().GroupVersionKind().Kind != "ResourceOverride" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := newStorage(t, overrides, "v1beta1").Get(request.WithNamespace(t.Context(), "default"), "login", nil); !apierrors.IsNotFound(err) {
		t.Errorf("in another namespace: %+v, %v", o, err)
	}
	if o, err := newStorage(t, clusterPlacements, "v1").Get(ctx, "web", nil); err != nil || o.GetObjectKind().GroupVersionKind().Version != "v1" {
		t.Errorf("a cluster-scoped object from a namespace: %+v, %v", o, err)
	}
}

// A client that comes before the first commit may retry after a second.
func TestClientsMayRetryUntilThereIsACommit(t *testing.T) {
	w := httptest.NewRecorder()
	serve(t, nil).api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, placementPath+"/clusterresourceplacements", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "no commit is in force yet") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// A field of a dotted path is removed, and nothing else; a path that does not exist is ignored.
func TestRemoveAField(t *testing.T) {
	for path, want := range map[string]string{
		"spec.a.b": `{"spec":{"a":{},"c":2}}`, "spec.a": `{"spec":{"c":2}}`, "spec": `{}`,
		"spec.c.x": `{"spec":{"a":{"b":1},"c":2}}`, "status.x": `{"spec":{"a":{"b":1},"c":2}}`,
	} {
		var content, wanted map[string]any
		if json.Unmarshal([]byte(`{"spec":{"a":{"b":1},"c":2}}`), &content) != nil || json.Unmarshal([]byte(want), &wanted) != nil {
			t.Fatal(want)
		}
		if remove(content, path); !reflect.DeepEqual(content, wanted) {
			t.Errorf("without %s: %v, want %s", path, content, want)
		}
	}
}

// A field of the items of a list is removed from all of them.
func TestRemoveAFieldOfItems(t *testing.T) {
	content := map[string]any{"spec": map[string]any{"stages": []any{map[string]any{"name": "a", "max": 1}, map[string]any{"max": 2}, "odd"}}}
	remove(content, "spec.stages[].max")
	remove(content, "spec.other[].max")
	want := map[string]any{"spec": map[string]any{"stages": []any{map[string]any{"name": "a"}, map[string]any{}, "odd"}}}
	if !reflect.DeepEqual(content, want) {
		t.Errorf("%v, want %v", content, want)
	}
}

// Each request that cannot be served has the status code and the reason for it.
func TestRequestsThatAreNotServed(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files), crpOf("web", 1)))
	for _, test := range []struct {
		method, path string
		code         int
		text         string
	}{
		{"GET", placementPath + "/unknown", http.StatusNotFound, "the hub has no such resource"},
		{"GET", placementPath + "/namespaces/web/clusterresourceplacements", http.StatusNotFound, "the hub has no such resource"},
		{"GET", "/api/v1/namespaces/web", http.StatusOK, `"name":"web"`},
		{"GET", placementPath + "/clusterresourceplacements/web/status", http.StatusOK, `"name":"web"`},
		{"GET", placementPath + "/clusterresourceplacements/web/scale", http.StatusNotFound, "web/scale"},
		{"GET", placementPath + "/clusterresourceplacements/api", http.StatusNotFound, `\"api\" not found`},
		{"GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x", http.StatusMethodNotAllowed, "selfsubjectaccessreviews"},
		{"GET", "/apis/apps", http.StatusOK, `"groupVersion":"apps/v1"`},
		{"GET", "/apis/apps/v2", http.StatusNotFound, "the hub has nothing at /apis/apps/v2"},
		{"GET", "/apis/none.example.com", http.StatusNotFound, "the hub has nothing at /apis/none.example.com"},
		{"GET", "/api/v1", http.StatusOK, `"name":"secrets"`},
		{"GET", "/version", http.StatusOK, "+gitfleet"},
	} {
		if code, text := s.ask(test.method, test.path, "application/json", ""); code != test.code || !strings.Contains(text, test.text) {
			t.Errorf("%s %s: %d %s\nwant %d and %s", test.method, test.path, code, text, test.code, test.text)
		}
	}
}
