package placement

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// absent returns the clusters that the policy asks for and that cannot be chosen now, by name.
func (c *cycle) absent() []Absence {
	if c.frozen != "" || c.placementType != api.PickAll && c.fulfilled {
		return nil
	}
	nowhere := c.selectedCount() == 0
	var all []Absence
	for _, m := range c.members {
		if m.selected() {
			continue
		}
		if why := c.absenceReason(m, nowhere); why != "" {
			all = append(all, Absence{m.Name, why})
		}
	}
	return all
}

// absenceReason returns why a cluster that the policy asks for cannot be chosen; empty if the policy does
// not ask for it, or did not choose it. nowhere says that no cluster is selected.
func (c *cycle) absenceReason(m *clusterState, nowhere bool) string {
	switch {
	case c.placementType == api.PickFixed:
		if c.named(m) {
			return m.Ineligible
		}
	case c.untolerated(m.Cluster) != "" || c.affinityViolation(m.Cluster) != "":
	case m.Ineligible != "":
		known := m.Namespaces != nil && !m.NamespacesUnknown
		if c.mightMatch(m.Cluster) && !(known && c.lacksNamespace(m.Cluster) != "") {
			return m.Ineligible
		}
	case nowhere && c.mismatch(m.Cluster) == "":
		return c.lacksNamespace(m.Cluster)
	}
	return ""
}

// mightMatch reports whether a cluster that cannot be used matches the required terms, as far as is known.
func (r *rules) mightMatch(m *Cluster) bool {
	return len(r.required) == 0 || slices.ContainsFunc(r.required, func(t requiredTerm) bool { return t.mightMatch(m) })
}
