package simulation

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

var stagedScenarios = flag.Int("staged-scenarios", 500, "number of scenarios with staged update runs; the race detector runs every tenth")

// TestInvariantsHoldInStagedRuns runs many short scenarios of fleets with staged update runs, with the same seeds every time.
// STAGED_SEED=4711 in the environment runs that one only, and prints its log.
func TestInvariantsHoldInStagedRuns(t *testing.T) {
	if text := os.Getenv("STAGED_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("STAGED_SEED: %v", err)
		}
		printLog(t, NewStagedScenario(seed))
		return
	}
	n := *stagedScenarios
	if testing.Short() {
		n = min(n, 200)
	}
	var next atomic.Uint64
	runScenarios(t, NewStagedScenario, func() (uint64, bool) {
		seed := next.Add(step)
		return seed, seed <= uint64(n)
	})
}

// A scenario with staged update runs is deterministic, too.
func TestStagedSimulationIsDeterministic(t *testing.T) {
	with := NewLoaders()
	for seed := uint64(1); seed <= 20; seed++ {
		first, second := NewStagedScenario(seed).Run(t, with, true), NewStagedScenario(seed).Run(t, NewLoaders(), true)
		if first.Log != second.Log {
			t.Fatalf("seed %d:\n%s\nand then:\n%s", seed, first.Log, second.Log)
		}
	}
}

// assignAll assigns the clusters of placements for which a condition holds what was assigned last to another of the placement's
// clusters.
func assignAll(l *ledger.Ledger, holds func(key api.PlacementKey, from, to *placement.Binding) bool) {
	for _, key := range l.Placements() {
		bindings := l.Placement(key).Bindings()
		for i := range bindings {
			for j := range bindings {
				from, to := bindings[i], bindings[j]
				if from.HasRevision() && to.HasRevision() && !from.Removing && !to.Removing && !to.Unscheduled && from.Assigned.Hash != to.Assigned.Hash && from.AssignedAt.After(to.AssignedAt) && holds(key, &from, &to) {
					to.Assigned, to.AssignedAt, to.WasAvailable = from.Assigned, time.Now(), false
					l.Bind(key, to)
				}
			}
		}
	}
}

// inStage reports whether two clusters are in the same stage of the run of a placement that is under way.
func inStage(l *ledger.Ledger, key api.PlacementKey, a, b string) bool {
	r := currentRun(l.Placement(key).Runs)
	return r != nil && r.Active() && stageOf(r, a) == stageOf(r, b)
}

