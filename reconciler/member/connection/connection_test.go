package connection

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// connAt returns a connection to a test server.
func connAt(t *testing.T, h http.Handler) *Conn {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return connOf(t, &rest.Config{Host: server.URL})
}

func connOf(t *testing.T, credentials *rest.Config) *Conn {
	t.Helper()
	c, err := New(Config{
		Cluster: "east", Timeout: 30 * time.Second, Metrics: new(NewMetrics()), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var configMapKind = Resource{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, true}
var namespaceKind = Resource{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, false}
