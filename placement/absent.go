package placement

import "slices"

// absent returns the clusters that the policy asks for and that cannot be chosen now, by name.
func (c *cycle) absent() []Absence {
	if c.frozen != "" {
		return nil
	}
	nowhere := c.selectedCount() == 0
	var all []Absence
	for _, m := range c.members {
		if m.selected() {
			continue
		}
		if why := c.kind.absence(c, m, nowhere); why != "" {
			all = append(all, Absence{m.Name, why})
		}
	}
	return all
}

// mightMatch reports whether a cluster that cannot be used matches the required terms, as far as is known.
func (r *rules) mightMatch(m *Cluster) bool {
	return len(r.required) == 0 || slices.ContainsFunc(r.required, func(t requiredTerm) bool { return t.mightMatch(m) })
}
