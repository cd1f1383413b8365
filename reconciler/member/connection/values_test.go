package connection

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/memory"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// Values are counted wherever a text is cut, and not within strings.
func TestValuesAreCounted(t *testing.T) {
	tests := map[string]struct {
		text          string
		values, items int
	}{
		"scalars":         {`{"a":1,"b":"x"}`, 2, 0},
		"items":           {`{"items":[{"a":[]},{}]}`, 6, 2},
		"within a string": {`{"a":"{[,,,\"{[\\"}`, 1, 0},
		"after a string":  {`{"a":"\\","b":[[]]}`, 4, 0},
	}
	for name, test := range tests {
		for size := 1; size <= len(test.text); size++ {
			c := valueCounter{most: 10}
			for rest := test.text; rest != ""; {
				n := min(size, len(rest))
				if limit := c.count([]byte(rest[:n])); limit != "" {
					t.Fatalf("%s: more than %s", name, limit)
				}
				rest = rest[n:]
			}
			if c.values != test.values || c.items != test.items {
				t.Errorf("%s in pieces of %d: %d values and %d items, want %d and %d", name, size, c.values, c.items, test.values, test.items)
			}
		}
	}
}

// A small answer that would decode to much is refused before it is decoded, whatever is requested.
func TestDenseAnswersAreRefused(t *testing.T) {
	bodies := map[string]struct{ head, item, want string }{
		"objects of a list": {`{"kind":"List","apiVersion":"v1","metadata":{},"items":[{}`, `,{}`, "20000 objects in one answer"},
		"lists":             {`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":[[]`, `,[]`, "values in one answer"},
		"strings":           {`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","finalizers":[""`, `,""`, "values in one answer"},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			c := connOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{quota: newQuota(nil), next: apiserver.Answer(func(r *http.Request) *http.Response {
				if accept := r.Header.Get("Accept"); strings.Contains(accept, "protobuf") {
					t.Errorf("%s accepts %s", r.URL.Path, accept)
				}
				text := body.head + strings.Repeat(body.item, 4<<20/len(body.item))
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(text))}
			})}})
			id := api.ID{Kind: "ConfigMap", Namespace: "app", Name: "x"}
			requests := map[string]func() error{
				"page": func() error {
					_, err := c.Page(t.Context(), configMapKind.GroupVersionResource, "", &metav1.ListOptions{Limit: 500})
					return err
				},
				"whole page": func() error {
					_, err := c.WholePage(t.Context(), configMapKind, "", &metav1.ListOptions{Limit: 500})
					return err
				},
				"object": func() error { _, err := c.Read(t.Context(), configMapKind, id); return err },
				"apply":  func() error { _, err := c.Patch(t.Context(), configMapKind, id, []byte("{}"), true); return err },
				"kinds":  func() error { _, err := c.PreferredResources(t.Context()); return err },
			}
			for request, send := range requests {
				if err := send(); !IsExceeded(err) || !strings.Contains(Plain(err).Error(), body.want) {
					t.Errorf("%s: %v", request, err)
				}
			}
		})
	}
}

// An answer in a format that was not requested is not decoded.
func TestOnlyJSONIsDecoded(t *testing.T) {
	for _, kind := range []string{"application/vnd.kubernetes.protobuf", "application/cbor", "application/yaml"} {
		c := connOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{quota: newQuota(nil), next: apiserver.Answer(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Request: r, Body: io.NopCloser(strings.NewReader("k8s\x00"))}
		})}})
		if _, err := c.Page(t.Context(), configMapKind.GroupVersionResource, "", &metav1.ListOptions{Limit: 500}); err == nil || !strings.Contains(err.Error(), "although JSON was requested") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Few large answers are read at the same time, and small ones do not wait for them.
func TestLargeAnswersTakeTurns(t *testing.T) {
	var mu sync.Mutex
	reading, most := 0, 0
	large := apiserver.Answer(func(r *http.Request) *http.Response {
		body := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"app"},"data":{"x":"`
		text := io.MultiReader(strings.NewReader(body), io.LimitReader(apiserver.Repeat('x'), mediumAnswer), readerFunc(func([]byte) (int, error) {
			mu.Lock()
			reading++
			most = max(most, reading)
			mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			reading--
			mu.Unlock()
			return 0, io.EOF
		}))
		if r.URL.Path == "/readyz" {
			text = strings.NewReader("ok")
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(text)}
	})
	c := connOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{quota: newQuota(nil), next: large}})
	var requests sync.WaitGroup
	for range 10 {
		requests.Go(func() {
			c.Read(t.Context(), configMapKind, api.ID{Kind: "ConfigMap", Namespace: "app", Name: "x"}) //nolint:errcheck // what it reads is incomplete
		})
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	requests.Wait()
	if most == 0 || most > maxMedium {
		t.Errorf("%d large answers at the same time, want at most %d", most, maxMedium)
	}
}

