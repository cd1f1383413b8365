package placement

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A requiredTerm matches a cluster when its labels and all its properties do.
type requiredTerm struct {
	labels     labels.Selector // nil: any
	properties []requirement
}

func (t requiredTerm) matches(c *Cluster) bool {
	if t.labels != nil && !t.labels.Matches(labels.Set(c.Labels)) {
		return false
	}
	for i := range t.properties {
		if !t.properties[i].holds(c) {
			return false
		}
	}
	return true
}

// mightMatch reports whether a cluster that is not observed matches, or might: a property that it
// does not report is not known.
func (t requiredTerm) mightMatch(c *Cluster) bool {
	if t.labels != nil && !t.labels.Matches(labels.Set(c.Labels)) {
		return false
	}
	return !slices.ContainsFunc(t.properties, func(q requirement) bool {
		_, known := c.Properties[q.property]
		return q.compare == nil || known && !q.holds(c)
	})
}

// A requirement compares one property with one quantity. A property that the cluster does not
// report is unknown, and no operator matches it, not even Ne.
type requirement struct {
	property string
	operator api.PropertySelectorOperator
	value    string
	want     resource.Quantity
	compare  func(sign int) bool // nil: never matches
}

func (q requirement) holds(c *Cluster) bool {
	if q.compare == nil {
		return false
	}
	got, known := c.Properties[q.property]
	return known && q.compare(got.Cmp(q.want))
}

var comparisons = map[api.PropertySelectorOperator]func(sign int) bool{
	api.PropertyGreaterThan:          func(sign int) bool { return sign > 0 },
	api.PropertyGreaterThanOrEqualTo: func(sign int) bool { return sign >= 0 },
	api.PropertyEqualTo:              func(sign int) bool { return sign == 0 },
	api.PropertyNotEqualTo:           func(sign int) bool { return sign != 0 },
	api.PropertyLessThan:             func(sign int) bool { return sign < 0 },
	api.PropertyLessThanOrEqualTo:    func(sign int) bool { return sign <= 0 },
}

// A preference adds to the score of the clusters that it matches.
type preference struct {
	weight int32
	labels labels.Selector // nil: any
	sorter string          // a property; empty gives the full weight to every match
	order  api.PropertySortOrder
	// lowest and highest are over all clusters that report the property, eligible or not; reported is false if there are none.
	lowest, highest resource.Quantity
	reported        bool
}

// A contribution is the part of the score of one cluster that comes from one preference, with
// the reason.
type contribution struct {
	points  int32
	matches bool // by labels
	known   bool // the property has a value, if there is a sorter
}

func (p *preference) contribution(c *Cluster) contribution {
	if p.labels != nil && !p.labels.Matches(labels.Set(c.Labels)) {
		return contribution{}
	}
	if p.sorter == "" {
		return contribution{points: p.weight, matches: true}
	}
	got, known := c.Properties[p.sorter]
	if !known {
		return contribution{matches: true}
	}
	return contribution{points: p.grade(got), matches: true, known: true}
}

func (p *preference) grade(q resource.Quantity) int32 {
	low, high := p.lowest.AsApproximateFloat64(), p.highest.AsApproximateFloat64()
	if low == high {
		return 0
	}
	share := (q.AsApproximateFloat64() - low) / (high - low)
	if p.order == api.Ascending {
		share = 1 - share
	}
	return int32(math.Round(share * float64(p.weight)))
}

// observe extends the range of the sorted property by a cluster.
func (p *preference) observe(c *Cluster) {
	q, known := c.Properties[p.sorter]
	if !known {
		return
	}
	if !p.reported || q.Cmp(p.lowest) < 0 {
		p.lowest = q
	}
	if !p.reported || q.Cmp(p.highest) > 0 {
		p.highest = q
	}
	p.reported = true
}

func parseRequirement(e api.PropertySelectorRequirement) (requirement, error) {
	q := requirement{property: e.Name, operator: e.Operator}
	if len(e.Values) != 1 {
		return q, fmt.Errorf("values must be exactly one quantity, not %d", len(e.Values))
	}
	q.value = e.Values[0]
	want, err := api.ParseQuantity(q.value)
	if err != nil {
		return q, fmt.Errorf("%q is not a quantity", q.value)
	}
	compare, known := comparisons[e.Operator]
	if !known {
		return q, fmt.Errorf("operator %q is none of Gt, Ge, Eq, Ne, Lt, Le", e.Operator)
	}
	q.want, q.compare = want, compare
	return q, nil
}

// ReferencedProperties returns the names of the properties that a policy uses, each once: first
// those that it requires, then those that it sorts by.
func ReferencedProperties(p *api.PlacementPolicy) []string {
	if p == nil || p.Affinity == nil || p.Affinity.ClusterAffinity == nil {
		return nil
	}
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	a := p.Affinity.ClusterAffinity
	if a.Required != nil {
		for _, t := range a.Required.ClusterSelectorTerms {
			if t.PropertySelector == nil {
				continue
			}
			for _, e := range t.PropertySelector.MatchExpressions {
				add(e.Name)
			}
		}
	}
	for _, preferred := range a.Preferred {
		if s := preferred.Preference.PropertySorter; s != nil {
			add(s.Name)
		}
	}
	return names
}
