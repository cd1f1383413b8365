// Package series has Prometheus metrics with many series, such as one of each member cluster.
//
// A Vec keeps only the values, and a Registry creates the metrics at each scrape. The vectors of the Prometheus library keep half a
// kilobyte for each series, which is 10 KiB for each of thousands of clusters.
package series

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// clusterLabel is the first label of each metric.
const clusterLabel = "cluster"

// maxOthers is the maximum number of labels beside that of the cluster.
const maxOthers = 2

// A Vec is a counter or a gauge with the label cluster and up to two others, whose values are given in the order of New. It is
// safe for concurrent use.
type Vec struct {
	desc *Desc

	mu       sync.Mutex
	clusters map[string][]value
	// known are the values of the other labels that any cluster has; index has their positions.
	known []otherLabels
	index map[otherLabels]int32
}

type otherLabels [maxOthers]string

// A value is that of one series. labels is the position of its other labels.
type value struct {
	labels int32
	value  float64
}

// NewCounter returns a counter.
func NewCounter(name, help string, others ...string) *Vec {
	return newVec(dto.MetricType_COUNTER, name, help, others)
}

// NewGauge returns a gauge.
func NewGauge(name, help string, others ...string) *Vec {
	return newVec(dto.MetricType_GAUGE, name, help, others)
}

func newVec(kind dto.MetricType, name, help string, others []string) *Vec {
	if len(others) > maxOthers {
		panic(fmt.Sprintf("%s has the labels %q", name, others))
	}
	return &Vec{
		desc:     &Desc{name, help, kind, append([]string{clusterLabel}, others...)},
		clusters: map[string][]value{}, index: map[otherLabels]int32{},
	}
}

// Inc adds one to a series. Like Add and Set it creates the series if necessary.
func (v *Vec) Inc(cluster string, others ...string) { v.Add(1, cluster, others...) }

// Dec subtracts one from a series. One that was deleted stays deleted.
func (v *Vec) Dec(cluster string, others ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := v.find(cluster, v.position(others)); x != nil {
		*x--
	}
}

// Add adds a number to a series.
func (v *Vec) Add(n float64, cluster string, others ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	*v.at(cluster, others) += n
}

// Set sets the value of a series.
func (v *Vec) Set(n float64, cluster string, others ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	*v.at(cluster, others) = n
}

// Value returns the value of a series; zero if there is none.
func (v *Vec) Value(cluster string, others ...string) float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := v.find(cluster, v.position(others)); x != nil {
		return *x
	}
	return 0
}

// at returns the value of a series, which is created if necessary.
func (v *Vec) at(cluster string, others []string) *float64 {
	labels := v.position(others)
	if x := v.find(cluster, labels); x != nil {
		return x
	}
	v.clusters[cluster] = append(v.clusters[cluster], value{labels: labels})
	return v.find(cluster, labels)
}

// find returns the value of a series; nil if there is none.
func (v *Vec) find(cluster string, labels int32) *float64 {
	all := v.clusters[cluster]
	for i := range all {
		if all[i].labels == labels {
			return &all[i].value
		}
	}
	return nil
}

// position returns the position of labels in known, to which they are added if necessary.
func (v *Vec) position(others []string) int32 {
	if 1+len(others) != len(v.desc.labels) {
		panic(fmt.Sprintf("%s: the labels %q", v.desc.name, others))
	}
	var labels otherLabels
	copy(labels[:], others)
	at, known := v.index[labels]
	if !known {
		at = int32(len(v.known))
		v.known, v.index[labels] = append(v.known, labels), at
	}
	return at
}

// Delete removes all series of a cluster.
func (v *Vec) Delete(cluster string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.clusters, cluster)
}

// Describe implements Source.
func (v *Vec) Describe(out chan<- *prometheus.Desc) { out <- v.desc.Prometheus() }

// AddTo implements Source.
func (v *Vec) AddTo(scrape *Scrape) {
	for _, s := range v.samples() {
		scrape.Add(v.desc, s.value, s.labels[:len(v.desc.labels)]...)
	}
}

// A sample is the value of a series at some time.
type sample struct {
	labels [1 + maxOthers]string
	value  float64
}

// samples returns the values of all series, by their labels. Nobody waits for the lock while they are added to a scrape.
func (v *Vec) samples() []sample {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]sample, 0, len(v.clusters)*len(v.known))
	for _, cluster := range slices.Sorted(maps.Keys(v.clusters)) {
		first := len(out)
		for _, s := range v.clusters[cluster] {
			others := v.known[s.labels]
			out = append(out, sample{[...]string{cluster, others[0], others[1]}, s.value})
		}
		slices.SortFunc(out[first:], func(a, b sample) int { return slices.Compare(a.labels[1:], b.labels[1:]) })
	}
	return out
}
