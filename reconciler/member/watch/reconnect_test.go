package watch

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Watches resume over the new connection at the same version, without a list. The API server has not interrupted them.
func TestWatchesMoveToNewCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var asked []string
		server := func(name string) *rest.Config {
			return &rest.Config{Host: "https://" + name + ".example", QPS: -1, Transport: apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
				switch v := r.URL.Query(); {
				case r.URL.Path == "/readyz", strings.HasSuffix(r.URL.Path, "/kube-system"):
					return &http.Response{
						StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
						Body: io.NopCloser(strings.NewReader(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":"1"}}`)),
					}, nil
				case v.Get("watch") != "":
					asked = append(asked, name+" watch "+v.Get("resourceVersion"))
					body, end := io.Pipe()
					context.AfterFunc(r.Context(), func() { end.CloseWithError(r.Context().Err()) })
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
				}
				asked = append(asked, name+" list")
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
					Body: io.NopCloser(strings.NewReader(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`)),
				}, nil
			})}
		}
		current := server("old")
		w := setWith(t, func(context.Context) (*rest.Config, error) { return current, nil }, current)
		w.cfg.Interrupted = func() { t.Error("a watch counts as interrupted") }
		w.Start(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMapKind, false)
		w.AllowOpen()
		synctest.Wait()
		current = server("new")
		replaced := w.conn.Renew(ctx, "1").Replaced
		w.Reconnect()
		for _, c := range replaced {
			c.Close()
		}
		synctest.Wait()
		if got, want := strings.Join(asked, ", "), "old list, old watch 5, new watch 5"; got != want {
			t.Errorf("asked: %s\nwant:  %s", got, want)
		}
		cancel()
		w.Wait()
	})
}
