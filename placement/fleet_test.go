package placement_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

const (
	silent    = "cluster is not connected to the fleet: no recent heartbeat signals (last received 12.00 minutes ago)"
	notJoined = "cluster is not connected to the fleet: member agent not joined yet"

	res = api.ResourcePropertyPrefix
)

// A fleet is a list of clusters that can be changed by name and keeps its order.
type fleet []placement.Cluster

// theFleet is the fleet of most examples. m8 has been silent for too long, and m9 has never
// joined and reports nothing.
func theFleet() fleet {
	rows := `
m1 east    prod   2 100 4  3  2 4  3  2
m2 east    prod   4 60  8  7  4 8  7  4
m3 east    canary 6 40  12 11 6 12 11 6
m4 central prod   2 80  8  6  2 4  2  1
m5 central prod   8 40  32 30 8 16 14 4
m6 west    prod   2 60  4  2  1 8  6  4
m7 west    canary 8 20  16 14 4 32 30 16
m8 east    prod   1 100 8  6  0 8  6  0
m9 central prod`
	columns := []string{
		"node-count", "rating", res + "total-cpu", res + "allocatable-cpu", res + "available-cpu",
		res + "total-memory", res + "allocatable-memory", res + "available-memory",
	}
	var f fleet
	for _, row := range strings.Split(strings.TrimSpace(rows), "\n") {
		words := strings.Fields(row)
		c := placement.Cluster{
			Name:       words[0],
			Labels:     map[string]string{"region": words[1], "env": words[2]},
			Properties: map[string]resource.Quantity{},
		}
		for i, value := range words[3:] {
			if strings.HasSuffix(columns[i], "memory") {
				value += "Gi"
			}
			c.Properties[columns[i]] = resource.MustParse(value)
		}
		f = append(f, c)
	}
	f.get("m8").Ineligible = silent
	f.get("m9").Ineligible = notJoined
	return f
}

// clusters returns a fleet from names with labels: "a1 zone=a, b1 zone=b".
func clusters(text string) fleet {
	var f fleet
	for _, one := range strings.Split(text, ",") {
		words := strings.Fields(one)
		c := placement.Cluster{Name: words[0], Labels: map[string]string{}, Properties: map[string]resource.Quantity{}}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			c.Labels[key] = value
		}
		f = append(f, c)
	}
	return f
}

func (f fleet) get(name string) *placement.Cluster {
	for i := range f {
		if f[i].Name == name {
			return &f[i]
		}
	}
	panic("no cluster " + name)
}

func (f fleet) without(names ...string) fleet {
	return slices.DeleteFunc(slices.Clone(f), func(c placement.Cluster) bool { return slices.Contains(names, c.Name) })
}

func (f fleet) ill(names ...string) fleet {
	for _, name := range names {
		f.get(name).Ineligible = "cluster is ill"
	}
	return f
}

// tainted adds the taint region=env:NoSchedule to clusters, with the values of their own
// labels.
func (f fleet) tainted(names ...string) fleet {
	for _, name := range names {
		c := f.get(name)
		c.Taints = append(c.Taints, api.Taint{Key: c.Labels["region"], Value: c.Labels["env"], Effect: api.NoSchedule})
	}
	return f
}

// set sets one property of several clusters: "a=0 b=1".
func (f fleet) set(property, values string) fleet {
	for _, word := range strings.Fields(values) {
		name, value, _ := strings.Cut(word, "=")
		f.get(name).Properties[property] = resource.MustParse(value)
	}
	return f
}

// A part sets a part of a policy.
type part func(*api.PlacementPolicy)

func policy(kind api.PlacementType, parts ...part) *api.PlacementPolicy {
	p := &api.PlacementPolicy{PlacementType: kind}
	for _, part := range parts {
		part(p)
	}
	return p
}

func pickAll(parts ...part) *api.PlacementPolicy { return policy(api.PickAll, parts...) }

func pickFixed(names string) *api.PlacementPolicy {
	p := policy(api.PickFixed)
	p.ClusterNames = strings.Fields(names)
	return p
}

func pickN(n int32, parts ...part) *api.PlacementPolicy {
	p := policy(api.PickN, parts...)
	p.NumberOfClusters = &n
	return p
}

func affinity(p *api.PlacementPolicy) *api.ClusterAffinity {
	if p.Affinity == nil {
		p.Affinity = &api.Affinity{}
	}
	if p.Affinity.ClusterAffinity == nil {
		p.Affinity.ClusterAffinity = &api.ClusterAffinity{}
	}
	return p.Affinity.ClusterAffinity
}

// require adds a term of labels and properties:
// "env=prod; node-count Ge 4; rating Lt 45".
func require(term string) part {
	return func(p *api.PlacementPolicy) {
		a := affinity(p)
		if a.Required == nil {
			a.Required = &api.ClusterSelector{}
		}
		a.Required.ClusterSelectorTerms = append(a.Required.ClusterSelectorTerms, selectorTerm(term))
	}
}

func selectorTerm(text string) api.ClusterSelectorTerm {
	var t api.ClusterSelectorTerm
	for _, clause := range strings.Split(text, ";") {
		words := strings.Fields(clause)
		if len(words) == 3 && words[1][0] >= 'A' && words[1][0] <= 'Z' {
			if t.PropertySelector == nil {
				t.PropertySelector = &api.PropertySelector{}
			}
			t.PropertySelector.MatchExpressions = append(t.PropertySelector.MatchExpressions, api.PropertySelectorRequirement{
				Name: words[0], Operator: api.PropertySelectorOperator(words[1]), Values: words[2:],
			})
		} else if len(words) > 0 {
			t.LabelSelector = labelsOf(clause)
		}
	}
	return t
}

