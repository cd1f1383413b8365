package reconciler

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

// Metrics measure the duration of turns, and how long commits and rollouts take to reach the clusters. The caller
// registers them.
type Metrics struct {
	// Loads observes the duration of loading a commit, by result.
	Loads *prometheus.HistogramVec
	// Phases observes the duration of the phases of a turn.
	Phases *prometheus.HistogramVec
	// QueueAge is how long the oldest event has been waiting for the loop.
	QueueAge prometheus.GaugeFunc
	// Propagation observes the time until a commit is applied, and until it is available, on one cluster.
	Propagation *prometheus.HistogramVec
	// RolloutsStarted, RolloutsFinished and RolloutsStopped count rollouts of all placements, and RolloutSeconds
	// observes the duration of finished ones.
	RolloutsStarted, RolloutsFinished, RolloutsStopped prometheus.Counter
	RolloutSeconds                                     prometheus.Histogram
	// Traced says that exemplars have trace IDs, because commits are traced.
	Traced bool
	// waiting is the time at which the oldest waiting event arrived, in Unix nanoseconds; zero if no event waits.
	waiting atomic.Int64
}

// The phases of a turn.
const (
	phaseFold     = "fold"
	phasePlan     = "plan"
	phaseSave     = "save"
	phaseDispatch = "dispatch"
	phaseReport   = "report"
)

// NewMetrics returns new metrics, not registered.
func NewMetrics() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "gitfleet_" + name, Help: help})
	}
	m := &Metrics{
		Loads: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gitfleet_load_duration_seconds", Help: "Duration of loading a commit, by result: ok or error.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 8),
		}, []string{"result"}),
		Phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gitfleet_loop_phase_duration_seconds", Help: "Duration of a phase of a turn of the reconcile loop: fold, plan, save, dispatch or report.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, []string{"phase"}),
		Propagation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gitfleet_propagation_duration_seconds", Help: "Time from the detection of a commit until a cluster has its content, by stage: applied or available.",
			Buckets: prometheus.ExponentialBuckets(0.5, 2, 16),
		}, []string{"stage"}),
		RolloutsStarted:  counter("rollouts_started_total", "Rollouts that began because a commit changed the content of a placement."),
		RolloutsFinished: counter("rollouts_finished_total", "Rollouts whose content became available on every cluster."),
		RolloutsStopped:  counter("rollouts_stopped_total", "Times that a failed update stopped a rollout."),
		RolloutSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gitfleet_rollout_duration_seconds", Help: "Duration of finished rollouts, from the detection of the commit until its content was available on every cluster.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 16),
		}),
	}
	m.QueueAge = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gitfleet_loop_queue_age_seconds", Help: "Age of the oldest event that waits for the reconcile loop, which rests for up to ten seconds after long turns.",
	}, func() float64 {
		if since := m.waiting.Load(); since != 0 {
			return time.Since(time.Unix(0, since)).Seconds()
		}
		return 0
	})
	for _, phase := range []string{phaseFold, phasePlan, phaseSave, phaseDispatch, phaseReport} {
		m.Phases.WithLabelValues(phase)
	}
	for _, stage := range []string{occurrence.StageApplied, occurrence.StageAvailable} {
		m.Propagation.WithLabelValues(stage)
	}
	for _, result := range []string{"ok", "error"} {
		m.Loads.WithLabelValues(result)
	}
	return m
}

// Collectors returns all metrics, for registration.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.Loads, m.Phases, m.QueueAge, m.Propagation, m.RolloutsStarted, m.RolloutsFinished, m.RolloutsStopped, m.RolloutSeconds}
}

// timed runs a phase of a turn and measures its duration.
func (m *Metrics) timed(phase string, do func()) {
	start := time.Now()
	do()
	m.Phases.WithLabelValues(phase).Observe(time.Since(start).Seconds())
}

// loaded measures a load that has succeeded or failed.
func (m *Metrics) loaded(took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.Loads.WithLabelValues(result).Observe(took.Seconds())
}

// count counts the rollouts that have begun, finished or stopped, and measures how long it took until content was applied on a
// cluster, and until it was available. Content without a recorded time of detection is left out.
func (m *Metrics) count(all []occurrence.Occurrence) {
	labels := prometheus.Labels{} // of each exemplar in turn
	for i := range all {
		o := &all[i]
		switch o.Rollout {
		case occurrence.RolloutStarted:
			m.RolloutsStarted.Inc()
		case occurrence.RolloutFinished:
			m.RolloutsFinished.Inc()
			m.RolloutSeconds.Observe(o.RolloutTook.Seconds())
		case occurrence.RolloutStopped:
			m.RolloutsStopped.Inc()
		}
		if o.Stage == "" || o.Event == history.Failed || o.Detected.IsZero() {
			continue
		}
		clear(labels)
		labels["cluster"] = o.Cluster
		if id := tracing.TraceID(o.Commit); m.Traced && id != "" {
			labels["trace_id"] = id // with all three labels the exemplar would be too long
		} else {
			labels["commit"] = o.Commit
		}
		m.Propagation.WithLabelValues(o.Stage).(prometheus.ExemplarObserver).ObserveWithExemplar(max(0, o.Time.Sub(o.Detected).Seconds()), labels)
	}
}
