package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Explanation is everything that decided about one cluster, for a person to read.
type Explanation struct {
	Decision
	// How says how the cluster was selected, or that nothing is chosen at all; empty for a
	// cluster that was evaluated and not selected.
	How string
	// Filters are all filters in their order, including those after the first objection. For a
	// bound cluster they are what the filters would say now. They are empty for PickFixed, which
	// has none, and if nothing is chosen at all.
	Filters []Verdict
	// Required are the required terms, of which one must match.
	Required []TermVerdict
	// Preferred are the preferences, whose points add up to the affinity score. Like Filters
	// they are evaluated now, and may differ from the score of a cluster that was chosen
	// earlier.
	Preferred []Contribution
	// Spread are the constraints at the time of the last pick, whose scores add up to the
	// topology spread score; empty for a cluster that was chosen earlier, whose score is
	// recorded without its parts.
	Spread []SpreadVerdict
	// Tie says which cluster had the same score, and why one was chosen first.
	Tie string
	// Change says what would have to change for the cluster to be selected; each item is
	// necessary by itself. It is empty for a selected cluster.
	Change []string
}

// A Verdict is the result of one filter for a cluster.
type Verdict struct {
	Filter string `json:"filter"`
	Passed bool   `json:"passed"`
	// Reason is the objection; empty if there is none.
	Reason string `json:"reason,omitempty"`
}

// A TermVerdict is the result of one required term for a cluster.
type TermVerdict struct {
	Matches bool         `json:"matches"`
	Parts   []Comparison `json:"parts"`
}

// A Comparison is one requirement on a label or a property and the value found.
type Comparison struct {
	// Demand is the requirement, such as "label env in (prod)" or "property node-count Ge 4".
	Demand string `json:"demand"`
	// Found is the value, or "missing", or why it is unknown.
	Found string `json:"found"`
	Holds bool   `json:"holds"`
}

// A Contribution is what one preference adds to the score of a cluster.
type Contribution struct {
	// Preference is, for example, "100 · node-count Descending if env in (prod)".
	Preference string `json:"preference"`
	Points     int32  `json:"points"`
	// Reason says where the points come from.
	Reason string `json:"reason"`
}

// A SpreadVerdict says how choosing a cluster would affect one constraint.
type SpreadVerdict struct {
	// Constraint is, for example, "zone, max skew 1, DoNotSchedule".
	Constraint string `json:"constraint"`
	// Domain is the cluster's value of the topology label; Labeled says that it has the label.
	Domain  string `json:"domain"`
	Labeled bool   `json:"labeled"`
	// Count is how many clusters of the domain are chosen; Low and High are the smallest and
	// the largest count of any domain.
	Count int32 `json:"count"`
	Low   int32 `json:"low"`
	High  int32 `json:"high"`
	// Delta is what the choice would add to the skew.
	Delta    int32 `json:"delta"`
	Violated bool  `json:"violated"`
	// Score is its part of the topology spread score.
	Score int32 `json:"score"`
}

func (t requiredTerm) explain(m *Cluster) TermVerdict {
	v := TermVerdict{Matches: t.matches(m), Parts: []Comparison{}}
	v.Parts = append(v.Parts, explainLabels(t.labels, m)...)
	for _, q := range t.properties {
		v.Parts = append(v.Parts, Comparison{
			Demand: fmt.Sprintf("property %s %s %s", q.property, q.operator, q.value),
			Found:  propertyText(q.property, m),
			Holds:  q.holds(m),
		})
	}
	return v
}

func explainLabels(s labels.Selector, m *Cluster) []Comparison {
	if s == nil {
		return nil
	}
	var all []Comparison
	requirements, selectable := s.Requirements()
	if !selectable {
		return []Comparison{{Demand: "labels that no cluster can have", Found: "labels"}}
	}
	for _, r := range requirements {
		value, ok := m.Labels[r.Key()]
		if !ok {
			value = "missing"
		}
		all = append(all, Comparison{Demand: "label " + r.String(), Found: value, Holds: r.Matches(labels.Set(m.Labels))})
	}
	return all
}

// propertyText returns the value of a property as text.
func propertyText(property string, m *Cluster) string {
	if q, known := m.Properties[property]; known {
		return q.String()
	}
	if value, bad := m.Malformed[property]; bad {
		return fmt.Sprintf("unknown: %q is not a quantity", value)
	}
	return "missing"
}

