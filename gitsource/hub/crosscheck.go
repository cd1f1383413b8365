package hub

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/window"
)

// overrides reports objects that two overrides of a namespace select, and too many overrides.
func (a *assembly) overrides() {
	type target struct {
		namespace string
		api.ResourceSelector
	}
	type use struct {
		it    *item
		field string
	}
	uses := map[target][]use{}
	count := map[string]int{}
	for _, it := range a.items {
		var field, limit string
		var selectors []api.ResourceSelector
		switch {
		case it.clusterOverride != nil:
			field, selectors = "clusterResourceSelectors", validation.ClusterSelectors(it.clusterOverride.ClusterResourceOverride)
			limit = "clusterResourceOverride limit has been reached: at most 100 cluster resources can be created in KubeFleet"
		case it.override != nil:
			field, selectors = "resourceSelectors", it.override.Spec.ResourceSelectors
			limit = "resourceOverride limit has been reached: at most 100 resources can be created in KubeFleet"
		default:
			continue
		}
		if count[it.id.Namespace]++; count[it.id.Namespace] == 101 {
			a.problem(problem.Warning, it.origin, "", "%s", limit)
		}
		for i, s := range selectors {
			t := target{it.id.Namespace, s}
			uses[t] = append(uses[t], use{it, fmt.Sprintf("spec.%s[%d]", field, i)})
		}
	}
	for t, all := range uses {
		for _, u := range all {
			other := all[0].it
			if u == all[0] {
				other = all[min(1, len(all)-1)].it
			}
			if u.it != other { // if one override selects the target twice, that is reported elsewhere
				a.problem(problem.Error, u.it.at(u.field), u.field,
					"invalid resource selector %s: the resource has been selected by both %s and %s (%s), which is not supported; select it in one of them",
					validation.SelectorText(t.ResourceSelector), u.it.id.Name, other.id.Name, positionText(other.origin))
			}
		}
	}
}

// budgets reports budgets that their placements do not allow.
func (a *assembly) budgets() {
	placements := map[string]*Placement{}
	for _, it := range a.items {
		if it.placement != nil && it.id.Namespace == "" {
			placements[it.id.Name] = it.placement
		}
	}
	for _, it := range a.items {
		switch {
		case it.budget != nil && placements[it.id.Name] == nil:
			a.problem(problem.Warning, it.origin, "metadata.name", "the commit has no ClusterResourcePlacement %s, so this budget has no effect; %s", it.id.Name,
				suggest(it.id.Name, maps.Keys(placements), "give it the name of one"))
		case it.budget != nil:
			if field, fault := validation.BudgetFault(&it.budget.Spec, placements[it.id.Name].Spec.Policy); fault != "" {
				a.problem(problem.Error, it.at("spec."+field), "spec."+field, "%s; write a number for minAvailable", fault)
			}
		case it.eviction != nil && placements[it.eviction.Spec.PlacementName] == nil:
			a.problem(problem.Warning, it.at("spec.placementName"), "spec.placementName", "Failed to find ClusterResourcePlacement targeted by eviction: the commit has no %s; %s", it.eviction.Spec.PlacementName,
				suggest(it.eviction.Spec.PlacementName, maps.Keys(placements), "remove the eviction, or correct the name"))
		}
	}
}

// windows reports windows that have no effect, or are never open together.
func (a *assembly) windows() {
	var all []*window.Window
	var fleet window.Fleet
	items := map[*window.Window]*item{}
	for _, it := range a.items {
		switch {
		case it.window != nil:
			all = append(all, it.window.Compiled)
			items[it.window.Compiled] = it
		case it.placement != nil:
			fleet.Placements = append(fleet.Placements, window.Labelled{Name: it.placement.Key.String(), Labels: it.placement.Labels})
		case it.cluster != nil:
			fleet.Clusters = append(fleet.Clusters, window.Labelled{Name: it.id.Name, Labels: it.cluster.Labels})
		}
	}
	for _, p := range window.Check(all, fleet) {
		field, severity := "spec", problem.Error
		if p.Field != "" {
			field += "." + p.Field
		}
		if p.Warning {
			severity = problem.Warning
		}
		a.problem(severity, items[p.Window].at(field), field, "%s", p.Message)
	}
}

// references warns of references to names that the commit does not have, which are usually
// misspelt.
func (a *assembly) references() {
	placements, clusters := map[api.PlacementKey]bool{}, map[string]bool{}
	for _, it := range a.items {
		switch {
		case it.placement != nil:
			placements[it.placement.Key] = true
		case it.cluster != nil:
			clusters[it.id.Name] = true
		}
	}
	names := slices.Sorted(maps.Keys(clusters))
	for _, it := range a.items {
		switch {
		case it.placement != nil:
			a.placementReferences(it, placements, names)
		case it.clusterOverride != nil:
			a.overrideReference(it, it.clusterOverride.Spec.Placement, placements)
		case it.override != nil:
			a.overrideReference(it, it.override.Spec.Placement, placements)
		}
	}
}

