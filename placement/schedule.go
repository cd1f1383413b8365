package placement

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Request is the input of Schedule. Nothing in it is changed, and the order of its lists does
// not matter.
type Request struct {
	Key api.PlacementKey
	// Policy is nil for PickAll. Its defaults need not be filled in.
	Policy *api.PlacementPolicy
	// Clusters are all members of the fleet, each once. A cluster that is missing has left the
	// fleet.
	Clusters []Cluster
	// Bindings are those of the last Outcome, without those whose removal the rollout has
	// finished. Leaving one out evicts the placement: the cluster may be selected again.
	Bindings []Binding
	// Others are the clusters held by the placements that placementAffinity and
	// placementAntiAffinity name, by placement name. A missing name is a placement that does
	// not exist. See [Sequence] for the order in which placements that name each other are
	// scheduled.
	Others map[string][]string
}

// An Outcome is the result of scheduling a placement.
type Outcome struct {
	// Policy is the [PolicyHash] of the policy that decided.
	Policy string
	// Decisions has one decision for each cluster, and one for each name of PickFixed that is
	// not the name of a cluster. The selected ones come first, in the order in which they were
	// chosen (PickAll: by name; PickFixed: as listed), then those that were scored and not
	// selected, best first, then the rest by name.
	Decisions []Decision
	// Bindings are all bindings from now on, by cluster name: one for each selected cluster,
	// and the Unscheduled ones whose content is not yet removed.
	Bindings []Binding
	// Fulfilled says that as many clusters are selected as the policy requests.
	Fulfilled bool
	// Found is how many clusters are selected, and Wanted how many the policy requests; for
	// PickAll they are equal.
	Found, Wanted int
	// Absent are the clusters that would be chosen if they could be used, sorted by name. If a
	// placement has no clusters and none is absent, its policy asks for none.
	Absent []Absence
	// WithoutNamespace are the clusters that PickAll would choose if they had the namespace of the ResourcePlacement, sorted by name.
	WithoutNamespace []string
	// Notes are remarks for the user that belong to no decision: a property that no cluster
	// reports, a name that does not exist, an invalid value.
	Notes []string
}

// An Absence is a cluster that would be chosen, or might be, if it could be used, with the reason why it
// cannot be: for PickAll each one that matches, for PickFixed each one that is named, for PickN each one
// that matches while too few are found. A property or namespace that is not known of an unusable
// cluster counts as a match. If no cluster with the namespace of a ResourcePlacement is selected, the
// clusters that match and lack it are absent, too.
// Clusters that are absent for the same reason have the same text.
type Absence struct{ Cluster, Reason string }

// Schedule selects the clusters of a placement.
//
// It keeps bound clusters: a cluster that was selected under the same policy is not evaluated
// again, whatever its labels, taints or health are now. It is unscheduled only when it leaves
// the fleet, when N shrinks, or when the policy changes and does not select it again. Under a
// changed policy clusters that the placement holds under an earlier one win ties.
//
// Scheduling again with the resulting bindings gives the same result, so that Schedule may be
// called in every turn and needs no other state. It covers all of KubeFleet's scheduling
// triggers and adds none that could move a cluster.
func Schedule(r Request) Outcome {
	s := newScheduler(r)
	s.run()
	return s.outcome()
}

// A scheduler schedules a placement once, as the type of its policy asks for.
type scheduler struct {
	*cycle
	kind placementType
}

func newScheduler(r Request) scheduler {
	return scheduler{newCycle(compile(r.Policy, r.Key.Namespace, r.Others), r.Clusters, r.Bindings), typeOf(r.Policy)}
}

func (s scheduler) run() {
	s.noteMisplaced()
	s.kind.decide(s.cycle)
}

func (s scheduler) outcome() Outcome {
	return Outcome{
		Policy:    s.rules.hash,
		Decisions: s.decisions(),
		Bindings:  s.bindings(),
		Fulfilled: s.fulfilled,
		Found:     s.selectedCount(),
		Wanted:    s.wanted,
		Absent:    s.absent(),
		Notes:     s.rules.notes,

		WithoutNamespace: s.withoutNamespace(),
	}
}