func (p *preference) explain(m *Cluster) Contribution {
	got := p.contribution(m)
	e := Contribution{Preference: strconv.Itoa(int(p.weight)), Points: got.points}
	if p.sorter != "" {
		e.Preference += " · " + p.sorter + " " + string(p.order)
	}
	if p.labels != nil {
		e.Preference += " if " + p.labels.String()
	}
	switch {
	case !got.matches:
		e.Reason = "labels do not match"
	case p.sorter == "":
		e.Reason = "labels match"
	case !got.known:
		e.Reason = p.sorter + " is " + propertyText(p.sorter, m)
	case p.weight == 0:
		e.Reason = p.sorter + " is " + propertyText(p.sorter, m) + ", and the weight is 0"
	case p.lowest.Cmp(p.highest) == 0:
		e.Reason = fmt.Sprintf("%s is %s, as on every cluster that reports it", p.sorter, propertyText(p.sorter, m))
	default:
		e.Reason = fmt.Sprintf("%s is %s, between %s and %s over the fleet", p.sorter, propertyText(p.sorter, m), p.lowest.String(), p.highest.String())
	}
	return e
}

// verdicts returns how choosing a cluster next would affect each constraint.
func (s *spread) verdicts(cluster int) []SpreadVerdict {
	var all []SpreadVerdict
	for i, c := range s.constraints {
		d := s.perConstraint[i]
		v := SpreadVerdict{Constraint: c.String(), Low: d.low, High: d.high}
		if id := d.of[cluster]; id >= 0 {
			v.Domain, v.Labeled, v.Count = d.names[id], true, d.count[id]
			v.Delta, v.Violated = d.effect(id, c.maxSkew)
			switch {
			case !v.Violated:
				v.Score = -v.Delta
			case !c.hard:
				v.Score = -penalty
			}
		}
		all = append(all, v)
	}
	return all
}

// String returns, for example, "zone, max skew 1, DoNotSchedule".
func (c constraint) String() string {
	action := api.ScheduleAnyway
	if c.hard {
		action = api.DoNotSchedule
	}
	return fmt.Sprintf("%s, max skew %d, %s", c.key, c.maxSkew, action)
}

// A pickRecord has what an explanation of PickN needs and scheduling does not: the last pick, and of each picked cluster the spread and
// whether another one had the same scores.
type pickRecord struct {
	last   *clusterState
	spread map[*clusterState][]SpreadVerdict
	ties   map[*clusterState]string
}

// record records a pick. The candidates are those that are left.
func (p *pickRecord) record(m *clusterState, score int32, s *spread, candidates []*clusterState) {
	p.last = m
	p.spread[m] = s.verdicts(m.index)
	if i, second := s.next(candidates); i >= 0 && second == score && candidates[i].affinity == m.affinity {
		p.ties[m] = tie(m, candidates[i])
	}
}

// tie says why the first of two clusters with equal scores was chosen.
func tie(first, second *clusterState) string {
	why := "of equals the largest name does"
	if first.class == reconsidered && second.class != reconsidered {
		why = "the placement holds it already"
	}
	return fmt.Sprintf("%s and %s have the same scores: %s goes first, because %s", first.Name, second.Name, first.Name, why)
}

// filterChanges says what each objecting filter requires.
func (r *rules) filterChanges(m *Cluster) []string {
	var needs []string
	if r.mismatch(m) != "" {
		needs = append(needs, "it must match a required term, the closest being: "+list(r.closest(m).failed()))
	}
	if m.Ineligible != "" {
		needs = append(needs, "it must be eligible: "+m.Ineligible)
	}
	if r.lacksNamespace(m) != "" {
		needs = append(needs, "namespace "+quote(r.namespace)+" must exist on it")
	}
	for _, t := range m.Taints {
		if !r.tolerated(t) {
			needs = append(needs, "taint "+taintText(t)+" must be tolerated by the placement, or taken off")
		}
	}
	for _, o := range r.together {
		if !o.holds[m.Name] {
			needs = append(needs, "placement "+quote(o.name)+" must be on it")
		}
	}
	for _, o := range r.apart {
		if o.holds[m.Name] {
			needs = append(needs, "placement "+quote(o.name)+" must not be on it")
		}
	}
	return needs
}

// closest returns the required term with the fewest failing parts.
func (r *rules) closest(m *Cluster) TermVerdict {
	verdicts := make([]TermVerdict, len(r.required))
	for i, t := range r.required {
		verdicts[i] = t.explain(m)
	}
	return slices.MinFunc(verdicts, func(a, b TermVerdict) int {
		return cmp.Compare(len(a.failed()), len(b.failed()))
	})
}

// failed lists the failing parts as text.
func (v TermVerdict) failed() []string {
	var all []string
	for _, p := range v.Parts {
		if !p.Holds {
			all = append(all, p.Demand+" (it is "+p.Found+")")
		}
	}
	return all
}
