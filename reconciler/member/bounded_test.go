package member

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// An answer that does not end is not read to the end, and the cluster counts as reachable.
func TestAnswersAreBounded(t *testing.T) {
	s := sessionOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{answering(func(r *http.Request) *http.Response {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(io.MultiReader(strings.NewReader(`"`), repeating('x'))),
		}
	})}})
	s.silent.Store(1)
	configMaps := resource{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, true}
	_, err := s.read(t.Context(), configMaps, cm("x"))
	if want := "the API server answered with more than 16 MiB"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if s.silent.Load() != 0 {
		t.Error("the cluster counts as silent")
	}
	if _, err := s.page(t.Context(), configMaps.GroupVersionResource, "", metav1.ListOptions{Limit: 1}); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("list: %v", err)
	}
}

// A page that is too large is asked for again with fewer objects, so that a kind with many
// large objects can be listed.
func TestTooLargePagesAreShortened(t *testing.T) {
	var limits []string
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	s := sessionOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{answering(func(r *http.Request) *http.Response {
		limit := r.URL.Query().Get("limit")
		limits = append(limits, limit+" from "+r.URL.Query().Get("continue"))
		body := io.MultiReader(strings.NewReader(`"`), repeating('x'))
		if limit == "7" {
			body = strings.NewReader(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`)
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(body)}
	})}})
	if _, err := s.wholePage(t.Context(), resource{configMaps, true}, "", metav1.ListOptions{Limit: 500, Continue: "there"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"500 from there", "62 from there", "7 from there"}; !slices.Equal(limits, want) {
		t.Errorf("asked for %q, want %q", limits, want)
	}
}
