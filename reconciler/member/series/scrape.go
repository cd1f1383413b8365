package series

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A Desc describes a metric.
type Desc struct {
	name, help string
	kind       dto.MetricType
	labels     []string
}

// NewGaugeDesc returns the description of a gauge.
func NewGaugeDesc(name, help string, labels ...string) *Desc {
	return &Desc{name, help, dto.MetricType_GAUGE, labels}
}

// Prometheus returns the description as the Prometheus library has it.
func (d *Desc) Prometheus() *prometheus.Desc {
	return prometheus.NewDesc(d.name, d.help, d.labels, nil)
}

// A Source has the values of many series.
type Source interface {
	// Describe sends the descriptions of all of its metrics.
	Describe(chan<- *prometheus.Desc)
	// AddTo adds the present values of all series to a scrape, each once.
	AddTo(*Scrape)
}

// A Scrape has the values of series at one time.
type Scrape struct {
	common   *dto.LabelPair // of all series; nil for none
	families map[*Desc]*family

	metrics  slab[dto.Metric]
	gauges   slab[dto.Gauge]
	counters slab[dto.Counter]
	numbers  slab[float64]
	lists    slab[*dto.LabelPair]
	pairs    slab[dto.LabelPair]
	texts    slab[string]
}

// A family has the series of one metric.
type family struct {
	*dto.MetricFamily
	// order has the positions of the values that are given to Add, sorted by the names of their labels, with commonLabel for the label
	// of all series.
	order []int
	// last are the labels of the series added last, by position. The next series often has some of them.
	last []*dto.LabelPair
}

// commonLabel is the position of the label of all series.
const commonLabel = -1

// Gather returns the present values of all series of some sources, by the names of the metrics. All get a common label, unless it is
// nil.
func Gather(common *dto.LabelPair, sources ...Source) []*dto.MetricFamily {
	s := &Scrape{common: common, families: map[*Desc]*family{}}
	for _, source := range sources {
		source.AddTo(s)
	}
	var all []*dto.MetricFamily
	for _, f := range s.families {
		all = append(all, f.MetricFamily)
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all
}

// Add adds a series with the values of its labels, in the order of its description.
func (s *Scrape) Add(d *Desc, value float64, labels ...string) {
	f := s.family(d)
	m := &s.metrics.take(1)[0]
	m.Label = s.lists.take(len(f.order))
	for i, at := range f.order {
		if at == commonLabel {
			m.Label[i] = s.common
			continue
		}
		if f.last[at] == nil || f.last[at].GetValue() != labels[at] {
			text, pair := &s.texts.take(1)[0], &s.pairs.take(1)[0]
			*text, pair.Name, pair.Value = labels[at], &d.labels[at], text
			f.last[at] = pair
		}
		m.Label[i] = f.last[at]
	}
	number := &s.numbers.take(1)[0]
	*number = value
	if d.kind == dto.MetricType_COUNTER {
		m.Counter = &s.counters.take(1)[0]
		m.Counter.Value = number
	} else {
		m.Gauge = &s.gauges.take(1)[0]
		m.Gauge.Value = number
	}
	f.Metric = append(f.Metric, m)
}

// family returns the family of a metric, which is created if necessary.
func (s *Scrape) family(d *Desc) *family {
	if f := s.families[d]; f != nil {
		return f
	}
	f := &family{MetricFamily: &dto.MetricFamily{Name: &d.name, Help: &d.help, Type: &d.kind}, last: make([]*dto.LabelPair, len(d.labels))}
	for i := range d.labels {
		f.order = append(f.order, i)
	}
	if s.common != nil {
		f.order = append(f.order, commonLabel)
	}
	name := func(at int) string {
		if at == commonLabel {
			return s.common.GetName()
		}
		return d.labels[at]
	}
	slices.SortFunc(f.order, func(a, b int) int { return cmp.Compare(name(a), name(b)) })
	s.families[d] = f
	return f
}

// A slab allocates values in blocks.
type slab[T any] []T

const slabSize = 512

// take returns n zero values.
func (s *slab[T]) take(n int) []T {
	if len(*s) < n {
		*s = make([]T, max(n, slabSize))
	}
	taken := (*s)[:n:n]
	*s = (*s)[n:]
	return taken
}
