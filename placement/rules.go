package placement

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement/api"
)

// rules are a compiled policy, with parsed selectors and quantities, and with defaults.
type rules struct {
	// hash is the PolicyHash.
	hash string
	// n is the number of clusters of PickN, and hasNumber says that the policy sets it.
	n         int
	hasNumber bool
	// names are the clusters that PickFixed names, each once, and listed has the same names.
	names  []string
	listed map[string]bool
	// namespace is that of a ResourcePlacement; empty for a ClusterResourcePlacement.
	namespace string

	// required are the terms of which a cluster must match one; every cluster matches if there
	// are none.
	required    []requiredTerm
	preferred   []preference
	constraints []constraint
	tolerations []api.Toleration
	together    []otherPlacement
	apart       []otherPlacement

	// usedProperties are the properties that the policy uses.
	usedProperties []string
	// notes are warnings about the policy.
	notes []string
}

// An otherPlacement is another placement and the clusters it holds.
type otherPlacement struct {
	name  string
	holds map[string]bool
}

// compile returns the rules of a policy, which may be nil, for a placement in a namespace; the namespace of a ClusterResourcePlacement is
// empty. others are the clusters that other placements hold, by placement name.
func compile(policy *api.PlacementPolicy, namespace string, others map[string][]string) *rules {
	p := canonical(policy)
	compiled := &rules{
		hash:        PolicyHash(policy),
		namespace:   namespace,
		tolerations: p.Tolerations,

		usedProperties: ReferencedProperties(policy),
	}
	if policy != nil && policy.NumberOfClusters != nil {
		compiled.n, compiled.hasNumber = max(0, int(*policy.NumberOfClusters)), true
	}
	compiled.listed = make(map[string]bool, len(p.ClusterNames))
	for _, name := range p.ClusterNames {
		if !compiled.listed[name] {
			compiled.listed[name] = true
			compiled.names = append(compiled.names, name)
		}
	}
	compiled.constraints = compileSpread(p.TopologySpreadConstraints)
	if a := p.Affinity; a != nil {
		compiled.compileAffinity(a.ClusterAffinity)
		compiled.together = compiled.others(a.PlacementAffinity, "placementAffinity", others)
		compiled.apart = compiled.others(a.PlacementAntiAffinity, "placementAntiAffinity", others)
	}
	return compiled
}

func (r *rules) addNote(text string) { r.notes = append(r.notes, text) }

func (r *rules) others(refs []api.PlacementReference, field string, holds map[string][]string) []otherPlacement {
	var all []otherPlacement
	for _, ref := range refs {
		clusters, known := holds[ref.Name]
		o := otherPlacement{name: ref.Name, holds: make(map[string]bool, len(clusters))}
		for _, name := range clusters {
			o.holds[name] = true
		}
		if !known {
			r.addNote("spec.policy.affinity." + field + ": there is no placement " + quote(ref.Name) + ", so it holds no cluster")
		}
		all = append(all, o)
	}
	return all
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

// affinity is the sum of all preferences, not clamped.
func (r *rules) affinity(m *Cluster) int32 {
	var sum int32
	for i := range r.preferred {
		sum += r.preferred[i].contribution(m).points
	}
	return sum
}

// unreadable lists the properties that the policy uses and whose value on the cluster is not a
// quantity. In KubeFleet the whole placement fails in that case; here they count as unknown,
// and the decision says so.
func (r *rules) unreadable(m *Cluster) string {
	if len(m.Malformed) == 0 {
		return ""
	}
	var all []string
	for _, name := range r.usedProperties {
		if value, bad := m.Malformed[name]; bad {
			all = append(all, fmt.Sprintf("property %q is unknown, because its value %q is not a quantity", name, value))
		}
	}
	return strings.Join(all, "; ")
}

// noteProperties adds notes about properties that no cluster reports, or only with invalid
// values.
func (r *rules) noteProperties(fleet []*clusterState) {
	for _, name := range r.usedProperties {
		known, bad := 0, []string(nil)
		for _, m := range fleet {
			if _, ok := m.Properties[name]; ok {
				known++
			}
			if value, ok := m.Malformed[name]; ok {
				bad = append(bad, fmt.Sprintf("%s (%q)", m.Name, value))
			}
		}
		switch {
		case len(bad) > 0:
			r.addNote(fmt.Sprintf("property %q is not a quantity on %d cluster(s) and counts as unknown there: %s", name, len(bad), firstFew(bad)))
		case known == 0 && len(fleet) > 0:
			r.addNote(fmt.Sprintf("no cluster reports property %q", name))
		}
	}
}
