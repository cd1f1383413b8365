package watch

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A hangingBody has one event, and then nothing until the request ends.
type hangingBody struct {
	io.Reader
	ctx context.Context
}

// Read implements io.Reader.
func (h hangingBody) Read(p []byte) (int, error) {
	if n, err := h.Reader.Read(p); err == nil {
		return n, nil
	}
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

// Close implements io.Closer.
func (h hangingBody) Close() error { return nil }

// Each watch asks the server to end it after a certain time. One that lasts longer without any
// event is aborted, and the next one resumes after its last event.
func TestHungWatchesAreResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var asked []string
		var ends time.Time // when the server was asked to end the last watch
		w := setOf(t, &rest.Config{Host: "https://server.example", Transport: apiserver.Answer(func(r *http.Request) *http.Response {
			answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
			query := r.URL.Query()
			if query.Get("watch") == "" {
				asked = append(asked, "list")
				answer.Body = io.NopCloser(strings.NewReader(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`))
				return answer
			}
			asked = append(asked, "watch "+query.Get("resourceVersion"))
			if now := time.Now(); !ends.IsZero() && now.Sub(ends) != watchGrace {
				t.Errorf("the watch before was given up %s after its end", now.Sub(ends))
			}
			seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
			if timeout := time.Duration(seconds) * time.Second; err != nil || timeout < watchTimeout || timeout > 2*watchTimeout {
				t.Errorf("timeoutSeconds is %q", query.Get("timeoutSeconds"))
			}
			ends = time.Now().Add(time.Duration(seconds) * time.Second)
			version := strconv.Itoa(5 + len(asked))
			event := `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","namespace":"app","resourceVersion":"` + version + `"}}}` + "\n"
			answer.Body = hangingBody{strings.NewReader(event), r.Context()}
			if len(asked) == 4 {
				cancel()
			}
			return answer
		})})
		k := watchOf("ConfigMap")
		k.res = connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}
		k.allowOpen()
		w.follow(ctx, k)
		if want := []string{"list", "watch 5", "watch 7", "watch 8"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
	})
}