// decisions puts the decisions in order: first the selected clusters; then what the policy names and that was not
// selected; then those that were scored, best first; then all others, by name. Callers rely on the first Wanted - Found
// decisions about clusters that are not selected: they stand for the missing clusters.
func (s scheduler) decisions() []Decision {
	all := make([]Decision, 0, len(s.members))
	add := func(members []*clusterState) {
		for _, m := range members {
			all = append(all, s.decision(m))
		}
	}
	selected := s.where((*clusterState).selected)
	s.kind.order(s.cycle, selected)
	add(selected)
	unmet, missing := s.kind.unmet(s.cycle)
	add(unmet)
	all = append(all, missing...)
	add(s.notChosen())
	added := map[*clusterState]bool{}
	for _, m := range unmet {
		added[m] = true
	}
	add(s.where(func(m *clusterState) bool { return !m.selected() && !s.scored(m) && !added[m] }))
	return all
}

// notChosen are the clusters that were scored and not chosen, best first.
func (s scheduler) notChosen() []*clusterState {
	all := s.where(func(m *clusterState) bool { return !m.selected() && s.scored(m) })
	slices.SortFunc(all, func(a, b *clusterState) int {
		return cmp.Or(cmp.Compare(b.spread, a.spread), cmp.Compare(b.affinity, a.affinity), cmp.Compare(b.index, a.index))
	})
	return all
}

// scored reports whether a cluster that is not selected was ranked among the candidates.
func (s scheduler) scored(m *clusterState) bool { return s.frozen == "" && s.kind.scored(s.cycle, m) }

func (s scheduler) decision(m *clusterState) Decision {
	d := Decision{Cluster: m.Name, Selected: m.selected()}
	if d.Selected {
		d.Score, d.Note = m.current.Score, s.rules.unreadable(m.Cluster)
		picked := withNote(pickedReason(m.Name, d.Score), d.Note)
		d.Reason = cmp.Or(m.reason, m.current.Reason, picked)
		d.Picked = d.Reason == picked
		return d
	}
	if s.scored(m) {
		d.Score = &Score{Affinity: m.affinity, Spread: m.spread}
	}
	d.Reason = withNote(s.notSelectedReason(m), s.rules.unreadable(m.Cluster))
	return d
}

// notSelectedReason is why a cluster is not selected.
func (s scheduler) notSelectedReason(m *clusterState) string {
	if s.frozen != "" {
		return "Cluster " + quote(m.Name) + " is not selected: " + s.frozen
	}
	return s.kind.refusal(s.cycle, m)
}

func (s scheduler) bindings() []Binding {
	var all []Binding
	for _, m := range s.members {
		if m.current != nil {
			all = append(all, *m.current)
		}
	}
	all = append(all, s.gone...)
	slices.SortFunc(all, func(a, b Binding) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all
}

// absent returns the clusters that the policy asks for and that cannot be chosen now, by name.
func (s scheduler) absent() []Absence {
	if s.frozen != "" {
		return nil
	}
	noneSelected := s.selectedCount() == 0
	var all []Absence
	for _, m := range s.members {
		if m.selected() {
			continue
		}
		if why := s.kind.absentReason(s.cycle, m, noneSelected); why != "" {
			all = append(all, Absence{m.Name, why})
		}
	}
	return all
}

// withoutNamespace returns the clusters that a policy for all clusters does not choose only because they lack the namespace, by name.
func (s scheduler) withoutNamespace() []string {
	if s.frozen != "" || !s.kind.everywhere() {
		return nil
	}
	var all []string
	for _, m := range s.members {
		if !m.selected() && m.Ineligible == "" && s.rules.lacksNamespace(m.Cluster) != "" && s.rules.mismatch(m.Cluster) == "" && s.rules.untolerated(m.Cluster) == "" && s.rules.affinityViolation(m.Cluster) == "" {
			all = append(all, m.Name)
		}
	}
	return all
}
