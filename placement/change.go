package placement

import (
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// requiredChanges says what would have to change for the cluster to be selected.
func (c *cycle) requiredChanges(m *clusterState) []string {
	switch {
	case c.frozen != "":
		return []string{"the policy must be completed: " + c.frozen}
	case c.kind == api.PickFixed && !c.named(m):
		return []string{"spec.policy.clusterNames must name " + quote(m.Name)}
	case c.kind == api.PickFixed:
		return []string{"it must be eligible: " + m.Ineligible}
	}
	needs := c.filterChanges(m)
	switch {
	case c.kind == api.PickN && m.forbidden >= 0:
		needs = append(needs, c.spreadChange(m))
	case c.scored(m):
		needs = append(needs, c.scoreChange(m))
	}
	return needs
}

// filterChanges says what each objecting filter requires.
func (c *cycle) filterChanges(m *clusterState) []string {
	var needs []string
	if c.mismatch(m.Cluster) != "" {
		needs = append(needs, "it must match a required term, the closest being: "+list(c.closest(m.Cluster).failed()))
	}
	if m.Ineligible != "" {
		needs = append(needs, "it must be eligible: "+m.Ineligible)
	}
	if c.lacksNamespace(m.Cluster) != "" {
		needs = append(needs, "namespace "+quote(c.namespace)+" must exist on it")
	}
	for _, t := range m.Taints {
		if !slices.ContainsFunc(c.tolerations, func(o api.Toleration) bool { return tolerates(o, t) }) {
			needs = append(needs, fmt.Sprintf("taint %s=%s:%s must be tolerated by the placement, or taken off", t.Key, t.Value, t.Effect))
		}
	}
	for _, o := range c.together {
		if !o.holds[m.Name] {
			needs = append(needs, "placement "+quote(o.name)+" must be on it")
		}
	}
	for _, o := range c.apart {
		if o.holds[m.Name] {
			needs = append(needs, "placement "+quote(o.name)+" must not be on it")
		}
	}
	return needs
}

// spreadChange says what a hard spread constraint requires.
func (c *cycle) spreadChange(m *clusterState) string {
	i := m.forbidden
	d, k := c.domains.domains[i], c.domains.constraints[i]
	delta, _ := d.effect(d.of[m.index], k.maxSkew)
	need := fmt.Sprintf("the maxSkew of %q must be at least %d, or a cluster be chosen where there are fewer", k.key, d.high-d.low+delta)
	if empty := c.emptyDomains(i); len(empty) > 0 {
		need += fmt.Sprintf("; nothing can be chosen in %s, which counts nevertheless", list(empty))
	}
	return need
}

// scoreChange compares the cluster's score with the last one that was selected.
func (c *cycle) scoreChange(m *clusterState) string {
	last := c.recorder.last
	if last == nil {
		return fmt.Sprintf("numberOfClusters must be larger than %d, or a selected cluster leave the fleet: nothing is moved while the policy has what it asks for", c.n)
	}
	s := last.current.Score
	return fmt.Sprintf("its score must be better than that of %s%s, or numberOfClusters larger than %d", last.Name, scores(s), c.n)
}
