package placement

// pickAll selects all clusters that pass the filters.
type pickAll struct{}

// decide unschedules only what an earlier policy selected and this one does not.
func (pickAll) decide(c *cycle) {
	c.filter()
	for _, m := range c.members {
		switch {
		case m.candidate():
			c.choose(m, &Score{}, 0)
		case m.class == reconsidered:
			c.unschedule(m)
		}
	}
	c.fulfilled = true
	c.wanted = c.selectedCount()
}

// order leaves the clusters sorted by name.
func (pickAll) order(*cycle, []*clusterState) {}

// scored is false. Selected clusters have a score of zero nevertheless, as KubeFleet reports them.
func (pickAll) scored(*cycle, *clusterState) bool { return false }

func (pickAll) unmet(*cycle) ([]*clusterState, []Decision) { return nil, nil }

func (pickAll) refusal(c *cycle, m *clusterState) string { return c.unschedulable(m.objection) }

// absentReason returns a reason for each cluster that matches the policy, or may match it. Clusters without the namespace of a
// ResourcePlacement are included only if no cluster is selected.
func (pickAll) absentReason(c *cycle, m *clusterState, noneSelected bool) string {
	switch {
	case c.rules.untolerated(m.Cluster) != "" || c.rules.affinityViolation(m.Cluster) != "":
	case m.Ineligible != "":
		known := m.Namespaces != nil && !m.NamespacesUnknown
		if c.rules.mightMatch(m.Cluster) && !(known && c.rules.lacksNamespace(m.Cluster) != "") {
			return m.absence()
		}
	case noneSelected && c.rules.mismatch(m.Cluster) == "":
		return c.rules.lacksNamespace(m.Cluster)
	}
	return ""
}

func (pickAll) everywhere() bool { return true }

func (pickAll) explain(c *cycle, e *Explanation, m *clusterState) {
	for _, f := range filters {
		why := f.objection(c.rules, m.Cluster)
		e.Filters = append(e.Filters, Verdict{Filter: f.name, Passed: why == "", Reason: why})
	}
	for _, t := range c.rules.required {
		e.Required = append(e.Required, t.explain(m.Cluster))
	}
}

func (pickAll) advise(c *cycle, m *clusterState) []string {
	return c.rules.filterChanges(m.Cluster)
}