// A member that sends large answers slowly has to make room for others, and is asked for shorter pages.
func TestSlowLargeAnswersMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := memory.New(0) // two answers at a time
		member := func(send func(r *http.Request, sent *io.PipeWriter)) *Conn {
			return connOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{quota: newQuota(pool.Share()), next: apiserver.Answer(func(r *http.Request) *http.Response {
				body, sent := io.Pipe()
				go send(r, sent)
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: body}
			})}})
		}
		large := []byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"x":"` + strings.Repeat("x", mediumAnswer) + `"},"items":[]}`)
		asked := make(chan int, 10)
		hostile := member(func(r *http.Request, sent *io.PipeWriter) {
			limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
			asked <- limit
			sent.Write(large[:len(large)-1]) //nolint:errcheck // and no more
			<-r.Context().Done()
			sent.Close()
		})
		ctx, cancel := context.WithCancel(t.Context())
		for range maxMedium {
			go hostile.Page(ctx, configMapKind.GroupVersionResource, "", &metav1.ListOptions{Limit: 500}) //nolint:errcheck // it never ends
		}
		time.Sleep(20 * time.Second) // they hold everything, until they time out
		healthy := member(func(_ *http.Request, sent *io.PipeWriter) {
			sent.Write(large) //nolint:errcheck // to a pipe
			sent.Close()
		})
		start := time.Now()
		if _, err := healthy.Page(t.Context(), configMapKind.GroupVersionResource, "", &metav1.ListOptions{Limit: 500}); err != nil {
			t.Error(err)
		}
		if waited := time.Since(start); waited > 3*time.Second {
			t.Errorf("waited for %v", waited)
		}
		synctest.Wait()
		for _, want := range []int{500, 500, 500 / 8} { // the one that was interrupted is asked for a shorter page
			if got := <-asked; got != want {
				t.Errorf("asked for %d, want %d", got, want)
			}
		}
		cancel()
		synctest.Wait()
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A server that offers groups without end is not asked for each of them.
func TestKindsAreBounded(t *testing.T) {
	asked := 0
	c := connOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{quota: newQuota(nil), next: apiserver.Answer(func(r *http.Request) *http.Response {
		asked++
		text := `{"kind":"APIVersions","versions":["v1"]}`
		if r.URL.Path == "/apis" {
			group := `{"name":"a.example.com","versions":[{"groupVersion":"a.example.com/v1","version":"v1"}]}`
			text = `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + strings.Repeat(group+",", MaxGroupVersions) + group + `]}`
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(text))}
	})}})
	if _, err := c.PreferredResources(t.Context()); !IsExceeded(err) || asked != 2 {
		t.Errorf("%v after %d requests", err, asked)
	}
}

// Neither is one whose kinds have long names, which are counted together; few are asked for at the same time.
func TestNamesOfKindsAreBounded(t *testing.T) {
	const versions, long = 200, 1 << 20
	var asked, asking, most atomic.Int32
	c := connOf(t, &rest.Config{Host: "https://server.example", Transport: bounded{quota: newQuota(nil), next: apiserver.Answer(func(r *http.Request) *http.Response {
		text := `{"kind":"APIVersions","versions":["v1"]}`
		switch {
		case r.URL.Path == "/apis":
			var groups []string
			for i := range versions {
				groups = append(groups, fmt.Sprintf(`{"name":"g%d.example.com","versions":[{"groupVersion":"g%d.example.com/v1","version":"v1"}]}`, i, i))
			}
			text = `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + strings.Join(groups, ",") + `]}`
		case r.URL.Path != "/api":
			asked.Add(1)
			for now := asking.Add(1); ; {
				if before := most.Load(); now <= before || most.CompareAndSwap(before, now) {
					break
				}
			}
			defer asking.Add(-1)
			text = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"` + strings.TrimPrefix(r.URL.Path, "/apis/") + `","resources":[{"name":"` + strings.Repeat("a", long) + `","kind":"A","verbs":["list"]}]}`
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(text))}
	})}})
	lists, err := c.PreferredResources(t.Context())
	if !IsExceeded(err) || len(lists) > 0 || asked.Load() > MaxResourceText/long+2*askedAtOnce || most.Load() > askedAtOnce {
		t.Errorf("%v: %d lists after %d requests, %d at once", err, len(lists), asked.Load(), most.Load())
	}
}
