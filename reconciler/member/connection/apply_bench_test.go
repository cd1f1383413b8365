package connection

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
)

// stored is the answer of an API server to an apply.
const stored = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"app","uid":"0b5f9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b",` +
	`"resourceVersion":"123456","creationTimestamp":"2026-11-02T10:11:12Z","labels":{"app.kubernetes.io/name":"settings","gitfleet.io/managed-by":"prod"},` +
	`"annotations":{"gitfleet.io/origin":"apps/settings/configmap.yaml","gitfleet.io/placement":"crp/settings","gitfleet.io/commit":"0123456789abcdef0123456789abcdef01234567"},` +
	`"managedFields":[{"manager":"gitfleet","operation":"Apply","apiVersion":"v1","time":"2026-11-02T10:11:12Z","fieldsType":"FieldsV1",` +
	`"fieldsV1":{"f:data":{"f:level":{},"f:region":{},"f:replicas":{}},"f:metadata":{"f:annotations":{"f:gitfleet.io/commit":{},"f:gitfleet.io/origin":{},"f:gitfleet.io/placement":{}},` +
	`"f:labels":{"f:app.kubernetes.io/name":{},"f:gitfleet.io/managed-by":{}}}}}]},"data":{"level":"info","region":"eu-central-1","replicas":"3"}}`

// fixedAnswer is a transport on which every request is answered with a text.
type fixedAnswer string

func (a fixedAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	r.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/2.0", ProtoMajor: 2, Request: r, ContentLength: int64(len(a)),
		Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(a))}}, Body: io.NopCloser(strings.NewReader(string(a))),
	}, nil
}

// BenchmarkApplyWhole is what an apply costs besides net/http.
func BenchmarkApplyWhole(b *testing.B) {
	c, err := New(Config{Cluster: "east", Timeout: time.Minute, Metrics: new(NewMetrics()), Log: slog.New(slog.DiscardHandler)},
		&rest.Config{Host: "https://east", BearerToken: "secret", Transport: bounded{masking{fixedAnswer(stored)}, newQuota(nil)}})
	if err != nil {
		b.Fatal(err)
	}
	body := bytes.Repeat([]byte(" "), 600)
	id := api.ID{Kind: "ConfigMap", Namespace: "app", Name: "settings"}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.ApplyWhole(b.Context(), configMapKind, id, body, true); err != nil {
			b.Fatal(err)
		}
	}
}