// suggest returns how to correct a name that the commit does not have: the nearest of the known names, or else a fix.
func suggest(name string, known iter.Seq[string], fix string) string {
	return api.Suggest(name, slices.Sorted(known), fix)
}

// namesIn yields the names of keys in a namespace. split returns the namespace and the name of a key.
func namesIn[K comparable, V any](all map[K]V, namespace string, split func(K) (string, string)) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range all {
			if in, name := split(key); in == namespace && !yield(name) {
				return
			}
		}
	}
}

func ofPlacement(k api.PlacementKey) (namespace, name string) { return k.Namespace, k.Name }

func ofStaged(n stagedName) (namespace, name string) { return n.namespace, n.name }

func (a *assembly) placementReferences(it *item, placements map[api.PlacementKey]bool, clusters []string) {
	policy := it.placement.Spec.Policy
	for i, name := range policy.ClusterNames {
		if _, found := slices.BinarySearch(clusters, name); found {
			continue
		}
		field := fmt.Sprintf("spec.policy.clusterNames[%d]", i)
		a.problem(problem.Warning, it.at(field), field, "the commit has no MemberCluster %s, so it is not chosen; %s", name, suggest(name, slices.Values(clusters), "add it, or remove the name"))
	}
	check := func(field string, references []api.PlacementReference) {
		for i, ref := range references {
			key := api.PlacementKey{Namespace: it.id.Namespace, Name: ref.Name}
			if !placements[key] {
				field := fmt.Sprintf("spec.policy.affinity.%s[%d].name", field, i)
				a.problem(problem.Warning, it.at(field), field, "the commit has no %s %s; %s", key.Kind(), ref.Name, suggest(ref.Name, namesIn(placements, key.Namespace, ofPlacement), "add it, or correct the name"))
			}
		}
	}
	if policy.Affinity != nil {
		check("placementAffinity", policy.Affinity.PlacementAffinity)
		check("placementAntiAffinity", policy.Affinity.PlacementAntiAffinity)
	}
}

func (a *assembly) overrideReference(it *item, ref *api.PlacementRef, placements map[api.PlacementKey]bool) {
	if ref == nil {
		return
	}
	key := api.PlacementKey{Name: ref.Name}
	if ref.Scope == api.NamespaceScoped {
		key.Namespace = it.id.Namespace
	}
	if !placements[key] {
		a.problem(problem.Warning, it.at(validation.PlacementField), validation.PlacementField, "the commit has no %s %s, so this override has no effect; %s", key.Kind(), ref.Name,
			suggest(ref.Name, namesIn(placements, key.Namespace, ofPlacement), "remove it, or correct the name"))
	}
}

// A stagedStrategy is a declared strategy, with the values of its annotations.
type stagedStrategy struct {
	*api.StagedUpdateStrategySpec
	unmatched, onFailure string
	// unreachablePerStage and unreachablePerRun are the values of api.MaxUnreachablePerStageAnnotation and api.MaxUnreachablePerRunAnnotation.
	unreachablePerStage, unreachablePerRun string
	// failedPerStage and failedPerRun are those of api.MaxFailedPerStageAnnotation and api.MaxFailedPerRunAnnotation.
	failedPerStage, failedPerRun string

	byReview []string
	gates    map[string]*api.RolloutGateSpec
}

func (it *item) isStaged() bool { return it.staged != nil }

// A stagedName is the name of a strategy or a run; two kinds that differ in their scope share the names of no namespace.
type stagedName struct{ namespace, name string }

// stagedRuns returns the runs of the commit with what they refer to, and reports what is missing.
func (a *assembly) stagedRuns() []*StagedRun {
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
	resolveGates(a)
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
		strategy := strategies[stagedName{it.id.Namespace, it.run.StrategyName}]
		if strategy == nil {
			a.invalid[it.id] = true
			if !a.invalid.has("StagedUpdateStrategy", it.id.Namespace, it.run.StrategyName) {
				a.problem(problem.Error, it.at("spec.stagedRolloutStrategyName"), "spec.stagedRolloutStrategyName", "referenced updateStrategy not found: `%s/%s`; %s", it.id.Namespace, it.run.StrategyName,
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

// invalidObjects are the objects of a commit that have problems of their own.
type invalidObjects map[api.ID]bool

// has reports whether they have one of a kind, or without a namespace of the cluster-scoped one.
func (all invalidObjects) has(kind, namespace, name string) bool {
	if namespace == "" {
		kind = "Cluster" + kind
	}
	return all[api.ID{Group: api.PlacementGroup, Kind: kind, Namespace: namespace, Name: name}]
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
func resolveGates(a *assembly) {
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
			a.gateServers.check(a, it)
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
		strategy := strategies[stagedName{p.Key.Namespace, name}]
		switch {
		case name == "", strategy == nil && a.invalid.has("StagedUpdateStrategy", p.Key.Namespace, name):
		case strategy == nil:
			a.problem(problem.Error, it.at(field), field, "referenced updateStrategy not found: `%s/%s`; %s", p.Key.Namespace, name,
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
