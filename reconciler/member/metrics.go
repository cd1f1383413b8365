package member

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
)

// Metrics count what agents do. The caller registers them.
type Metrics struct {
	connection.Metrics
	// Operations counts operations on objects, by cluster, action and result.
	Operations *series.Vec
	// OperationSeconds measures the operations on all clusters together, since buckets for each
	// of thousands of clusters would be most of a scrape.
	OperationSeconds prometheus.Histogram
	// ProbeSeconds is how long the last health probe took, by cluster.
	ProbeSeconds *series.Vec
	// WatchRestarts counts watches that failed, by cluster.
	WatchRestarts *series.Vec
	// OverBudget counts how often a cluster was given up because its API server answered with too
	// much, by cluster.
	OverBudget *series.Vec
	// Repairs counts objects that were applied again because of drift, by cluster and by
	// whether they were edited or deleted, or something was added.
	Repairs *series.Vec
	// Drifts counts how often others changed or deleted what had been applied, or added to it, by cluster.
	Drifts *series.Vec
	// SweepMissed counts changes that a sweep found and no watch had reported, by cluster.
	SweepMissed *series.Vec
	// Swept is when the last sweep was completed, by cluster.
	Swept *series.Vec
}

// NewMetrics returns metrics that count from zero.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *series.Vec {
		return series.NewCounter("gitfleet_"+name, help, labels...)
	}
	gauge := func(name, help string) *series.Vec { return series.NewGauge("gitfleet_"+name, help) }
	return &Metrics{
		Metrics:    connection.NewMetrics(),
		Operations: counter("operations_total", "Operations on objects of member clusters, by action and result: ok, conflict or error.", "action", "result"),
		OperationSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gitfleet_operation_duration_seconds", Help: "Duration of an operation on an object, over all member clusters.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		ProbeSeconds:  gauge("member_probe_duration_seconds", "Duration of the last health probe of a member cluster."),
		WatchRestarts: counter("member_watch_restarts_total", "Watches of a member cluster that failed and were started again."),
		OverBudget:    counter("member_over_budget_total", "Times that a member cluster was given up for a while because its API server answered with more than its budget."),
		Repairs:       counter("drift_repairs_total", "Objects put back after somebody changed them, by change: edited, deleted, or added to.", "change"),
		Drifts:        counter("drifts_total", "Times that somebody changed or deleted an applied object, or added something to one."),
		SweepMissed:   counter("sweep_missed_changes_total", "Changes by others that no watch reported and a sweep found; anything but 0 is a bug."),
		Swept:         gauge("sweep_last_completion_timestamp_seconds", "Unix time at which the last sweep of a member cluster completed."),
	}
}

// Collectors returns the metrics without the label cluster, for registration.
func (m *Metrics) Collectors() []prometheus.Collector {
	return append(m.Metrics.Collectors(), m.OperationSeconds)
}

// Vectors returns the metrics with the label cluster, for registration.
func (m *Metrics) Vectors() []*series.Vec {
	return append(m.Metrics.Vectors(),
		m.Operations, m.ProbeSeconds, m.WatchRestarts, m.OverBudget, m.Repairs, m.Drifts, m.SweepMissed, m.Swept,
	)
}

// begin creates the counters of a cluster with the value zero, since Prometheus would miss the
// first increase of a series that begins at one.
func (m *Metrics) begin(cluster string) {
	for _, change := range []string{"edited", "deleted", "added"} {
		m.Repairs.Add(0, cluster, change)
	}
	for _, v := range []*series.Vec{m.Drifts, m.SweepMissed, m.WatchRestarts, m.OverBudget} {
		v.Add(0, cluster)
	}
}

// forget removes all series of a cluster.
func (m *Metrics) forget(cluster string) {
	for _, vec := range m.Vectors() {
		vec.Delete(cluster)
	}
}

// Done counts an operation that applies an object of a cluster.
func (m *Metrics) Done(cluster, action string, err error, took time.Duration) {
	m.done(cluster, action, err)
	m.OperationSeconds.Observe(took.Seconds())
}

// done counts one operation on an object.
func (m *Metrics) done(cluster, action string, err error) {
	result := "ok"
	switch {
	case apierrors.IsConflict(err):
		result = "conflict"
	case err != nil:
		result = "error"
	}
	m.Operations.Inc(cluster, action, result)
}