// stagedMutants each make one mistake, and violate the invariant that forbids it.
var stagedMutants = map[string]Mutant{
	invariantStages: {Saves: func(_ *desired, l *ledger.Ledger) {
		assignAll(l, func(key api.PlacementKey, from, to *placement.Binding) bool {
			return !inStage(l, key, from.Cluster, to.Cluster)
		})
	}},
	invariantConcurrency: {Saves: func(_ *desired, l *ledger.Ledger) {
		assignAll(l, func(key api.PlacementKey, from, to *placement.Binding) bool {
			return inStage(l, key, from.Cluster, to.Cluster)
		})
	}},
	invariantMembers: {Saves: func(_ *desired, l *ledger.Ledger) {
		eachRun(l, func(r *placement.Run) {
			if n := len(r.Stages); n > 1 && len(r.Stages[0].Clusters) > 0 {
				r.Stages[0].Clusters, r.Stages[1].Clusters = r.Stages[1].Clusters, r.Stages[0].Clusters
			}
		})
	}},
	invariantSuperseded: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, key := range l.Placements() {
			for _, r := range l.Placement(key).Runs {
				for _, b := range l.Placement(key).Bindings() {
					if now := currentRun(l.Placement(key).Runs); r.SupersededBy != "" && now != nil && now.Content.Hash != r.Content.Hash && b.HasRevision() && b.Assigned.Commit == now.Content.Commit {
						b.Assigned, b.AssignedAt = placement.Revision{Commit: r.Content.Commit, Hash: "any"}, time.Now()
						l.Bind(key, b)
					}
				}
			}
		}
	}},
	invariantReturns: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, key := range l.Placements() {
			runs := l.Placement(key).Runs
			for _, r := range runs {
				if r.Automatic && r.RolledBack != "" && len(runs) < 12 {
					again := r.Clone()
					again.Name, again.RolledBack, again.SupersededBy, again.Finished = r.Name+"-again", "", "", time.Time{}
					p := *l.Placement(key)
					p.Runs = append(append([]placement.Run{}, runs...), again)
					l.SetPlacement(key, p)
					break
				}
			}
		}
	}},
	invariantTwoContents: {Saves: func(_ *desired, l *ledger.Ledger) {
		key := api.PlacementKey{Name: "r"}
		newest, _ := strconv.Atoi(strings.TrimPrefix(l.InForce(), "v"))
		if l.Placement(key) == nil || newest < 3 {
			return
		}
		for i, b := range l.Placement(key).Bindings() {
			commit := fmt.Sprintf("v%d", max(1, newest-i))
			b.Assigned, b.AssignedAt = placement.Revision{Commit: commit, Hash: "of " + commit}, time.Now()
			l.Bind(key, b)
		}
	}},
	invariantBudget: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, key := range l.Placements() {
			evicts := false
			for _, b := range l.Placement(key).Bindings() {
				evicts = evicts || b.Evicted
			}
			for _, b := range l.Placement(key).Bindings() {
				if evicts && !b.Evicted {
					b.Unscheduled, b.Removing, b.Evicted = true, true, true
					l.Bind(key, b)
				}
			}
		}
	}},
	invariantFrozen: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, s := range l.Suspensions() {
			if s.Effect == ledger.Freezes && !s.Overrun {
				assignHead(l)
			}
		}
	}},
	invariantWindow: {Saves: func(head *desired, l *ledger.Ledger) {
		if len(head.staged.windows) > 0 {
			assignHead(l)
		}
	}},
	invariantGates: {Answers: func(a placement.GateAnswer, _ map[placement.GateRound]*question) placement.GateAnswer {
		if a.Verdict == placement.GateUnknown {
			a.Verdict = placement.GateGood
		}
		return a
	}},
	invariantOnlyStage: {Saves: func(_ *desired, l *ledger.Ledger) {
		unknown := false
		eachRun(l, func(r *placement.Run) {
			for _, s := range r.Stages {
				unknown = unknown || slices.ContainsFunc(s.Gates, func(g placement.RunGate) bool { return g.Asked.Verdict == placement.GateUnknown })
			}
		})
		fleet := ledger.Subject{Effect: ledger.Freezes}
		if _, frozen := l.Suspension(fleet); unknown && !frozen {
			l.Suspend(ledger.Suspension{Subject: fleet, By: "a gate", Since: time.Now()})
		}
	}},
	invariantOnlyContent: {Saves: func(_ *desired, l *ledger.Ledger) {
		for _, s := range l.Suspensions() {
			if s.Effect == ledger.Freezes {
				s.Subject = ledger.Subject{Cluster: "a"}
				l.Suspend(s)
			}
		}
	}},
}

// assignHead assigns the content of the commit in force to all clusters.
func assignHead(l *ledger.Ledger) {
	eachBinding(l, func(b *placement.Binding) bool {
		if !b.HasRevision() || b.Removing || b.Assigned.Commit == l.InForce() {
			return false
		}
		b.Assigned, b.AssignedAt = placement.Revision{Commit: l.InForce(), Hash: "of " + l.InForce()}, time.Now()
		return true
	})
}

// eachRun changes the runs of all placements.
func eachRun(l *ledger.Ledger, change func(r *placement.Run)) {
	for _, key := range l.Placements() {
		p := *l.Placement(key)
		runs := make([]placement.Run, 0, len(p.Runs))
		for _, r := range p.Runs {
			r = r.Clone()
			change(&r)
			runs = append(runs, r)
		}
		p.Runs = runs
		l.SetPlacement(key, p)
	}
}

// A stale answer must not count for what is asked now: the invariant of gates is also violated if it does.
func TestStaleAnswersPassNoGate(t *testing.T) {
	mutant := Mutant{Answers: func(a placement.GateAnswer, asked map[placement.GateRound]*question) placement.GateAnswer {
		for round := range asked {
			if asked[a.GateRound] == nil && round.Placement == a.Placement && round.Gate == a.Gate {
				a.GateRound, a.Verdict = round, placement.GateGood
			}
		}
		return a
	}}
	with := NewLoaders()
	for seed := uint64(1); seed <= 400; seed++ {
		sc := NewStagedScenario(seed)
		sc.Mutant = mutant
		if out := sc.Run(t, with, false); out.Violation != nil && out.Violation.Invariant == invariantGates {
			return
		}
	}
	t.Error("none of 400 scenarios detects it")
}

// Each invariant of staged update runs is violated if gitfleet makes the mistake that it forbids, so no check is without effect.
func TestEveryStagedInvariantFailsForItsMutant(t *testing.T) {
	for invariant, mutant := range stagedMutants {
		t.Run(invariant, func(t *testing.T) {
			with := NewLoaders()
			for seed := uint64(1); seed <= 400; seed++ {
				sc := NewStagedScenario(seed)
				sc.Mutant = mutant
				if out := sc.Run(t, with, false); out.Violation != nil && out.Violation.Invariant == invariant {
					return
				}
			}
			t.Error("none of 400 scenarios detects it")
		})
	}
}
