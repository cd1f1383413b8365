package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// The access of a daemon to Git can be monitored: polls by result, the duration of fetches, and
// the time of the last success. All metrics name the fleet.
func TestGitCanBeWatchedByPrometheus(t *testing.T) {
	dir := t.TempDir()
	repo, err := githttp.Create(filepath.Join(dir, "hub.git"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Change("main", githttp.Change{Files: map[string]string{"a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n"}}); err != nil {
		t.Fatal(err)
	}
	cfg := settings.Default()
	cfg.FleetName = "prod"
	cfg.Source.URL, cfg.Source.AllowFile, cfg.Source.Branch = repo.Dir, true, "main"
	cfg.Source.Interval.Duration = time.Second
	cfg.StateDir, cfg.Listen = filepath.Join(dir, "state"), freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := serve(ctx, cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), &logTail{}); err != nil {
			t.Error(err)
		}
	}()
	defer func() {
		stop()
		<-ended
	}()
	metrics := scrapeUntil(t, ended, cfg.Listen, func(m map[string]float64) bool {
		return m["gitfleet_git_polls_total prod ok"] > 1 && m["gitfleet_git_poll_duration_seconds prod"] > 1 && m["gitfleet_git_last_success_timestamp_seconds prod"] > 0
	})
	if n := metrics["gitfleet_git_fetch_duration_seconds prod ok"]; n != 1 {
		t.Errorf("%v fetches are told of, want 1", n)
	}
	if n, ok := metrics["gitfleet_git_polls_total prod error"]; !ok || n != 0 {
		t.Errorf("%v polls that failed are told of (%t), want 0", n, ok)
	}
	if n := metrics["go_gc_heap_live_bytes prod"]; n <= 0 {
		t.Errorf("%v bytes are live", n)
	}
}

// Each failed poll or fetch is counted as a failure, and the other callbacks are called too.
func TestGitFailuresAreCounted(t *testing.T) {
	registry := server.NewRegistry()
	var told error
	m := newMetrics(registry, func() bool { return true }).git.hooks(func(_ time.Duration, err error) { told = err })
	bad := errors.New("no route")
	m.Polled(time.Second, bad)
	m.Fetched(time.Second, 100, bad)
	if told != bad {
		t.Errorf("told %v", told)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			got[seriesName(f.GetName(), m.GetLabel())] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"gitfleet_git_polls_total ok": 0, "gitfleet_git_polls_total error": 1, "gitfleet_git_fetch_duration_seconds error": 1,
		"gitfleet_git_poll_duration_seconds": 1, "gitfleet_git_received_bytes_total": 100,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// scrapeUntil scrapes a daemon until its metrics have the expected values.
func scrapeUntil(t *testing.T, ended <-chan struct{}, address string, ok func(map[string]float64) bool) map[string]float64 {
	t.Helper()
	var last map[string]float64
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case <-ended:
			t.Fatal("the daemon ended")
		default:
		}
		if m, err := scrape(address); err == nil {
			if last = m; ok(m) {
				return m
			}
		}
	}
	t.Fatalf("the metrics are %v", last)
	return nil
}

// scrape reads all metrics; the value of a histogram is its count.
func scrape(address string) (map[string]float64, error) {
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			out[seriesName(name, m.GetLabel())] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out, err
}

// seriesName returns the name of a metric with the values of its labels.
func seriesName(name string, labels []*dto.LabelPair) string {
	for _, l := range labels {
		name += " " + l.GetValue()
	}
	return name
}
