package scenario

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/gitfleet/gitfleet/test/world"
)

// measured returns the value of a metric, or the count and sum of its observations.
func measured(t *testing.T, c prometheus.Metric) (value float64, count uint64) {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	if h := m.GetHistogram(); h != nil {
		return h.GetSampleSum(), h.GetSampleCount()
	}
	return m.GetCounter().GetValue(), 0
}

// A rollout is counted once when it begins and when it ends, and each cluster once for each
// commit that it gets, also after a restart. A cluster that breaks and recovers, or is selected
// later, is not a rollout.
func TestRolloutsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const web = "namespace web\nplace web unavailable 1\n"
		s := newScene(t)
		s.source.push("v1", "", world.Files(t, "clusters east west\n"+web))
		s.start()
		defer func() { s.stop() }()
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		expect := func(when string, started, stopped, finished float64, applied, available uint64) {
			t.Helper()
			m := s.metrics
			gotStarted, _ := measured(t, m.RolloutsStarted)
			gotStopped, _ := measured(t, m.RolloutsStopped)
			gotFinished, _ := measured(t, m.RolloutsFinished)
			_, durations := measured(t, m.RolloutSeconds)
			_, gotApplied := measured(t, m.Propagation.WithLabelValues("applied").(prometheus.Histogram))
			_, gotAvailable := measured(t, m.Propagation.WithLabelValues("available").(prometheus.Histogram))
			if gotStarted != started || gotStopped != stopped || gotFinished != finished || float64(durations) != finished || gotApplied != applied || gotAvailable != available {
				t.Errorf("%s: %v rollouts started, %v stopped, %v finished, %d timed, %d applied and %d available; want %v, %v, %v, %v, %d, %d", when,
					gotStarted, gotStopped, gotFinished, durations, gotApplied, gotAvailable, started, stopped, finished, finished, applied, available)
			}
		}
		pass(5 * time.Minute)
		expect("after the first commit", 1, 0, 1, 2, 2)

		s.do([]string{"fail", "web", "east"})
		s.source.push("v2", "", world.Files(t, "clusters east west\n"+web+"configmap web/one\n"))
		pass(time.Minute)
		expect("when an update is not applied", 2, 0, 1, 2, 2)
		s.do([]string{"stop"})
		s.do([]string{"start"})
		pass(time.Minute)
		expect("after a restart", 2, 0, 1, 2, 2)
		s.do([]string{"heal", "web", "east"})
		pass(10 * time.Minute)
		expect("once it has recovered", 2, 0, 2, 4, 4)
		if took, _ := measured(t, s.metrics.RolloutSeconds); took < 120 {
			t.Errorf("both rollouts took %v s, and the second alone waited two minutes", took)
		}

		s.do([]string{"fail", "web", "west"})
		pass(time.Minute)
		s.do([]string{"heal", "web", "west"})
		pass(time.Hour)
		s.source.push("v3", "", world.Files(t, "clusters east north west\n"+web+"configmap web/one\n"))
		pass(10 * time.Minute)
		expect("when a cluster joins", 2, 0, 2, 5, 5)
		if sum, _ := measured(t, s.metrics.Propagation.WithLabelValues("applied").(prometheus.Histogram)); sum > 1800 {
			t.Errorf("the clusters took %v s in all; one that joins takes none of the time before", sum)
		}
		if age, _ := measured(t, s.metrics.QueueAge); age != 0 {
			t.Errorf("an event has been waiting for %v s", age)
		}
		for _, phase := range []string{"fold", "plan", "save", "dispatch", "report"} {
			if _, n := measured(t, s.metrics.Phases.WithLabelValues(phase).(prometheus.Histogram)); n == 0 {
				t.Errorf("the phase %s is not timed", phase)
			}
		}
	})
}
