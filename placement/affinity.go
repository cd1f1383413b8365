package placement

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// lowest and highest are over all clusters that report the property, eligible or not.
	lowest, highest resource.Quantity
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

// observe sets the range of the sorted property.
func (p *preference) observe(fleet []*clusterState) {
	seen := false
	for _, c := range fleet {
		q, known := c.Properties[p.sorter]
		if !known {
			continue
		}
		if !seen || q.Cmp(p.lowest) < 0 {
			p.lowest = q
		}
		if !seen || q.Cmp(p.highest) > 0 {
			p.highest = q
		}
		seen = true
	}
}

// affinity is the sum of all preferences, not clamped.
func (r *rules) affinity(m *Cluster) int32 {
	var sum int32
	for i := range r.preferred {
		sum += r.preferred[i].contribution(m).points
	}
	return sum
}

func (r *rules) compileAffinity(a *api.ClusterAffinity) {
	const field = "spec.policy.affinity.clusterAffinity."
	if a == nil {
		return
	}
	if a.Required != nil {
		for i, t := range a.Required.ClusterSelectorTerms {
			at := field + "requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[" + strconv.Itoa(i) + "]"
			r.required = append(r.required, r.requiredTerm(t, at))
		}
	}
	for i, p := range a.Preferred {
		at := field + "preferredDuringSchedulingIgnoredDuringExecution[" + strconv.Itoa(i) + "].preference"
		r.preferred = append(r.preferred, r.preference(p, at))
	}
}

func (r *rules) requiredTerm(t api.ClusterSelectorTerm, at string) requiredTerm {
	term := requiredTerm{labels: r.selector(t.LabelSelector, at)}
	if t.PropertySelector == nil {
		return term
	}
	for i, e := range t.PropertySelector.MatchExpressions {
		q, err := parseRequirement(e)
		if err != nil {
			r.addNote(fmt.Sprintf("%s.propertySelector.matchExpressions[%d]: %s, so it matches no cluster", at, i, err))
		}
		term.properties = append(term.properties, q)
	}
	return term
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

func (r *rules) preference(p api.PreferredClusterSelector, at string) preference {
	out := preference{weight: p.Weight, labels: r.selector(p.Preference.LabelSelector, at)}
	if s := p.Preference.PropertySorter; s != nil {
		out.sorter, out.order = s.Name, s.SortOrder
	}
	return out
}

// selector parses a label selector; nil matches everything. An invalid one matches nothing.
func (r *rules) selector(s *metav1.LabelSelector, at string) labels.Selector {
	if s == nil {
		return nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		r.addNote(at + ".labelSelector: " + err.Error() + ", so it matches no cluster")
		return labels.Nothing()
	}
	return parsed
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
