package probe

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
)

func serverOf(t *testing.T, h http.Handler) *rest.Config {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// proberAt returns a prober of a test server.
func proberAt(t *testing.T, h http.Handler) *Prober {
	t.Helper()
	return proberOf(t, serverOf(t, h))
}

func proberOf(t *testing.T, credentials *rest.Config) *Prober {
	t.Helper()
	return proberWith(t, 30*time.Second, credentials)
}

func proberWith(t *testing.T, timeout time.Duration, credentials *rest.Config) *Prober {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c, err := connection.New(connection.Config{Cluster: "east", Timeout: timeout, Metrics: new(connection.NewMetrics()), Log: log}, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return New(c, Config{
		Cluster: "east", Interval: 10 * time.Second, Observe: time.Minute, Log: log, Publish: func(Result) {},
		Seconds: series.NewGauge("seconds", ""),
	})
}
