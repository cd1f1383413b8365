package hub

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A stagedName is the name of a strategy or a run; two kinds that differ in their scope share the names of no namespace.
type stagedName struct{ namespace, name string }

// String returns the name with its namespace, if it has one.
func (n stagedName) String() string { return strings.TrimPrefix(n.namespace+"/"+n.name, "/") }

func ofStaged(n stagedName) (namespace, name string) { return n.namespace, n.name }

// stagedRuns returns the runs of the commit with what they refer to, and reports what is missing.
func (a *assembly) stagedRuns(servers *GateServers) []*StagedRun {
	strategies, placements, runs := map[stagedName]*stagedStrategy{}, map[api.PlacementKey]*Placement{}, map[stagedName]*StagedRun{}
	var out []*StagedRun
	for _, it := range a.items {
		switch {
		case it.strategy != nil:
			strategies[stagedName{it.id.Namespace, it.id.Name}] = it.strategy
		case it.placement != nil:
			placements[it.placement.Key] = it.placement
		}
	}
	resolveGates(a, servers)
	for _, it := range a.items {
		if it.run == nil {
			continue
		}
		key := api.PlacementKey{Namespace: it.id.Namespace, Name: it.run.PlacementName}
		switch p := placements[key]; {
		case p == nil && a.invalid.has("ResourcePlacement", key.Namespace, key.Name):
		case p == nil:
			a.problem(problem.Warning, it.at("spec.placementName"), "spec.placementName", "parent placement not found: the commit has no %s %s, so the run has no effect; %s", key.Kind(), key.Name, suggest(key.Name, namesIn(placements, key.Namespace, ofPlacement), "remove it, or correct the name"))
		case p.Spec.Strategy.Type != api.External:
			a.problem(problem.Error, it.at("spec.placementName"), "spec.placementName", "parent placement does not have an external rollout strategy, current strategy: %s; write strategy.type: External in %s", p.Spec.Strategy.Type, positionText(p.Origin))
		}
		name := stagedName{it.id.Namespace, it.run.StrategyName}
		strategy := strategies[name]
		if strategy == nil {
			a.invalid[it.id] = true
			if !a.invalid.has("StagedUpdateStrategy", it.id.Namespace, it.run.StrategyName) {
				a.problem(problem.Error, it.at("spec.stagedRolloutStrategyName"), "spec.stagedRolloutStrategyName", "referenced updateStrategy not found: `%s`; %s", name,
					suggest(it.run.StrategyName, namesIn(strategies, it.id.Namespace, ofStaged), "add it, or correct the name"))
			}
			continue
		}
		run := &StagedRun{Name: it.id.Name, Placement: key, State: it.run.State, Strategy: it.run.StrategyName, Stages: strategy.Stages, Unmatched: strategy.unmatched, OnFailure: strategy.onFailure, UnreachablePerStage: strategy.unreachablePerStage, UnreachablePerRun: strategy.unreachablePerRun, FailedPerStage: strategy.failedPerStage, FailedPerRun: strategy.failedPerRun, ByReview: strategy.byReview, Gates: strategy.gates, Index: it.run.ResourceSnapshotIndex, Origin: it.origin, Manifest: it.staged}
		runs[stagedName{it.id.Namespace, it.id.Name}] = run
		out = append(out, run)
	}
	automatic := a.automaticRuns(strategies)
	out = append(out, automatic...)
	for _, it := range a.items {
		if it.approval == nil {
			continue
		}
		run, found := runs[stagedName{it.id.Namespace, it.approval.Run}], false
		for _, r := range automatic {
			if run == nil && r.Placement.Namespace == it.id.Namespace {
				r.addRequest(it.staged)
				found = true
			}
		}
		if !found {
			a.approve(it, run, runs)
		}
	}
	slices.SortFunc(out, func(x, y *StagedRun) int {
		return cmp.Or(strings.Compare(x.Placement.Namespace, y.Placement.Namespace), strings.Compare(x.Name, y.Name))
	})
	return out
}

// GateServers are the servers that gates may ask.
type GateServers struct {
	// URLs are their addresses: everything below the path of one may be asked.
	URLs []string
	// Refuse refuses a commit with a gate that asks another server. Otherwise that is a warning, and the gate does not pass.
	Refuse bool
}

// check reports a gate that asks a server which is not among them.
func (s *GateServers) check(a *assembly, it *item) {
	field, address := it.gate.Spec.Address()
	if s == nil || address == "" || slices.ContainsFunc(s.URLs, func(allowed string) bool { return api.AddressWithin(address, allowed) }) {
		return
	}
	severity := problem.Warning
	if s.Refuse {
		severity = problem.Error
	}
	a.problem(severity, it.at(field), field, "the configuration of gitfleet does not allow %s, so the gate cannot pass; add it to gates.servers there, or correct it", address)
}

