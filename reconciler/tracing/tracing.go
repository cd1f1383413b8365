// Package tracing sends one OpenTelemetry trace per commit: its loading, its planning, and, for
// each placement and cluster, how long the content took to be applied and to become available.
//
// IDs are derived from the commit hash, so that a trace can be found by the commit, and a
// restarted daemon adds spans to the existing trace. The times of spans are those that the
// reconciler has recorded. Nothing waits for the collector, and spans that it does not accept
// are dropped.
package tracing

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// shutdownTimeout bounds how long Close waits for the collector.
const shutdownTimeout = 5 * time.Second

// TraceID returns the ID of a commit's trace: the first 32 digits of its hash. It is empty if
// commit is not a hash.
func TraceID(commit string) string {
	if id, _ := ids(commit); id.IsValid() {
		return id.String()
	}
	return ""
}

// ids returns the ID of a commit's trace and of its root span; zero if commit is not a hash.
func ids(commit string) (id trace.TraceID, root trace.SpanID) {
	hash, err := hex.DecodeString(commit)
	if err != nil || len(hash) < 20 {
		return id, root
	}
	copy(id[:], hash)
	copy(root[:], hash[len(hash)-len(root):])
	return id, root
}

// A Tracer sends spans to a collector. A nil Tracer sends none.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// ValidateEndpoint returns an error if the URL of a collector is invalid.
func ValidateEndpoint(endpoint string) error {
	switch u, err := url.Parse(endpoint); {
	case err != nil:
		return fmt.Errorf("not a URL; use http://HOST:4318")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("use the URL of a collector that takes OTLP over HTTP, such as http://HOST:4318")
	case u.User != nil:
		return fmt.Errorf("credentials do not belong in the URL; set OTEL_EXPORTER_OTLP_HEADERS in the environment")
	}
	return nil
}

// New returns a Tracer that sends spans with OTLP over HTTP to the collector at endpoint; the
// path is /v1/traces if the URL has none. The standard OTEL_EXPORTER_OTLP_* variables set
// headers, certificates and timeouts. fleet and version describe this process. Export errors
// are logged, at most one a minute.
func New(ctx context.Context, endpoint, fleet, version string, log *slog.Logger) (*Tracer, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&loggingExporter{SpanExporter: exporter, log: log}),
		sdktrace.WithIDGenerator(generator{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "gitfleet"),
			attribute.String("service.version", version),
			attribute.String("gitfleet.fleet", fleet),
		)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/gitfleet/gitfleet")}, nil
}

// Close sends the remaining spans, for at most five seconds.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	t.provider.Shutdown(ctx) // the exporter has logged the error
}

// A Span is one step of a commit on its way to the clusters.
type Span struct {
	Name       string
	Start, End time.Time
	Attributes []attribute.KeyValue
	// Err says why the step failed; empty if it did not.
	Err string
}

// Commit sends the root span of a commit's trace. A commit has one.
func (t *Tracer) Commit(commit string, s Span) {
	id, root := ids(commit)
	config := trace.SpanContextConfig{TraceID: id, SpanID: root}
	t.send(context.WithValue(context.Background(), rootKey{}, trace.NewSpanContext(config)), commit, s)
}

// Step sends a child of the root span of a commit's trace.
func (t *Tracer) Step(commit string, s Span) {
	id, root := ids(commit)
	config := trace.SpanContextConfig{TraceID: id, SpanID: root, TraceFlags: trace.FlagsSampled, Remote: true}
	t.send(trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(config)), commit, s)
}

func (t *Tracer) send(ctx context.Context, commit string, s Span) {
	if t == nil || TraceID(commit) == "" {
		return
	}
	if s.End.Before(s.Start) {
		s.End = s.Start // the clock was set back
	}
	attributes := append(s.Attributes, attribute.String("vcs.ref.head.revision", commit))
	_, span := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Start), trace.WithAttributes(attributes...))
	if s.Err != "" {
		span.SetStatus(codes.Error, s.Err)
	}
	span.End(trace.WithTimestamp(s.End))
}

// rootKey is the context key of the span context that a root span gets.
type rootKey struct{}

// A generator gives root spans the IDs in their context, and others random ones.
type generator struct{}

func (g generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	root, _ := ctx.Value(rootKey{}).(trace.SpanContext)
	return root.TraceID(), root.SpanID()
}

func (generator) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	binary.NativeEndian.PutUint64(id[:], rand.Uint64()|1) // zero is invalid
	return id
}

// A loggingExporter logs the errors of its exporter.
type loggingExporter struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu     sync.Mutex
	logged time.Time
}

func (e *loggingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.logged) >= time.Minute {
		e.logged = time.Now()
		e.log.Warn("traces not sent", "spans", len(spans), "err", err)
	}
	return nil // handled here, since the global handler would print it
}
