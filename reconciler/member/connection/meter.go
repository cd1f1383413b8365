package connection

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gitfleet/gitfleet/reconciler/member/series"
)

// Metrics count the requests to all clusters, and tell when credentials expire. The caller registers
// them.
type Metrics struct {
	// Requests counts requests by cluster, verb and code. InFlight is the number of requests,
	// except watches, that wait for a response, by cluster. RequestSeconds is the time until a
	// response begins, by verb, for all clusters together.
	Requests       *series.Vec
	InFlight       *series.Vec
	RequestSeconds *prometheus.HistogramVec
	// Expiry is when the credentials in use expire, and RenewalDue when they should have been
	// renewed, by cluster; credentials without a known end have neither.
	Expiry, RenewalDue *series.Vec
}

// NewMetrics returns metrics that count from zero.
func NewMetrics() Metrics {
	return Metrics{
		Requests: series.NewCounter("gitfleet_member_requests_total",
			"Requests to the API server of a member cluster, by verb and status code; the code is 429 for a throttled request, and error for one without a response.",
			"verb", "code"),
		InFlight: series.NewGauge("gitfleet_member_requests_in_flight", "Requests to the API server of a member cluster that wait for a response, except watches."),
		RequestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gitfleet_member_request_duration_seconds", Help: "Time until an API server begins to respond to a request, by verb, over all member clusters.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"verb"}),
		Expiry: series.NewGauge("gitfleet_member_credentials_expiry_timestamp_seconds",
			"Unix time at which the client certificate or the token for a member cluster expires; absent if that is not known or never."),
		RenewalDue: series.NewGauge("gitfleet_member_credentials_renewal_due_timestamp_seconds",
			"Unix time from which on the client certificate or the token for a member cluster should have been renewed: a tenth of its lifetime before it expires, but at most 14 days; absent if it is not known when it expires."),
	}
}

// Collectors returns the metrics without the label cluster, for registration.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.RequestSeconds}
}

// Vectors returns the metrics with the label cluster, for registration.
func (m *Metrics) Vectors() []*series.Vec {
	return []*series.Vec{m.Requests, m.InFlight, m.Expiry, m.RenewalDue}
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
		m.metrics.InFlight.Inc(m.cluster)
		defer m.metrics.InFlight.Dec(m.cluster)
	}
	start := time.Now()
	answer, err := m.next.RoundTrip(r)
	m.metrics.RequestSeconds.WithLabelValues(verb).Observe(time.Since(start).Seconds())
	code := "error"
	if err == nil {
		code = strconv.Itoa(answer.StatusCode)
	}
	m.metrics.Requests.Inc(m.cluster, verb, code)
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
