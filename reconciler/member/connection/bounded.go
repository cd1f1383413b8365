package connection

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

const (
	// LargestObject is the maximum size of an object in a response or watch event. API servers
	// store at most a few MiB.
	LargestObject = 16 << 20
	// largestPage is the maximum size of one page of a list.
	largestPage = 32 << 20
	// objectValues and pageValues are the maximum numbers of JSON values in an object and in a page: as
	// Go values, small ones are a hundred times larger than their text. pageItems is the maximum number
	// of objects in a page, which are larger still.
	objectValues = 400_000
	pageValues   = 1_000_000
	pageItems    = 20_000
	// maxInFlight is the maximum number of requests to a member that wait for a response, except
	// watches.
	maxInFlight = 100
	// LargeAnswer is the size from which a response or watch event counts as large, and maxLarge is the
	// maximum number of large ones of a member that are read and decoded at the same time.
	LargeAnswer = 1 << 20
	maxLarge    = 2
)

// A quota is what the requests to one member share.
type quota struct{ inFlight, large chan struct{} }

func newQuota() *quota {
	return &quota{make(chan struct{}, maxInFlight), make(chan struct{}, maxLarge)}
}

// bounded is a transport that limits the size of responses, and what they decode to: a response that
// never ends must not fill the memory that all clusters share. Watches are not limited, but each of
// their events is.
type bounded struct {
	next  http.RoundTripper
	quota *quota
}

// Bounded returns a copy of a client configuration whose clients limit what they read, like those of a
// connection.
func Bounded(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	shared := newQuota()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{masking{next}, shared} })
	return cfg
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	query, ctx := req.URL.Query(), req.Context()
	if accept := onlyJSON(req.Header.Get("Accept")); accept != req.Header.Get("Accept") {
		req = req.Clone(ctx)
		req.Header.Set("Accept", accept)
	}
	if query.Get("watch") == "true" {
		return b.next.RoundTrip(req)
	}
	res, err := b.wait(req)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); !measurable(kind) {
		res.Body.Close()
		return nil, fmt.Errorf("the API server answered in %q, although JSON was requested", CutTo(kind, 100))
	}
	body := &boundedBody{ReadCloser: res.Body, ctx: ctx, quota: b.quota, bytes: LargestObject, values: valueCounter{most: objectValues}}
	if query.Has("limit") {
		body.bytes, body.values.most = largestPage, pageValues
	}
	if body.slot, body.borrowed = ctx.Value(slotKey{}).(*largeSlot); !body.borrowed {
		body.slot = &largeSlot{}
	}
	res.Body = body
	return res, nil
}

// wait sends a request, once few enough others wait for a response.
func (b bounded) wait(req *http.Request) (*http.Response, error) {
	select {
	case b.quota.inFlight <- struct{}{}:
		defer func() { <-b.quota.inFlight }()
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	return b.next.RoundTrip(req)
}

// onlyJSON removes all media types but JSON from an Accept header: of others it cannot be told before they
// are decoded what they become.
func onlyJSON(accept string) string {
	if !strings.Contains(accept, "protobuf") && !strings.Contains(accept, "cbor") {
		return accept
	}
	var kept []string
	for kind := range strings.SplitSeq(accept, ",") {
		if strings.Contains(kind, "json") {
			kept = append(kept, kind)
		}
	}
	return strings.Join(kept, ",")
}

// measurable reports whether a valueCounter can measure a media type. What is no JSON is not decoded.
func measurable(kind string) bool {
	return kind == "" || strings.Contains(kind, "json") || strings.HasPrefix(kind, "text/") || kind == "application/octet-stream"
}

// A boundedBody fails once too much is read.
type boundedBody struct {
	io.ReadCloser
	ctx    context.Context
	quota  *quota
	read   int64
	bytes  int64
	values valueCounter
	// slot is held while the body is large; it is borrowed if it is held until the body is decoded.
	slot     *largeSlot
	borrowed bool
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); b.read > b.bytes {
		return 0, &exceededError{fmt.Sprintf("%d MiB", b.bytes>>20), true}
	}
	if than := b.values.count(p[:n]); than != "" {
		return 0, &exceededError{than, true}
	}
	if b.read > LargeAnswer {
		if err := b.slot.acquire(b.ctx, b.quota); err != nil {
			return 0, err
		}
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	if !b.borrowed {
		b.slot.release()
	}
	return b.ReadCloser.Close()
}

// A largeSlot is one of the slots for large answers, or none. One goroutine uses it.
type largeSlot struct{ of *quota }

type slotKey struct{}

// holdingSlot returns a context with which the slot of a large answer is held until release is called,
// instead of until the answer is read.
func holdingSlot(ctx context.Context) (holding context.Context, release func()) {
	s := &largeSlot{}
	return context.WithValue(ctx, slotKey{}, s), s.release
}

// LargeSlot returns functions that acquire and release one of the slots for large answers. One goroutine may
// call them. acquire waits, and does nothing if the slot is held already.
func (c *Conn) LargeSlot(ctx context.Context) (acquire func() error, release func()) {
	s, of := &largeSlot{}, c.clients().quota
	return func() error { return s.acquire(ctx, of) }, s.release
}

// acquire waits for a slot, unless there is one already.
func (s *largeSlot) acquire(ctx context.Context, of *quota) error {
	if s.of != nil {
		return nil
	}
	select {
	case of.large <- struct{}{}:
		s.of = of
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release gives the slot back, if there is one.
func (s *largeSlot) release() {
	if s.of != nil {
		<-s.of.large
		s.of = nil
	}
}
