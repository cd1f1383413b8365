package server

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// fleetLabel is the label with the name of the fleet.
const fleetLabel = "fleet"

// A fleetGatherer adds the label fleet to all series of a registry. It does so at each scrape and
// not at the registration, since the metrics are served before the ledger, which has the name of
// the fleet, can be read.
type fleetGatherer struct {
	prometheus.Gatherer
	fleet atomic.Pointer[string] // nil for no label
}

// Gather implements prometheus.Gatherer.
func (g *fleetGatherer) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Gatherer.Gather()
	fleet := g.fleet.Load()
	if fleet == nil {
		return families, err
	}
	name := fleetLabel
	label := &dto.LabelPair{Name: &name, Value: fleet}
	for _, f := range families {
		for _, m := range f.Metric {
			at, _ := slices.BinarySearchFunc(m.Label, name, func(l *dto.LabelPair, name string) int { return strings.Compare(l.GetName(), name) })
			m.Label = slices.Insert(slices.Clip(m.Label), at, label) // the labels of a series belong to its collector
		}
	}
	return families, err
}