func labelsOf(text string) *metav1.LabelSelector {
	s, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		panic(err)
	}
	return s
}

func prefer(weight int32, labels string) part { return sortBy(weight, labels, "", "") }

// sortBy prefers clusters by a property; without labels it applies to every cluster.
func sortBy(weight int32, labels, property string, order api.PropertySortOrder) part {
	return func(p *api.PlacementPolicy) {
		s := api.PreferredClusterSelector{Weight: weight}
		if labels != "" {
			s.Preference.LabelSelector = labelsOf(labels)
		}
		if property != "" {
			s.Preference.PropertySorter = &api.PropertySorter{Name: property, SortOrder: order}
		}
		a := affinity(p)
		a.Preferred = append(a.Preferred, s)
	}
}

func spreadHard(key string, skew int32) part { return spreadBy(key, skew, "") }
func spreadSoft(key string, skew int32) part { return spreadBy(key, skew, api.ScheduleAnyway) }

func spreadBy(key string, skew int32, when api.UnsatisfiableConstraintAction) part {
	return func(p *api.PlacementPolicy) {
		p.TopologySpreadConstraints = append(p.TopologySpreadConstraints, api.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: &skew, WhenUnsatisfiable: when,
		})
	}
}

func tolerate(t ...api.Toleration) part {
	return func(p *api.PlacementPolicy) { p.Tolerations = append(p.Tolerations, t...) }
}

func followed(names ...string) part {
	return func(p *api.PlacementPolicy) { affinity(p); p.Affinity.PlacementAffinity = references(names) }
}

func avoided(names ...string) part {
	return func(p *api.PlacementPolicy) { affinity(p); p.Affinity.PlacementAntiAffinity = references(names) }
}

func references(names []string) []api.PlacementReference {
	var refs []api.PlacementReference
	for _, name := range names {
		refs = append(refs, api.PlacementReference{Name: name})
	}
	return refs
}

var crp = api.PlacementKey{Name: "web"}

// tell formats an outcome: the selected clusters with their scores, those that were scored and
// not selected, the names of all others, and whether the policy is fulfilled.
func tell(o placement.Outcome) string {
	var chosen, lost, out []string
	for _, d := range o.Decisions {
		switch {
		case d.Selected:
			chosen = append(chosen, d.Cluster+score(d.Score))
		case d.Score != nil:
			lost = append(lost, d.Cluster+score(d.Score))
		default:
			out = append(out, d.Cluster)
		}
	}
	lines := []string{strings.Join(append([]string{"in:"}, chosen...), " ")}
	if len(lost) > 0 {
		lines = append(lines, "lost: "+strings.Join(lost, " "))
	}
	if len(out) > 0 {
		lines = append(lines, "out: "+strings.Join(out, " "))
	}
	return strings.Join(append(lines, fmt.Sprintf("%t %d of %d", o.Fulfilled, o.Found, o.Wanted)), "\n")
}

// score omits zero parts, and returns "-" for no score.
func score(s *placement.Score) string {
	if s == nil {
		return "-"
	}
	var parts []string
	if s.Affinity != 0 {
		parts = append(parts, "A"+strconv.Itoa(int(s.Affinity)))
	}
	if s.Spread != 0 {
		parts = append(parts, "T"+strconv.Itoa(int(s.Spread)))
	}
	if parts == nil {
		return ""
	}
	return "(" + strings.Join(parts, ",") + ")"
}

// holds formats bindings: "m1 *m2 -m3" has m1, m2 with released content, and m3 that is being
// removed.
func holds(bindings []placement.Binding) string {
	var all []string
	for _, b := range bindings {
		name := b.Cluster
		if b.HasRevision() {
			name = "*" + name
		}
		if b.Unscheduled {
			name = "-" + name
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

var boundPattern = regexp.MustCompile(`^(-?)(\*?)([\w-]+)(?:\(T(-?\d+),A(-?\d+)\))?$`)

// bound parses bindings in the form of holds, each optionally with its score: "*m2(T0,A5)".
// They were selected under the given policy, in this order.
func bound(p *api.PlacementPolicy, text string) []placement.Binding {
	var all []placement.Binding
	for i, word := range strings.Fields(text) {
		m := boundPattern.FindStringSubmatch(word)
		if m == nil {
			panic("not a binding: " + word)
		}
		b := placement.Binding{
			Cluster: m[3], Policy: placement.PolicyHash(p), Reason: "chosen before", Order: i + 1,
			Score: &placement.Score{}, Unscheduled: m[1] != "",
		}
		if m[2] != "" {
			b.Assigned = placement.Revision{Commit: "c1", Hash: "h1"}
		}
		if m[4] != "" {
			spread, _ := strconv.Atoi(m[4])
			affinity, _ := strconv.Atoi(m[5])
			b.Score = &placement.Score{Spread: int32(spread), Affinity: int32(affinity)}
		}
		all = append(all, b)
	}
	return all
}

// reasonOf returns the reason of a cluster's decision.
func reasonOf(t *testing.T, o placement.Outcome, cluster string) string {
	t.Helper()
	for _, d := range o.Decisions {
		if d.Cluster == cluster {
			return d.Reason
		}
	}
	t.Fatalf("no decision on %s", cluster)
	return ""
}
