package member

import (
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gitfleet/gitfleet/reconciler/member/series"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// The counters of drift begin at zero.
func TestCountersOfDriftBeginAtZero(t *testing.T) {
	metrics := NewMetrics()
	metrics.begin("east")
	if n := seriesOf(metrics.Drifts, metrics.Repairs)["east"]; n != 4 {
		t.Errorf("%d series of drift begin at zero, want 4", n)
	}
}

// Every metric is registered, and once the agent of a cluster has ended, none has a series of the
// cluster.
func TestEndedAgentsHaveNoSeries(t *testing.T) {
	metrics := NewMetrics()
	for _, of := range []any{*metrics, metrics.Metrics} {
		for field, value := range reflect.ValueOf(of).Fields() {
			switch metric := value.Interface().(type) {
			case *series.Vec:
				if !slices.Contains(metrics.Vectors(), metric) {
					t.Errorf("%s is not registered", field.Name)
				}
				addSeries(metric, "east")
				addSeries(metric, "west")
			case prometheus.Collector:
				if !slices.Contains(metrics.Collectors(), metric) {
					t.Errorf("%s is not registered", field.Name)
				}
			}
		}
	}
	before := seriesOf(metrics.Vectors()...)
	metrics.forget("east")
	after := seriesOf(metrics.Vectors()...)
	if before["east"] < 9 || after["east"] != 0 || after["west"] != before["west"] {
		t.Errorf("of the series %v, those after the agent of east has ended are %v", before, after)
	}
}

// addSeries adds a series to a metric. All of its labels have the same value.
func addSeries(vec *series.Vec, value string) {
	for labels := 1; labels < 5; labels++ {
		values := slices.Repeat([]string{value}, labels)
		added := true
		func() {
			defer func() { added = recover() == nil }()
			vec.Inc(values[0], values[1:]...)
		}()
		if added {
			return
		}
	}
}

// seriesOf returns the number of series of each cluster.
func seriesOf(vectors ...*series.Vec) map[string]int {
	n := map[string]int{}
	for _, v := range vectors {
		for _, family := range series.Gather(nil, v) {
			for _, series := range family.Metric {
				for _, label := range series.Label {
					if label.GetName() == "cluster" {
						n[label.GetValue()]++
					}
				}
			}
		}
	}
	return n
}

// Operations are counted by their result: a conflict is no other error.
func TestOperationsAreCountedByResult(t *testing.T) {
	for result, err := range map[string]error{
		"ok": nil, "conflict": apiserver.Refusal(http.StatusConflict, "modified"), "error": apiserver.Refusal(http.StatusForbidden, "no"),
	} {
		metrics := NewMetrics()
		metrics.done("east", "Apply", err)
		if n := metrics.Operations.Value("east", "Apply", result); n != 1 {
			t.Errorf("%s is counted %v times", result, n)
		}
	}
}
