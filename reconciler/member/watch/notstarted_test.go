package watch

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A watch that a server does not start is requested again from the same version with backoff,
// and after some attempts all objects are listed. If the version is too old, they are listed at
// once.
func TestWatchesThatAreNotStarted(t *testing.T) {
	again := slices.Repeat([]string{"watch 7"}, maxNotStarted)
	tests := map[string]struct {
		refuse int // how many watches are refused after one has ended
		status int
		reason string
		want   []string
	}{
		"too busy once":      {1, 429, "TooManyRequests", []string{"list", "watch 5", "watch 7", "watch 7"}},
		"too busy for long":  {maxNotStarted, 429, "TooManyRequests", slices.Concat([]string{"list", "watch 5", "watch 7"}, again)},
		"never taken":        {100, 500, "InternalError", slices.Concat([]string{"list", "watch 5", "watch 7"}, again, []string{"list"})},
		"too old":            {1, 410, "Expired", []string{"list", "watch 5", "watch 7", "list"}},
		"gone by itself":     {1, 410, "Gone", []string{"list", "watch 5", "watch 7", "list"}},
		"refused for itself": {100, 403, "Forbidden", slices.Concat([]string{"list", "watch 5", "watch 7"}, again, []string{"list"})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var asked []string
				var times []time.Time
				w := setOf(t, &rest.Config{Host: "https://server.example", Transport: apiserver.Answer(func(r *http.Request) *http.Response {
					answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
					say := func(text string) { answer.Body = io.NopCloser(strings.NewReader(text)) }
					what := "list"
					if r.URL.Query().Get("watch") != "" {
						what = "watch " + r.URL.Query().Get("resourceVersion")
					}
					asked, times = append(asked, what), append(times, time.Now())
					switch {
					case len(asked) == len(test.want):
						cancel()
						answer.StatusCode = http.StatusServiceUnavailable
						say("")
					case what == "list":
						say(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`)
					case len(asked) == 2:
						say(`{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","namespace":"app","resourceVersion":"7"}}}` + "\n")
					case len(asked) < 3+test.refuse:
						answer.StatusCode = test.status
						say(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + test.reason + `"}`)
					default:
						say("")
					}
					return answer
				})})
				k := watchOf("ConfigMap")
				k.res = connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}
				k.allowOpen()
				w.follow(ctx, k)
				if !slices.Equal(asked, test.want) {
					t.Errorf("asked %q, want %q", asked, test.want)
				}
				for i := 3; i < len(times); i++ {
					if asked[i] == "watch 7" && times[i].Sub(times[i-1]) < 100*time.Millisecond {
						t.Errorf("request %d came %s after the one before", i, times[i].Sub(times[i-1]))
					}
				}
			})
		})
	}
}
