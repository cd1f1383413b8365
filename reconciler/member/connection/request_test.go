package connection

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Applies and dry runs request no validation that needs a second decoding.
func TestWhatIsAppliedIsReadOnce(t *testing.T) {
	var asked []string
	c := connAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("fieldValidation"))
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"app","uid":"1"}}`))
	}))
	id := api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}
	if _, err := c.Patch(t.Context(), configMapKind, id, []byte("{}"), true); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DryRun(t.Context(), configMapKind, id, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, got := range asked {
		if got != "Ignore" {
			t.Errorf("asked with fieldValidation=%q", got)
		}
	}
	if len(asked) != 2 {
		t.Errorf("%d requests", len(asked))
	}
}

// What is applied is read as YAML, which has fewer characters than JSON.
func TestWhatIsAppliedIsYAML(t *testing.T) {
	text := "a\x00\x1b\t\n\x7f\u0080\u0085\u009b\u00a0\ufeff\ufffd\ufffe\uffff\U0001F642\u2028é"
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]string
	if err := yaml.Unmarshal(escaped(body), &read); err != nil || read["text"] != text {
		t.Errorf("%q is read as %q: %v", text, read["text"], err)
	}
	if err := yaml.Unmarshal(body, &read); err == nil {
		t.Error("YAML has all characters by now")
	}
}

// A server that finds nothing wrong but that there is an object of that name would create it.
func TestDryRunCreate(t *testing.T) {
	for name, test := range map[string]struct {
		code    int
		refused bool
	}{
		"it would":              {http.StatusCreated, false},
		"there is one":          {http.StatusConflict, false},
		"a webhook denies it":   {http.StatusForbidden, true},
		"a server out of order": {http.StatusServiceUnavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			var requests []string
			c := connAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests = append(requests, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("dryRun"))
				if test.code >= http.StatusBadRequest {
					apiserver.Refuse(w, test.code, "refused")
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"app"}}`)) //nolint:errcheck // the test would see it
			}))
			err := c.DryRunCreate(t.Context(), configMapKind, api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}, []byte("{}"))
			var answer apierrors.APIStatus
			if refused := errors.As(err, &answer); refused != test.refused || err != nil && int(answer.Status().Code) != test.code {
				t.Errorf("%v", err)
			}
			if len(requests) == 0 || requests[0] != "POST /api/v1/namespaces/app/configmaps All" {
				t.Errorf("requests: %q", requests)
			}
		})
	}
}

// That a server does not serve a resource is no answer about an object: it may be there, and be served
// in another version.
func TestUnservedIsNotAbsent(t *testing.T) {
	id := api.ID{Kind: "ConfigMap", Namespace: "app", Name: "a"}
	for name, test := range map[string]struct {
		answer   http.HandlerFunc
		unserved bool
	}{
		"no such object": {func(w http.ResponseWriter, _ *http.Request) {
			apiserver.Refuse(w, http.StatusNotFound, `configmaps "a" not found`)
		}, false},
		"no such resource": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 page not found", http.StatusNotFound) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := connAt(t, test.answer)
			_, read := c.Read(t.Context(), configMapKind, id)
			_, deleted := c.Delete(t.Context(), configMapKind, id, "1", metav1.DeletePropagationBackground)
			_, replaced := c.Replace(t.Context(), configMapKind, id, []byte("{}"), "test")
			_, patched := c.Patch(t.Context(), configMapKind, id, []byte("{}"), true)
			for what, err := range map[string]error{"read": read, "deleted": deleted, "replaced": replaced} {
				if (err != nil) != test.unserved || Unserved(err) != test.unserved {
					t.Errorf("%s: %v", what, err)
				}
			}
			if Unserved(patched) != test.unserved || !NotFound(patched) {
				t.Errorf("patched: %v", patched)
			}
		})
	}
}
