package tracing

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/gitfleet/gitfleet/test/otlp"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// All steps of a commit are children of one root span, in the trace whose ID follows from the
// commit's hash, also after a restart.
func TestTheTraceOfACommitIsNamedByItsHash(t *testing.T) {
	r := otlp.NewReceiver(t)
	at := time.Unix(1_700_000_000, 0)
	for _, send := range []func(*Tracer){
		func(tr *Tracer) {
			tr.Commit(commit, Span{Name: "commit", Start: at, End: at.Add(time.Second)})
			tr.Step(commit, Span{Name: "load", Start: at, End: at.Add(time.Second), Err: "refused"})
			tr.Step("no hash", Span{Name: "lost", Start: at, End: at})
		},
		func(tr *Tracer) {
			tr.Step(commit, Span{Name: "apply", Start: at.Add(2 * time.Second), End: at})
		},
	} {
		tr, err := New(t.Context(), r.URL, "test", "v1", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		send(tr)
		tr.Close()
	}
	var told []string
	spans, paths := r.Received()
	for _, s := range spans {
		told = append(told, s.Name)
		if got := string(s.TraceId); got != "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef" {
			t.Errorf("%s is in trace %x", s.Name, got)
		}
		root := spans[0].SpanId
		if s.Name == "commit" && (string(s.SpanId) != "\x89\xab\xcd\xef\x01\x23\x45\x67" || len(s.ParentSpanId) > 0) {
			t.Errorf("the root span is %x below %x", s.SpanId, s.ParentSpanId)
		}
		if s.Name != "commit" && (!bytes.Equal(s.ParentSpanId, root) || bytes.Equal(s.SpanId, root)) {
			t.Errorf("%s is %x below %x, not below %x", s.Name, s.SpanId, s.ParentSpanId, root)
		}
		if failed := s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR; failed != (s.Name == "load") {
			t.Errorf("%s has status %v", s.Name, s.Status)
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s ends before it starts", s.Name)
		}
	}
	if got := strings.Join(told, " "); got != "commit load apply" {
		t.Errorf("the spans are %s", got)
	}
	if got := strings.Join(paths, " "); got != "/v1/traces /v1/traces" {
		t.Errorf("they were sent to %s", got)
	}
}

// If a collector refuses everything, a warning is logged and nothing else happens.
func TestACollectorThatFailsIsLogged(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	var log bytes.Buffer
	tr, err := New(t.Context(), srv.URL, "test", "v1", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	tr.Commit(commit, Span{Name: "commit", Start: time.Now(), End: time.Now()})
	tr.Close()
	if !strings.Contains(log.String(), "traces not sent") || !strings.Contains(log.String(), "404") {
		t.Errorf("the log is %q", log.String())
	}
}

func TestANilTracerSendsNothing(t *testing.T) {
	var tr *Tracer
	tr.Commit(commit, Span{})
	tr.Step(commit, Span{})
	tr.Close()
}

func TestValidateEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://collector:4318":              "",
		"https://otlp.example.com/v1/traces": "",
		"collector:4317":                     "OTLP over HTTP",
		"grpc://collector:4317":              "OTLP over HTTP",
		"https://me:secret@collector":        "OTEL_EXPORTER_OTLP_HEADERS",
		"http://a b":                         "not a URL",
	} {
		err := ValidateEndpoint(endpoint)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestLogLinesOfACommitNameItsTrace(t *testing.T) {
	const id = "trace_id=0123456789abcdef0123456789abcdef"
	for name, write := range map[string]func(*slog.Logger){
		"attribute": func(l *slog.Logger) { l.Info("x", "commit", commit) },
		"logger":    func(l *slog.Logger) { l.With("commit", commit).Info("x") },
	} {
		var log bytes.Buffer
		l := slog.New(LogHandler(slog.NewTextHandler(&log, nil)))
		write(l)
		l.Info("y", "commit", "none")
		lines := strings.Split(log.String(), "\n")
		if strings.Count(lines[0], id) != 1 || strings.Contains(lines[1], "trace_id") {
			t.Errorf("%s: the log is %s", name, log.String())
		}
	}
}
