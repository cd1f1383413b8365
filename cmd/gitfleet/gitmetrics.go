package main

import (
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/gitfleet/gitfleet/gitsource"
)

// gitMetrics count what is asked of Git, and register in a registry. polled is
// called after each poll besides.
func gitMetrics(registry *prometheus.Registry, polled func(time.Duration, error)) gitsource.Metrics {
	polls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gitfleet_git_polls_total", Help: "Polls of the remote by result: ok or error.",
	}, []string{"result"})
	polling := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "gitfleet_git_poll_seconds", Help: "Duration of one poll of the remote, a fetch included.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
	})
	fetching := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gitfleet_git_fetch_seconds", Help: "Duration of one fetch from the remote, by result: ok or error.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
	}, []string{"result"})
	received := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "gitfleet_git_fetched_bytes_total", Help: "Bytes received by fetches.",
	})
	registry.MustRegister(polls, polling, fetching, received)
	for _, result := range []string{"ok", "error"} {
		polls.WithLabelValues(result) // a rate needs a beginning
	}
	return gitsource.Metrics{
		Polled: func(took time.Duration, err error) {
			polls.WithLabelValues(resultOf(err)).Inc()
			polling.Observe(took.Seconds())
			polled(took, err)
		},
		Fetched: func(took time.Duration, bytes int64, err error) {
			fetching.WithLabelValues(resultOf(err)).Observe(took.Seconds())
			received.Add(float64(bytes))
		},
	}
}

func resultOf(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// processMetrics tell of the process itself. What is live on the heap says more
// of what gitfleet keeps than what the runtime holds at the moment.
func processMetrics(registry *prometheus.Registry) {
	registry.MustRegister(
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{
			Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`),
		})),
	)
}
