package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// httpMetrics measure HTTP requests. The label handler is the pattern of a route, not the path
// of a request, so that the number of series is limited.
type httpMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newHTTPMetrics() *httpMetrics {
	return &httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gitfleet_http_requests_total", Help: "Requests to this server, by route and status code.",
		}, []string{"handler", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gitfleet_http_request_duration_seconds", Help: "Duration of requests to this server, by route; long polls take up to half a minute.",
			Buckets: []float64{0.01, 0.1, 1, 10},
		}, []string{"handler"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gitfleet_http_requests_in_flight", Help: "Requests that this server is processing.",
		}),
	}
}

func (m *httpMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.seconds, m.inFlight}
}

// measured wraps the handler of a route and measures its requests.
func (m *httpMetrics) measured(pattern string, h http.Handler) http.Handler {
	route := prometheus.Labels{"handler": pattern}
	return promhttp.InstrumentHandlerInFlight(m.inFlight,
		promhttp.InstrumentHandlerDuration(m.seconds.MustCurryWith(route),
			promhttp.InstrumentHandlerCounter(m.requests.MustCurryWith(route), h)))
}
