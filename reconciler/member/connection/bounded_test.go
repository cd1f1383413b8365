package connection

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A response that never ends is not read to the end, and the cluster counts as reachable.
func TestAnswersAreBounded(t *testing.T) {
	c := connOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{quota: newQuota(nil), next: apiserver.Answer(func(r *http.Request) *http.Response {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(io.MultiReader(strings.NewReader(`"`), apiserver.Repeat('x'))),
		}
	})}})
	c.silent.Store(1)
	_, err := c.Read(t.Context(), configMapKind, api.ID{Kind: "ConfigMap", Namespace: "app", Name: "x"})
	if want := "the API server answered with more than 16 MiB"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if c.silent.Load() != 0 {
		t.Error("the cluster counts as silent")
	}
	if _, err := c.Page(t.Context(), configMapKind.GroupVersionResource, "", &metav1.ListOptions{Limit: 1}); err == nil || !strings.Contains(err.Error(), "more than 32 MiB") {
		t.Errorf("list: %v", err)
	}
}

// A page that is too large is requested again with fewer objects, so that a kind with many
// large objects can be listed. The next pages of the list use the limit that worked.
func TestTooLargePagesAreShortened(t *testing.T) {
	var limits []string
	c := connOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{quota: newQuota(nil), next: apiserver.Answer(func(r *http.Request) *http.Response {
		limit := r.URL.Query().Get("limit")
		limits = append(limits, limit+" from "+r.URL.Query().Get("continue"))
		body := io.MultiReader(strings.NewReader(`"`), apiserver.Repeat('x'))
		if limit == "7" {
			next := map[string]string{"": "second", "second": "third"}[r.URL.Query().Get("continue")]
			body = strings.NewReader(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"` + next + `"},"items":[{}]}`)
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(body)}
	})}})
	opts := metav1.ListOptions{Limit: 500, Continue: "there"}
	if _, err := c.WholePage(t.Context(), configMapKind, "", &opts); err != nil {
		t.Fatal(err)
	}
	if opts.Limit != 7 {
		t.Errorf("the next page begins with the limit %d", opts.Limit)
	}
	want := []string{"500 from there", "62 from there", "7 from there"}
	if !slices.Equal(limits, want) {
		t.Errorf("asked for %q, want %q", limits, want)
	}
	limits = nil
	items := 0
	_, err := EachItem(t.Context(), func() *rest.Request { return c.Bulk().Get().AbsPath("api/v1/pods") }, func(struct{}) error { items++; return nil })
	if want := []string{"500 from ", "62 from ", "7 from ", "7 from second", "7 from third"}; err != nil || items != 3 || !slices.Equal(limits, want) {
		t.Errorf("%d items, %v, asked for %q, want %q", items, err, limits, want)
	}
}
