package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/reports"
)

// The output of trace. It must change only on purpose.
func TestTrace(t *testing.T) {
	s := driftingFleet(t)
	daemon := server.New(nil)
	daemon.Publish(s.Report)
	daemon.MountTrace(func(_ context.Context, _ *status.Report, trace *status.Trace, o *api.Object) {
		if o.ID.Name == "two" {
			trace.Unknown = "the API server did not answer in time"
			return
		}
		trace.Commit = &status.TracedCommit{Hash: reports.FirstCommit, Author: "Ada Lovelace", Time: reports.Noon, Subject: "Bring the web"}
	})
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	tests := map[string][]string{
		"text":      {"trace", "cm/one", "-n", "web", "--cluster", "ams"},
		"json":      {"trace", "cm/one", "-n", "web", "--cluster", "ams", "-o", "json"},
		"silent":    {"trace", "configmap/two", "-n", "web", "--cluster", "ams"},
		"enveloped": {"trace", "configmap/one", "-n", "docks", "--cluster", "dal"},
		"unknown":   {"trace", "configmap/onne", "-n", "web", "--cluster", "ams"},
		"nowhere":   {"trace", "cm/one", "-n", "web", "--cluster", "amst"},
		"several":   {"trace", "cm/one", "-n", "web"},
		"no-object": {"trace", "cm/onne", "-n", "web"},
		"ambiguous": {"trace", "configmap/one", "--cluster", "dal"},
		"unique":    {"trace", "configmap/two", "--cluster", "ams"},
		"malformed": {"trace", "one", "--cluster", "ams"},
	}
	book := golden.Open(t, "testdata/trace.txt")
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			transcribe(&out, append([]string{"trace", "--server", srv.URL}, args[1:]...)...)
			book.Compare(t, name, out.String())
		})
	}
}
