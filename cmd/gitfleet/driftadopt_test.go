package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/reports"
	"github.com/gitfleet/gitfleet/test/world"
)

// drift adopt writes the values of a member into the file of the object, and into no other. If
// it cannot edit the file, it says where to edit by hand.
func TestDriftAdopt(t *testing.T) {
	daemon := server.New(nil)
	daemon.Publish(driftingFleet(t).Report)
	daemon.MountTrace(func(context.Context, *status.Report, *status.Trace, *api.Object) {})
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	tests := map[string][]string{
		"changed-since": {"cm/two", "-n", "web", "--cluster", "ams"},
		"two-fields":    {"cm/one", "-n", "web", "--cluster", "ams"},
		"only":          {"cm/one", "-n", "web", "--cluster", "ams", "--only"},
		"no-drift":      {"cm/two", "-n", "web", "--cluster", "ber"},
		"enveloped":     {"configmap/one", "-n", "docks", "--cluster", "dal"},
		"no-cluster":    {"cm/two", "-n", "web"},
		"unknown":       {"cm/twoo", "-n", "web", "--cluster", "ams"},
	}
	book := golden.Open(t, "testdata/driftadopt.txt")
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			checkout, before := t.TempDir(), world.Files(t, reports.WithValue(reports.Manifests, "1"))
			if err := os.CopyFS(checkout, before); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			transcribe(&out, append([]string{"drift", "adopt", "--server", srv.URL, "--write", checkout}, args...)...)
			for path, file := range before {
				text, err := os.ReadFile(filepath.Join(checkout, path))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(text, file.Data) {
					out.WriteString("\n" + path + "\n- " + strings.TrimSpace(string(file.Data)) + "\n+ " + strings.TrimSpace(string(text)) + "\n")
				}
			}
			added, err := filepath.Glob(filepath.Join(checkout, "override-*-????????.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range added {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				out.WriteString("\n" + filepath.Base(path) + "\n" + string(text))
			}
			book.Compare(t, name, out.String())
		})
	}
}
