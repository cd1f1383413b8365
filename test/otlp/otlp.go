// Package otlp receives OpenTelemetry traces in tests.
package otlp

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Receiver is a collector that accepts OTLP over HTTP and keeps all spans.
type Receiver struct {
	*httptest.Server

	mu    sync.Mutex
	paths []string
	spans []*tracepb.Span
}

// NewReceiver starts a receiver that ends with the test.
func NewReceiver(t *testing.T) *Receiver {
	r := &Receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		export, err := decode(req)
		if err != nil {
			t.Errorf("%s: not an export of traces: %v", req.URL, err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.paths = append(r.paths, req.URL.Path)
		for _, resource := range export.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

func decode(req *http.Request) (*collector.ExportTraceServiceRequest, error) {
	var body io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(req.Body)
		if err != nil {
			return nil, err
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	export := &collector.ExportTraceServiceRequest{}
	return export, proto.Unmarshal(data, export)
}

// Received returns all spans so far, in their order, and the path of each request.
func (r *Receiver) Received() (spans []*tracepb.Span, paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans), slices.Clone(r.paths)
}
