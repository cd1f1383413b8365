package watch

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A watch whose server closes the connection resumes over another one at the same version,
// without a list.
func TestWatchResumesAfterGoAway(t *testing.T) {
	asked := make(chan string, 10)
	from := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		version := r.URL.Query().Get("resourceVersion")
		switch {
		case r.URL.Query().Get("watch") == "":
			asked <- "list"
			io.WriteString(w, emptyList) //nolint:errcheck // the test would see it
		case version == "5":
			asked <- "watch 5"
			from <- r.RemoteAddr
			w.Header().Set("Connection", "close") // the server sends GOAWAY
			io.WriteString(w, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","namespace":"app","resourceVersion":"7"}}}`+"\n")
		default:
			asked <- "watch " + version
			from <- r.RemoteAddr
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	w := setOf(t, apiserver.Config(server))
	ctx, cancel := context.WithCancel(t.Context())
	defer w.Wait()
	defer cancel()
	w.Start(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMapKind, false)
	w.AllowOpen()
	if got := []string{<-asked, <-asked, <-asked}; !slices.Equal(got, []string{"list", "watch 5", "watch 7"}) {
		t.Errorf("asked %q", got)
	}
	if before, after := <-from, <-from; before == after {
		t.Error("it resumed over the connection that the server has ended")
	}
}

const emptyList = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`

// A kind is listed at once, and watched only once the watch may be opened. A watch that is stopped
// before then ends.
func TestWatchWaitsUntilItMayBeOpened(t *testing.T) {
	for name, allowed := range map[string]bool{"allowed": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var asked []string
				w := setOf(t, &rest.Config{Host: "https://server.example", Transport: apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
					body, end := io.Pipe()
					context.AfterFunc(r.Context(), func() { end.CloseWithError(r.Context().Err()) })
					if r.URL.Query().Get("watch") != "" {
						asked = append(asked, "watch")
					} else {
						asked = append(asked, "list")
						go func() {
							io.WriteString(end, emptyList) //nolint:errcheck // the test would see it
							end.Close()
						}()
					}
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
				})})
				k := w.Start(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMapKind, false)
				synctest.Wait()
				if !slices.Equal(asked, []string{"list"}) || !k.Complete() {
					t.Errorf("asked %q before the watch may be opened", asked)
				}
				want := []string{"list"}
				if allowed {
					want = append(want, "watch")
					k.allowOpen()
				} else {
					k.Stop()
				}
				synctest.Wait()
				if !slices.Equal(asked, want) {
					t.Errorf("asked %q, want %q", asked, want)
				}
				k.Stop()
				w.Wait()
			})
		})
	}
}
