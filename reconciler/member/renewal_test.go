package member

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// After much was told at once the connection is another, and each watch goes on from
// where it was, also one that has told nothing yet: nothing is listed again.
func TestRenewedConnectionsListNothing(t *testing.T) {
	was := renewal
	renewal = 20 * time.Millisecond
	t.Cleanup(func() { renewal = was })
	type request struct{ kind, what, from string }
	asked := make(chan request, 20)
	quiet := make(chan bool, 10) // the watch that tells nothing has begun
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		kind, version := path.Base(r.URL.Path), r.URL.Query().Get("resourceVersion")
		if r.URL.Query().Get("watch") == "" {
			asked <- request{kind, "list", ""}
			io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`)
			return
		}
		asked <- request{kind, "watch " + version, r.RemoteAddr}
		w.(http.Flusher).Flush()
		switch {
		case kind == "secrets":
			quiet <- true
		case version == "5":
			<-quiet
			fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","namespace":"app","resourceVersion":"7","annotations":{"large":%q}}}}`+"\n", strings.Repeat("x", 64<<10))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	s := sessionOf(t, configFor(server))
	s.changes, s.firsts = newChanges(), make(chan struct{}, 1)
	for kind, name := range map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"} {
		k := watchOf(kind)
		k.res = resource{schema.GroupVersionResource{Version: "v1", Resource: name}, true}
		k.underway.begin()
		s.watch = append(s.watch, k)
		s.running.Add(1)
		go s.follow(t.Context(), k)
	}
	got := map[string][]string{}
	from := map[string]map[string]bool{"configmaps": {}, "secrets": {}}
	for range 6 {
		r := <-asked
		got[r.kind] = append(got[r.kind], r.what)
		if r.from != "" {
			from[r.kind][r.from] = true
		}
	}
	for kind, want := range map[string]string{"configmaps": "list, watch 5, watch 7", "secrets": "list, watch 5, watch 5"} {
		if all := strings.Join(got[kind], ", "); all != want || len(from[kind]) != 2 {
			t.Errorf("%s: asked %s over %d connections", kind, all, len(from[kind]))
		}
	}
	for _, k := range s.watch {
		k.underway.end()
	}
	s.running.Wait()
	if len(asked) > 0 {
		t.Errorf("asked for more: %v", <-asked)
	}
}
