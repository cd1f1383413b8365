package connection

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

const (
	// LargestObject is the maximum size of an object in a response or watch event. API servers
	// store at most a few MiB.
	LargestObject = 16 << 20
	// largestPage is the maximum size of one page of a list.
	largestPage = 32 << 20
	// mediumAnswer is the cost from which an answer is no longer small, in bytes.
	mediumAnswer = 4 << 20
)

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
	shared := newQuota(nil)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{masking{next}, shared} })
	return cfg
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	var query url.Values
	if req.Method == http.MethodGet {
		query = req.URL.Query()
	}
	ctx := req.Context()
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
	if kind := mediaType(res); !measurable(kind) {
		res.Body.Close()
		return nil, fmt.Errorf("the API server answered in %q, although JSON was requested", CutTo(kind, 100))
	}
	body := &boundedBody{ReadCloser: res.Body, ctx: ctx, bytes: LargestObject, values: valueCounter{most: objectValues}}
	if query.Has("limit") {
		body.bytes, body.values.most = largestPage, pageValues
	}
	if body.slot, body.borrowed = ctx.Value(slotKey{}).(*answerSlot); !body.borrowed {
		body.slot = &body.own
	}
	body.slot.begin(b.quota, func() { body.ReadCloser.Close() })
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

// mediaType returns the media type of a response, without its parameters; empty if it has none.
func mediaType(res *http.Response) string {
	kind := res.Header.Get("Content-Type")
	if kind == "application/json" {
		return kind
	}
	kind, _, _ = mime.ParseMediaType(kind)
	return kind
}

// measurable reports whether a valueCounter can measure a media type. What is no JSON is not decoded.
func measurable(kind string) bool {
	return kind == "" || strings.Contains(kind, "json") || strings.HasPrefix(kind, "text/") || kind == "application/octet-stream"
}

// A boundedBody fails once too much is read.
type boundedBody struct {
	io.ReadCloser
	ctx    context.Context
	read   int64
	bytes  int64
	values valueCounter
	// slot is held once the body is no longer small: its own one, or one that is borrowed to be held until the body is decoded.
	slot     *answerSlot
	own      answerSlot
	borrowed bool
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); b.read > b.bytes {
		return 0, &exceededError{fmt.Sprintf("%d MiB", b.bytes>>20), true}
	}
	if limit := b.values.count(p[:n]); limit != "" {
		return 0, &exceededError{limit, true}
	}
	if err := b.slot.grow(b.ctx, 2*b.read+valueBytes*int64(b.values.values), mediumAnswer); err != nil {
		return 0, err
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
