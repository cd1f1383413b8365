package member

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// The counters of drift begin at zero. Once the agent of a cluster has ended, no metric has a
// series of the cluster.
func TestMetricsOfACluster(t *testing.T) {
	metrics := NewMetrics()
	metrics.begin("east")
	if n := testutil.CollectAndCount(metrics.Undone) + testutil.CollectAndCount(metrics.Repairs); n != 3 {
		t.Errorf("%d series of drift begin at zero, want 3", n)
	}
	metrics.Requests.WithLabelValues("east", "get", "200").Inc()
	metrics.InFlight.WithLabelValues("east").Inc()
	metrics.ProbeSeconds.WithLabelValues("east").Set(1)
	metrics.Swept.WithLabelValues("east").SetToCurrentTime()
	metrics.done("east", "Apply", nil)
	metrics.forget("east")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.Metric {
			for _, label := range series.Label {
				if label.GetName() == "cluster" {
					t.Errorf("%s has a series of %s", family.GetName(), label.GetValue())
				}
			}
		}
	}
}

// Operations are counted by their result: a conflict is no other error.
func TestOperationsAreCountedByResult(t *testing.T) {
	for result, err := range map[string]error{
		"ok": nil, "conflict": refusedWith(http.StatusConflict, "modified"), "error": refusedWith(http.StatusForbidden, "no"),
	} {
		metrics := NewMetrics()
		metrics.done("east", "Apply", err)
		if n := testutil.ToFloat64(metrics.Operations.WithLabelValues("east", "Apply", result)); n != 1 {
			t.Errorf("%s is counted %v times", result, n)
		}
	}
}