// resolveGates sets the gates that strategies name, and reports those that are missing or that nothing names.
func resolveGates(a *assembly, servers *GateServers) {
	gates, named := map[string]*Gate{}, map[string]bool{}
	for _, it := range a.items {
		if it.gate != nil {
			gates[it.id.Name] = it.gate
		}
	}
	for _, it := range a.items {
		if it.strategy == nil {
			continue
		}
		it.strategy.gates = map[string]*api.RolloutGateSpec{}
		for i := range it.strategy.Stages {
			for j, task := range it.strategy.Stages[i].AfterStageTasks {
				if task.Type != api.GateTask {
					continue
				}
				gate, field := gates[task.GateName], fmt.Sprintf("spec.stages[%d].afterStageTasks[%d].gateName", i, j)
				named[task.GateName] = true
				if gate == nil && a.invalid[api.ID{Group: api.OverlayGroup, Kind: "RolloutGate", Name: task.GateName}] {
					continue
				}
				if gate == nil {
					a.problem(problem.Error, it.at(field), field, "the commit has no RolloutGate %s; %s", task.GateName, suggest(task.GateName, maps.Keys(gates), "add it, or correct the name"))
					continue
				}
				it.strategy.gates[task.GateName] = &gate.Spec
			}
		}
	}
	unread := false // what an invalid strategy names is not known
	for id := range a.invalid {
		unread = unread || strings.HasSuffix(id.Kind, "StagedUpdateStrategy")
	}
	for _, it := range a.items {
		if it.gate != nil && !named[it.id.Name] && !unread {
			a.problem(problem.Warning, it.origin, "metadata.name", "no strategy has a task of type Gate with this name, so the gate has no effect; remove it, or add the task")
		}
	}
	for _, it := range a.items {
		if it.gate != nil {
			servers.check(a, it)
		}
	}
}

// addRequest adds an approval request for the run.
func (r *StagedRun) addRequest(m *StagedManifest) {
	r.Approved, r.Requests = append(r.Approved, m.ID.Name), append(r.Requests, m)
}

// automaticRuns returns a run without a name for each placement that asks for runs, and reports missing strategies.
func (a *assembly) automaticRuns(strategies map[stagedName]*stagedStrategy) (out []*StagedRun) {
	for _, it := range a.items {
		if it.placement == nil {
			continue
		}
		p := it.placement
		name, field := p.Annotations[api.StagedUpdateStrategyAnnotation], "metadata.annotations["+api.StagedUpdateStrategyAnnotation+"]"
		strategyName := stagedName{p.Key.Namespace, name}
		strategy := strategies[strategyName]
		switch {
		case name == "", strategy == nil && a.invalid.has("StagedUpdateStrategy", p.Key.Namespace, name):
		case strategy == nil:
			a.problem(problem.Error, it.at(field), field, "referenced updateStrategy not found: `%s`; %s", strategyName,
				suggest(name, namesIn(strategies, p.Key.Namespace, ofStaged), "add it, or correct the name"))
		case p.Spec.Strategy.Type != api.External:
			a.problem(problem.Error, it.at(field), field, "the placement does not have an external rollout strategy, current strategy: %s; write strategy.type: External, or remove the annotation", p.Spec.Strategy.Type)
		default:
			out = append(out, &StagedRun{Placement: p.Key, Automatic: true, State: api.RunRun, Strategy: name, Stages: strategy.Stages, Unmatched: strategy.unmatched, OnFailure: strategy.onFailure, UnreachablePerStage: strategy.unreachablePerStage, UnreachablePerRun: strategy.unreachablePerRun, FailedPerStage: strategy.failedPerStage, FailedPerRun: strategy.failedPerRun, ByReview: strategy.byReview, Gates: strategy.gates, Origin: it.origin})
		}
	}
	return out
}

// approve adds an approval to its run. A run keeps the tasks that its strategy had when it was initialised.
func (a *assembly) approve(it *item, run *StagedRun, runs map[stagedName]*StagedRun) {
	if run == nil && a.invalid.has("StagedUpdateRun", it.id.Namespace, it.approval.Run) {
		return
	}
	if run == nil {
		a.problem(problem.Warning, it.origin, "spec.parentStageRollout", "the commit has no run %s, so this approves nothing; %s", it.approval.Run,
			suggest(it.approval.Run, namesIn(runs, it.id.Namespace, ofStaged), "remove it, or correct the name"))
		return
	}
	run.addRequest(it.staged)
	var stages []string
	for i := range run.Stages {
		stage := &run.Stages[i]
		stages = append(stages, stage.Name)
		if stage.Name != it.approval.Stage {
			continue
		}
		if before := it.id.Name == api.ApprovalName(run.Name, stage.Name, true); !stage.NeedsApproval(before) {
			tasks := "afterStageTasks"
			if before {
				tasks = "beforeStageTasks"
			}
			a.problem(problem.Warning, it.origin, "metadata.name", "stage %s of the strategy of run %s has no Approval in %s, so this approves nothing unless the run began before the strategy was changed; remove this request, or add the task", stage.Name, run.Name, tasks)
		}
		return
	}
	a.problem(problem.Warning, it.origin, "spec.targetStage", "the strategy of run %s has no stage %s, so this approves nothing unless the run began before the strategy was changed; %s", run.Name, it.approval.Stage,
		suggest(it.approval.Stage, slices.Values(stages), "remove this request, or correct the name"))
}

// RunsInFile describes the staged update runs that the content of a file has, by kind and name: for which placements they are and, as a second part
// with the suffix Started, whether they may begin.
func RunsInFile(path string, content []byte) map[string]string {
	out := map[string]string{}
	document.Read(path, content, limit.Limits{}.WithDefaults(), math.MaxInt64, func(r *document.Report, value any) {
		eachObject(r, value, "%s", func(_ *document.Report, gvk runtimeschema.GroupVersionKind, object map[string]any) {
			if gvk.Group != api.PlacementGroup || !strings.HasSuffix(gvk.Kind, "StagedUpdateRun") {
				return
			}
			u := unstructured.Unstructured{Object: object}
			state, _, _ := unstructured.NestedString(object, "spec", "state")
			placement, _, _ := unstructured.NestedString(object, "spec", "placementName")
			name, of := gvk.Kind+" "+u.GetName(), u.GetNamespace()+"/"+placement
			out[name] += of + "\n"
			out[name+Started] += fmt.Sprintln(of, state != "" && state != string(api.RunInitialize))
		})
	})
	return out
}

// Started is the suffix of parts of RunsInFile.
const Started = " started"
