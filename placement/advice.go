package placement

import "fmt"

// requiredChanges says what would have to change for the cluster to be selected.
func (x *explainer) requiredChanges(m *clusterState) []string {
	if x.cycle.frozen != "" {
		return []string{"the policy must be completed: " + x.cycle.frozen}
	}
	return x.cycle.rules.kind.advise(x, m)
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

// spreadChange says what a hard spread constraint requires.
func (x *explainer) spreadChange(m *clusterState) string {
	i := m.forbidden
	d, k := x.cycle.spreading.perConstraint[i], x.cycle.spreading.constraints[i]
	delta, _ := d.effect(d.of[m.index], k.maxSkew)
	need := fmt.Sprintf("the maxSkew of %q must be at least %d, or a cluster be chosen where there are fewer", k.key, d.high-d.low+delta)
	if empty := x.cycle.emptyDomains(i); len(empty) > 0 {
		need += fmt.Sprintf("; nothing can be chosen in %s, which counts nevertheless", list(empty))
	}
	return need
}

// scoreChange compares the cluster's score with the last one that was selected.
func (x *explainer) scoreChange(m *clusterState) string {
	last := x.lastPick
	if last == nil {
		return fmt.Sprintf("numberOfClusters must be larger than %d, or a selected cluster leave the fleet: nothing is moved while the policy has what it asks for", x.cycle.rules.n)
	}
	s := last.current.Score
	return fmt.Sprintf("its score must be better than that of %s%s, or numberOfClusters larger than %d", last.Name, scores(s), x.cycle.rules.n)
}
