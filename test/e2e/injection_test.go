package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// Faults are injected between an agent and a real API server, into some requests.
type faults struct {
	mu    sync.Mutex
	rules map[string]fault
}

// A fault is a condition for requests, and what happens to them. do may send them on.
type fault struct {
	when func(*http.Request) bool
	do   func(next http.RoundTripper, r *http.Request) (*http.Response, error)
}

func (f *faults) set(name string, x fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rules == nil {
		f.rules = map[string]fault{}
	}
	f.rules[name] = x
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

func (f *faults) find(r *http.Request) (fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.rules {
		if x.when(r) {
			return x, true
		}
	}
	return fault{}, false
}

// wrap puts the faults behind the recorder: failed requests are counted too.
func (f *faults) wrap(cfg *member.Config) {
	record := cfg.Wrap
	cfg.Wrap = func(next http.RoundTripper) http.RoundTripper {
		return record(roundTrip(func(r *http.Request) (*http.Response, error) {
			if x, ok := f.find(r); ok {
				return x.do(next, r)
			}
			return next.RoundTrip(r)
		}))
	}
}

// newFaulty returns an agent into whose requests faults can be injected.
func newFaulty(t *testing.T, adjust ...func(*member.Config)) (*agent, *faults) {
	f := &faults{}
	return newAgent(t, append([]func(*member.Config){f.wrap}, adjust...)...), f
}

// shortTimeout shortens an agent's timeout.
func shortTimeout(cfg *member.Config) { cfg.Timeout = time.Second }

// longTimeout lengthens an agent's timeout, so that a test does not see it.
func longTimeout(cfg *member.Config) { cfg.Timeout = time.Hour }

// writesOf matches writes of one object.
func writesOf(name string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+name)
	}
}

// refusing responds like an API server that refuses the request.
func refusing(code int, reason metav1.StatusReason, message string, header ...string) func(http.RoundTripper, *http.Request) (*http.Response, error) {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	if err != nil {
		panic(err)
	}
	return answering(code, "application/json", string(body), header...)
}

func answering(code int, contentType, body string, header ...string) func(http.RoundTripper, *http.Request) (*http.Response, error) {
	return func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {contentType}}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{
			StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
		}, nil
	}
}

// hanging never responds.
func hanging(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// loseResponse sends the request and loses the response half-way.
func loseResponse(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	half, _ := io.ReadAll(io.LimitReader(resp.Body, 40))
	resp.Body.Close()
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(half), reset{}))
	return resp, nil
}

// reset is the error of a connection that was reset.
type reset struct{}

func (reset) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// times limits how often a fault happens.
func times(n int, do func(http.RoundTripper, *http.Request) (*http.Response, error)) func(http.RoundTripper, *http.Request) (*http.Response, error) {
	var mu sync.Mutex
	return func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		mu.Lock()
		n--
		over := n < 0
		mu.Unlock()
		if over {
			return next.RoundTrip(r)
		}
		return do(next, r)
	}
}

// countRequests counts requests whose path ends in a name.
func (a *agent) countRequests(method, name string) int {
	n := 0
	for _, q := range a.sent.Requests(fleet.Watches) {
		if q.Method == method && strings.HasSuffix(q.Path, "/"+name) {
			n++
		}
	}
	return n
}
