package member

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Metrics count what agents do. They are in no registry until the caller registers them.
type Metrics struct {
	// Operations counts operations on objects, by cluster, action and result.
	Operations *prometheus.CounterVec
	// OperationSeconds measures operations on all clusters: buckets for each of thousands of
	// clusters would be most of a scrape.
	OperationSeconds prometheus.Histogram
	// Requests counts requests by cluster, verb and code. InFlight is the number of
	// requests, other than watches, that wait for an answer, by cluster. RequestSeconds
	// is the time until an answer begins, by verb, of all clusters.
	Requests       *prometheus.CounterVec
	InFlight       *prometheus.GaugeVec
	RequestSeconds *prometheus.HistogramVec
	// ProbeSeconds is how long the last health probe took, by cluster.
	ProbeSeconds *prometheus.GaugeVec
	// WatchRestarts counts watches that failed, by cluster.
	WatchRestarts *prometheus.CounterVec
	// Repairs counts objects that were applied again because of drift, by cluster and by
	// whether they were edited or deleted.
	Repairs *prometheus.CounterVec
	// Undone counts how often others changed or deleted what had been applied.
	Undone *prometheus.CounterVec
	// Missed counts changes that a sweep found and no watch had reported, by cluster.
	Missed *prometheus.CounterVec
	// Swept is when the last sweep was completed, by cluster.
	Swept *prometheus.GaugeVec
}

// NewMetrics returns metrics that count from zero.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gitfleet_" + name, Help: help}, append([]string{"cluster"}, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gitfleet_" + name, Help: help}, []string{"cluster"})
	}
	return &Metrics{
		Operations: counter("operations_total", "Operations on objects of member clusters, by action and result: ok, conflict or error.", "action", "result"),
		OperationSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gitfleet_operation_duration_seconds", Help: "Duration of an operation on an object, over all member clusters.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		Requests: counter("member_requests_total", "Requests to the API server of a member cluster, by verb and status code; the code is 429 for a throttled request, and error for one without a response.", "verb", "code"),
		InFlight: gauge("member_requests_in_flight", "Requests to the API server of a member cluster that wait for a response, except watches."),
		RequestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gitfleet_member_request_duration_seconds", Help: "Time until an API server begins to respond to a request, by verb, over all member clusters.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"verb"}),
		ProbeSeconds:  gauge("member_probe_duration_seconds", "Duration of the last health probe of a member cluster."),
		WatchRestarts: counter("member_watch_restarts_total", "Watches of a member cluster that failed and were started again."),
		Repairs:       counter("drift_repairs_total", "Objects put back after somebody changed them, by change: edited or deleted.", "change"),
		Undone:        counter("drifts_total", "Times that somebody changed or deleted an applied object."),
		Missed:        counter("sweep_missed_changes_total", "Changes by others that no watch reported and a sweep found; anything but 0 is a bug."),
		Swept:         gauge("sweep_last_completion_timestamp_seconds", "Unix time at which the last sweep of a member cluster completed."),
	}
}

// Collectors returns all metrics, for registration.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.Operations, m.OperationSeconds, m.Requests, m.InFlight, m.RequestSeconds, m.ProbeSeconds, m.WatchRestarts,
		m.Repairs, m.Undone, m.Missed, m.Swept,
	}
}

// begin creates the counters of a cluster with the value zero. Prometheus would miss the
// first increase of a series that begins at one.
func (m *Metrics) begin(cluster string) {
	for _, change := range []string{"edited", "deleted"} {
		m.Repairs.WithLabelValues(cluster, change)
	}
	for _, v := range []*prometheus.CounterVec{m.Undone, m.Missed, m.WatchRestarts} {
		v.WithLabelValues(cluster)
	}
}

// forget removes all series of a cluster.
func (m *Metrics) forget(cluster string) {
	series := prometheus.Labels{"cluster": cluster}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		m.Operations, m.Requests, m.InFlight, m.ProbeSeconds, m.WatchRestarts, m.Repairs, m.Undone, m.Missed, m.Swept,
	} {
		v.DeletePartialMatch(series)
	}
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
	m.Operations.WithLabelValues(cluster, action, result).Inc()
}

// A meter is a transport that counts the requests to one cluster.
type meter struct {
	next    http.RoundTripper
	metrics *Metrics
	cluster string
}

// RoundTrip implements http.RoundTripper.
func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := verbOf(r)
	if verb != watchVerb {
		waiting := m.metrics.InFlight.WithLabelValues(m.cluster)
		waiting.Inc()
		defer waiting.Dec()
	}
	start := time.Now()
	answer, err := m.next.RoundTrip(r)
	m.metrics.RequestSeconds.WithLabelValues(verb).Observe(time.Since(start).Seconds())
	code := "error"
	if err == nil {
		code = strconv.Itoa(answer.StatusCode)
	}
	m.metrics.Requests.WithLabelValues(m.cluster, verb, code).Inc()
	return answer, err
}

const watchVerb = "watch"

// verbOf returns watch, or the HTTP method in lower case.
func verbOf(r *http.Request) string {
	if r.Method == http.MethodGet && r.URL.Query().Get("watch") == "true" {
		return watchVerb
	}
	return strings.ToLower(r.Method)
}
