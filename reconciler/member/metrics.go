package member

import "github.com/prometheus/client_golang/prometheus"

// Metrics count what agents do. They belong to no registry until the caller
// registers them.
type Metrics struct {
	// Applies counts writes of objects by cluster, action and result.
	Applies *prometheus.CounterVec
	// Repairs counts objects that had to be put back, by cluster and by whether
	// they were edited or deleted.
	Repairs *prometheus.CounterVec
	// Undone counts how often somebody changed or removed what we had applied.
	Undone *prometheus.CounterVec
	// Missed counts changes that no watch told of and a sweep found, by cluster.
	Missed *prometheus.CounterVec
	// Swept is when a sweep last came to its end, by cluster.
	Swept *prometheus.GaugeVec
	// Ordinary counts connections that take more memory than they might, by cluster
	// and reason.
	Ordinary *prometheus.CounterVec
	// Seconds times single writes to all clusters: buckets for each of thousands
	// would be most of what there is to scrape.
	Seconds prometheus.Histogram
}

// NewMetrics returns metrics that count from zero.
func NewMetrics() *Metrics {
	return &Metrics{
		Applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gitfleet_apply_total", Help: "Writes to member clusters, by cluster, action and result.",
		}, []string{"cluster", "action", "result"}),
		Repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gitfleet_drift_repairs_total", Help: "Objects put back after somebody changed them, by cluster and change: edited or deleted.",
		}, []string{"cluster", "change"}),
		Undone: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gitfleet_drifts_total", Help: "Times that somebody changed or removed what was applied, by cluster.",
		}, []string{"cluster"}),
		Missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gitfleet_sweep_missed_total", Help: "Changes by others that no watch told of and a sweep found, by cluster; anything but 0 is a bug.",
		}, []string{"cluster"}),
		Swept: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gitfleet_sweep_last_timestamp_seconds", Help: "When all that gitfleet has on a cluster was last read to prove that watches tell everything.",
		}, []string{"cluster"}),
		Ordinary: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gitfleet_member_ordinary_transport_total", Help: "Sessions with a member that needed an ordinary HTTP transport, which takes more memory, by cluster and reason: not-https, proxy, no-http2, protocol or crowded.",
		}, []string{"cluster", "reason"}),
		Seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gitfleet_apply_duration_seconds", Help: "Duration of one write to a member cluster, of all clusters.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
	}
}

// Collectors returns all metrics, to be registered.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.Applies, m.Repairs, m.Undone, m.Missed, m.Swept, m.Ordinary, m.Seconds}
}
