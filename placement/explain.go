package placement

// Explain decides like [Schedule] and returns the explanation for each cluster, in the order of
// the decisions.
func Explain(r Request) []Explanation {
	s := newScheduler(r)
	s.picks = &pickRecord{spread: map[*clusterState][]SpreadVerdict{}, ties: map[*clusterState]string{}}
	s.run()
	decisions := s.decisions()
	all := make([]Explanation, len(decisions))
	for i, d := range decisions {
		all[i] = Explanation{Decision: d}
		if m := s.find(d.Cluster); m != nil {
			s.explain(&all[i], m)
		} else {
			all[i].Change = []string{"a MemberCluster of the name " + quote(d.Cluster) + " must exist, or spec.policy.clusterNames must not name it"}
		}
	}
	return all
}

func (s scheduler) explain(e *Explanation, m *clusterState) {
	e.How = s.how(m)
	if !e.Selected {
		e.Change = s.requiredChanges(m)
	}
	if s.frozen == "" {
		s.kind.explain(s.cycle, e, m)
	}
}

func (s scheduler) how(m *clusterState) string {
	switch {
	case s.frozen != "":
		return "nothing is selected or unscheduled: " + s.frozen
	case !m.selected():
		return ""
	case m.class == bound, m.class == reconsidered && m.reason != "":
		return "selected before: it is not evaluated again while the policy stays the same"
	case m.class == reconsidered:
		return "chosen anew: it was held under an earlier policy, and keeps its content"
	case m.class == unscheduled:
		return "chosen again: its content was on its way out, and stays"
	}
	return "chosen now"
}

// requiredChanges says what would have to change for the cluster to be selected.
func (s scheduler) requiredChanges(m *clusterState) []string {
	if s.frozen != "" {
		return []string{"the policy must be completed: " + s.frozen}
	}
	return s.kind.advise(s.cycle, m)
}
