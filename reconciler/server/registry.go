package server

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/gitfleet/gitfleet/reconciler/member/series"
)

// A Registry is a registry of the Prometheus library that has sources of many series too. It gathers those in the goroutine of the
// scrape and without checks, which would take longer than everything else: a scrape of a large fleet has tens of thousands of series.
type Registry struct {
	*prometheus.Registry
	sources []series.Source
	fleet   atomic.Pointer[dto.LabelPair] // nil for no label
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{Registry: prometheus.NewRegistry()} }

// AddSources adds sources. It must not be called after the server has started.
func (r *Registry) AddSources(sources ...series.Source) { r.sources = append(r.sources, sources...) }

// fleetLabel is the label with the name of the fleet.
const fleetLabel = "fleet"

// setFleet sets the name of the fleet, which all series have as a label. They get it at each scrape, since the metrics are served
// before the ledger, which has the name, can be read.
func (r *Registry) setFleet(name string) {
	label := fleetLabel
	r.fleet.Store(&dto.LabelPair{Name: &label, Value: &name})
}

// Describe sends the descriptions of all metrics.
func (r *Registry) Describe(out chan<- *prometheus.Desc) {
	r.Registry.Describe(out)
	for _, s := range r.sources {
		s.Describe(out)
	}
}

// Gather implements prometheus.Gatherer.
func (r *Registry) Gather() ([]*dto.MetricFamily, error) {
	fleet := r.fleet.Load()
	families, err := r.Registry.Gather()
	if fleet != nil {
		for _, f := range families {
			for _, m := range f.Metric {
				at, _ := slices.BinarySearchFunc(m.Label, fleetLabel, func(l *dto.LabelPair, name string) int { return strings.Compare(l.GetName(), name) })
				m.Label = slices.Insert(slices.Clip(m.Label), at, fleet) // the labels of a series belong to its collector
			}
		}
	}
	families = append(families, series.Gather(fleet, r.sources...)...)
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return families, err
}
