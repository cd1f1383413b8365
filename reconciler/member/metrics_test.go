package member

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// The drift counters begin at zero, and all series of a cluster are removed when its agent
// ends.
func TestMetricsOfACluster(t *testing.T) {
	metrics := NewMetrics()
	metrics.begin("east")
	if n := testutil.CollectAndCount(metrics.Undone) + testutil.CollectAndCount(metrics.Repairs); n != 3 {
		t.Errorf("%d series of drift begin at zero, want 3", n)
	}
	metrics.Requests.WithLabelValues("east", "get", "200").Inc()
	metrics.InFlight.WithLabelValues("east").Inc()
	metrics.forget("east")
	if n := testutil.CollectAndCount(metrics.Requests) + testutil.CollectAndCount(metrics.InFlight) + testutil.CollectAndCount(metrics.Undone); n != 0 {
		t.Errorf("%d series are left of a cluster that is gone", n)
	}
}
