package daemon

import (
	"cmp"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/version"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
)

// metrics are all metrics of the daemon except those that the server registers: the gauges of the
// newest report, and the metrics of HTTP requests.
type metrics struct {
	git      *gitMetrics
	webhooks *prometheus.CounterVec
	loop     *reconciler.Metrics
	members  *member.Metrics
	history  *history.Metrics
	// ledgerResets counts damaged ledgers that were moved aside.
	ledgerResets prometheus.Counter
}

// A registerer registers metrics, as a server.Registry does.
type registerer interface {
	MustRegister(...prometheus.Collector)
	AddSources(...series.Source)
}

// newMetrics returns metrics that count from zero, and registers them. leads reports whether this
// replica certainly leads.
func newMetrics(registry registerer, leads func() bool) *metrics {
	m := &metrics{
		git: newGitMetrics(),
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gitfleet_webhook_requests_total", Help: "Webhooks by result: woke, ignored, unauthorized, malformed or unavailable.",
		}, []string{"result"}),
		loop: reconciler.NewMetrics(), members: member.NewMetrics(), history: history.NewMetrics(),
		ledgerResets: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gitfleet_ledger_resets_total", Help: "Damaged ledgers that were moved aside at the start, with the setting resetDamagedState.",
		}),
	}
	leader := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gitfleet_leader", Help: "1 if this replica leads and no other one may, otherwise 0. A daemon without other replicas leads.",
	}, func() float64 {
		if leads() {
			return 1
		}
		return 0
	})
	registry.MustRegister(processCollectors()...)
	registry.MustRegister(m.git.collectors()...)
	registry.MustRegister(m.webhooks, leader, m.ledgerResets)
	registry.MustRegister(m.loop.Collectors()...)
	registry.MustRegister(m.members.Collectors()...)
	for _, v := range m.members.Vectors() {
		registry.AddSources(v)
	}
	registry.MustRegister(m.history.Collectors()...)
	return m
}

// gitMetrics measure polls of the Git remote, and fetches from it.
type gitMetrics struct {
	polls        *prometheus.CounterVec
	pollSeconds  prometheus.Histogram
	fetchSeconds *prometheus.HistogramVec
	received     prometheus.Counter
}

func newGitMetrics() *gitMetrics {
	m := &gitMetrics{
		polls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gitfleet_git_polls_total", Help: "Polls of the remote by result: ok or error.",
		}, []string{"result"}),
		pollSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gitfleet_git_poll_duration_seconds", Help: "Duration of a poll of the remote, including the fetch if there is one.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
		fetchSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gitfleet_git_fetch_duration_seconds", Help: "Duration of a fetch from the remote, by result: ok or error.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}, []string{"result"}),
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gitfleet_git_received_bytes_total", Help: "Bytes received by fetches.",
		}),
	}
	for _, result := range []string{"ok", "error"} {
		m.polls.WithLabelValues(result) // Prometheus needs a first sample to compute a rate
	}
	return m
}

func (m *gitMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.polls, m.pollSeconds, m.fetchSeconds, m.received}
}

// hooks returns the callbacks for the source. Each poll also calls polled.
func (m *gitMetrics) hooks(polled func(time.Duration, error)) gitsource.Hooks {
	return gitsource.Hooks{
		Polled: func(took time.Duration, err error) {
			m.polls.WithLabelValues(resultOf(err)).Inc()
			m.pollSeconds.Observe(took.Seconds())
			polled(took, err)
		},
		Fetched: func(took time.Duration, bytes int64, err error) {
			m.fetchSeconds.WithLabelValues(resultOf(err)).Observe(took.Seconds())
			m.received.Add(float64(bytes))
		},
	}
}

func resultOf(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// processCollectors measure the process itself. The live heap is the memory that gitfleet uses;
// the size of the heap also varies with garbage collection.
func processCollectors() []prometheus.Collector {
	return []prometheus.Collector{
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{
			Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`),
		})),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gitfleet_build_info", Help: "Always 1, by the version of gitfleet, the commit it was built from, and the version of Go.",
			ConstLabels: buildLabels(),
		}, func() float64 { return 1 }),
	}
}

// buildLabels are the labels of gitfleet_build_info; an unknown value is empty.
func buildLabels() prometheus.Labels {
	labels := prometheus.Labels{"version": version.Release, "revision": "", "goversion": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		labels["version"], labels["revision"] = cmp.Or(version.Release, info.Main.Version), version.Revision(info)
	}
	return labels
}
