package placement

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A filter is one condition that a cluster must meet.
type filter struct {
	name string
	// objection is why the cluster does not meet it; empty if it does.
	objection func(*rules, *Cluster) string
}

// filters run in order; the first objection is the reason reported. Topology spread comes after
// all of them, because it depends on which clusters were chosen before.
var filters = []filter{
	{"ClusterAffinity", (*rules).mismatch},
	{"ClusterEligibility", (*rules).ineligible},
	{"NamespaceAffinity", (*rules).lacksNamespace},
	{"TaintToleration", (*rules).untolerated},
	{"PlacementAffinity", (*rules).affinityViolation},
}

// objection returns the first objection, or the empty string.
func (r *rules) objection(m *Cluster) string {
	for _, f := range filters {
		if why := f.objection(r, m); why != "" {
			return why
		}
	}
	return ""
}

func (r *rules) mismatch(m *Cluster) string {
	if len(r.required) == 0 || slices.ContainsFunc(r.required, func(t requiredTerm) bool { return t.matches(m) }) {
		return ""
	}
	return "cluster does not match with any of the required cluster affinity terms"
}

// mightMatch reports whether a cluster that cannot be used matches the required terms, as far as is known.
func (r *rules) mightMatch(m *Cluster) bool {
	return len(r.required) == 0 || slices.ContainsFunc(r.required, func(t requiredTerm) bool { return t.mightMatch(m) })
}

func (r *rules) ineligible(m *Cluster) string { return m.Ineligible }

func (r *rules) lacksNamespace(m *Cluster) string {
	switch {
	case r.namespace == "":
		return ""
	case m.NamespacesUnknown:
		return "cluster has no namespace information available"
	case m.Namespaces == nil:
		return ""
	}
	if _, found := slices.BinarySearch(m.Namespaces, r.namespace); found {
		return ""
	}
	return "target namespace does not exist on cluster"
}

func (r *rules) untolerated(m *Cluster) string {
	for _, t := range m.Taints {
		if !r.tolerated(t) {
			return "taint " + taintText(t) + " cannot be tolerated"
		}
	}
	return ""
}

func (r *rules) tolerated(t api.Taint) bool {
	return slices.ContainsFunc(r.tolerations, func(o api.Toleration) bool { return tolerates(o, t) })
}

// taintText writes a taint as kubectl does: KEY=VALUE:EFFECT.
func taintText(t api.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

func tolerates(o api.Toleration, t api.Taint) bool {
	if o.Effect != "" && o.Effect != t.Effect {
		return false
	}
	switch o.Operator {
	case api.TolerationExists:
		return o.Key == "" || o.Key == t.Key
	case api.TolerationEqual:
		return o.Key == t.Key && o.Value == t.Value
	}
	return false
}

// Tolerates reports whether a policy tolerates a taint.
func Tolerates(p *api.PlacementPolicy, t api.Taint) bool {
	return p != nil && slices.ContainsFunc(p.Tolerations, func(o api.Toleration) bool { return tolerates(o, t) })
}

// affinityViolation evaluates placementAffinity and placementAntiAffinity.
func (r *rules) affinityViolation(m *Cluster) string {
	for _, o := range r.together {
		if !o.holds[m.Name] {
			return "placement " + quote(o.name) + ", which placementAffinity names, is not on the cluster"
		}
	}
	for _, o := range r.apart {
		if o.holds[m.Name] {
			return "placement " + quote(o.name) + ", which placementAntiAffinity names, is on the cluster"
		}
	}
	return ""
}
