package placement

import "slices"

// absent returns the clusters that the policy asks for and that cannot be chosen now, by name.
func (c *cycle) absent() []Absence {
	if c.frozen != "" {
		return nil
	}
	noneSelected := c.selectedCount() == 0
	var all []Absence
	for _, m := range c.members {
		if m.selected() {
			continue
		}
		if why := c.rules.kind.absentReason(c, m, noneSelected); why != "" {
			all = append(all, Absence{m.Name, why})
		}
	}
	return all
}

// withoutNamespace returns the clusters that a policy for all clusters does not choose only because they lack the namespace, by name.
func (c *cycle) withoutNamespace() []string {
	if !c.rules.kind.everywhere() || c.frozen != "" {
		return nil
	}
	var all []string
	for _, m := range c.members {
		if !m.selected() && m.Ineligible == "" && c.rules.lacksNamespace(m.Cluster) != "" && c.rules.mismatch(m.Cluster) == "" && c.rules.untolerated(m.Cluster) == "" && c.rules.affinityViolation(m.Cluster) == "" {
			all = append(all, m.Name)
		}
	}
	return all
}

// mightMatch reports whether a cluster that cannot be used matches the required terms, as far as is known.
func (r *rules) mightMatch(m *Cluster) bool {
	return len(r.required) == 0 || slices.ContainsFunc(r.required, func(t requiredTerm) bool { return t.mightMatch(m) })
}
