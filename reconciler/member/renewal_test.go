package member

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// After much was told at once the connection is another, and the watch goes on from
// where it was: nothing is listed again.
func TestRenewedConnectionsListNothing(t *testing.T) {
	was := renewal
	renewal = 20 * time.Millisecond
	t.Cleanup(func() { renewal = was })
	asked := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		version := r.URL.Query().Get("resourceVersion")
		if r.URL.Query().Get("watch") == "" {
			asked <- "list"
			io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`)
			return
		}
		asked <- "watch from " + version + " at " + r.RemoteAddr
		if version == "5" {
			fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","namespace":"app","resourceVersion":"7","annotations":{"large":%q}}}}`+"\n", strings.Repeat("x", 64<<10))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	s := sessionOf(t, configFor(server))
	s.changes, s.firsts = newChanges(), make(chan struct{}, 1)
	k := watchOf("ConfigMap")
	k.res = resource{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, true}
	k.underway.begin()
	s.running.Add(1)
	go s.follow(t.Context(), k)
	var got []string
	for range 3 {
		got = append(got, <-asked)
	}
	first, _ := strings.CutPrefix(got[1], "watch from 5 at ")
	second, resumed := strings.CutPrefix(got[2], "watch from 7 at ")
	if got[0] != "list" || !resumed || first == second {
		t.Errorf("asked: %q", got)
	}
	k.underway.end()
	s.running.Wait()
	if len(asked) > 0 {
		t.Errorf("asked for more: %s", <-asked)
	}
}
