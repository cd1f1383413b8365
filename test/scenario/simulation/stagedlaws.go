package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// The invariants of staged update runs, evictions, freezes and windows.
const (
	invariantStages      = "no cluster of a later stage is updated before the tasks of the earlier ones are done for this content"
	invariantMembers     = "the clusters of a stage are those that it selects"
	invariantConcurrency = "no more clusters of a stage are updated at once than maxConcurrency allows"
	invariantSuperseded  = "content that was superseded or rolled back is not given to clusters again"
	invariantReturns     = "content that was rolled back does not come back by itself"
	invariantTwoContents = "clusters are moved to at most two contents of a placement at once"
	invariantBudget      = "an eviction never breaks a disruption budget"
	invariantFrozen      = "a freeze holds new content"
	invariantWindow      = "no new content comes while the windows are closed"
	invariantOnlyContent = "a freeze holds nothing but new content"
)

// checkedInStagedRuns are the invariants that are checked in these scenarios. The others are about the strategy RollingUpdate, or
// about clusters that nobody evicts.
var checkedInStagedRuns = map[string]bool{
	invariantStages: true, invariantMembers: true, invariantConcurrency: true, invariantSuperseded: true, invariantReturns: true, invariantTwoContents: true, invariantBudget: true,
	invariantGates: true, invariantOnlyStage: true, invariantFrozen: true, invariantWindow: true, invariantOnlyContent: true,
	invariantLoop: true, invariantPlanned: true, invariantInternal: true, invariantSound: true, invariantSaved: true, invariantWaits: true, invariantOwner: true, invariantGit: true, invariantDelete: true,
	invariantHolder: true, invariantConverges: true, invariantSuspended: true, invariantUnreachable: true, invariantWaitReason: true,
}

// A runKey is an update run of a placement.
type runKey struct {
	key  api.PlacementKey
	name string
}

// A stageKey is a stage of an update run.
type stageKey struct {
	runKey
	stage string
}

// A stageModel is what the simulation knows of a stage.
type stageModel struct {
	// since is when all of its clusters had been available with the content of the run, in simulated time; zero until then.
	since time.Time
	// done says that its tasks were done as well, tasks that they were but for gates, and skipped that it had no clusters then.
	done, tasks, skipped bool
}

// stagedObservations are what was observed of update runs.
type stagedObservations struct {
	stages map[stageKey]stageModel
	// approved are the approval requests that users were asked to approve, or that a commit in force has approved, by their run.
	approved map[runKey]map[string]bool
	// onFailure is what the strategy of a run said when that was initialised.
	onFailure map[runKey]string
	// proven are the contents of a placement that were available on all of its clusters, and rolledBack those that were
	// rolled back and that no user has allowed since; as text.
	proven, rolledBack map[api.PlacementKey]map[string]bool
	// gates are those of the stages of runs as they were when these were initialised, answers what they were answered, and askedAgain
	// when users let those of a placement that have failed be asked again.
	gates      map[stageKey]map[string]gateSpec
	answers    map[gateKey][]answered
	askedAgain map[api.PlacementKey][]time.Time
}

func newStagedObservations() stagedObservations {
	return stagedObservations{
		map[stageKey]stageModel{}, map[runKey]map[string]bool{}, map[runKey]string{}, map[api.PlacementKey]map[string]bool{}, map[api.PlacementKey]map[string]bool{},
		map[stageKey]map[string]gateSpec{}, map[gateKey][]answered{}, map[api.PlacementKey][]time.Time{},
	}
}

func (o stagedObservations) clone() stagedObservations {
	return stagedObservations{
		maps.Clone(o.stages), cloneSets(o.approved), maps.Clone(o.onFailure), cloneSets(o.proven), cloneSets(o.rolledBack),
		maps.Clone(o.gates), maps.Clone(o.answers), maps.Clone(o.askedAgain),
	}
}

func cloneSets[K comparable](of map[K]map[string]bool) map[K]map[string]bool {
	out := make(map[K]map[string]bool, len(of))
	for k, set := range of {
		out[k] = maps.Clone(set)
	}
	return out
}

// add adds a value to one of several sets.
func add[K comparable](to map[K]map[string]bool, k K, value string) {
	if to[k] == nil {
		to[k] = map[string]bool{}
	}
	to[k][value] = true
}

// checkStaged checks the decisions about update runs, evictions, freezes and windows.
func (t *decision) checkStaged(names []string) {
	if !t.w.staged {
		return
	}
	t.forgetRuns()
	t.noteApprovals()
	moved := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !t.moved(name) })
	if t.spec.external {
		t.checkMembers()
		t.checkRuns(moved)
		t.checkReturns()
	}
	t.checkInFlight(moved, names)
	t.checkHeld(moved)
	t.checkEvictions(names)
	t.noteProven(names)
}

// moved reports whether the decision assigns a cluster another revision.
func (t *decision) moved(cluster string) bool {
	at := bindingKey{t.key, cluster}
	was, had := t.before.binding(at)
	now, has := t.after.binding(at)
	return has && !now.Removing && now.HasRevision() && (!had || !was.HasRevision() || was.Assigned.Hash != now.Assigned.Hash)
}

// contentText returns content as text.
func contentText(content map[api.ID]string) string {
	var b strings.Builder
	for _, id := range slices.SortedFunc(maps.Keys(content), api.ID.Compare) {
		fmt.Fprintf(&b, "%s=%s ", title(id), content[id])
	}
	return b.String()
}

// assigned returns the content that a cluster is assigned now, as text.
func (t *decision) assigned(cluster string) string {
	at := bindingKey{t.key, cluster}
	return contentText(t.w.content(t.after.revision(at), at))
}

// contentOf returns the content of a run, as text.
func (t *decision) contentOf(r *placement.Run) string {
	c := t.w.source.commits[r.Content.Commit]
	if c == nil {
		return "unknown"
	}
	return contentText(c.content(t.key.Name, ""))
}

// wasAvailable reports whether a cluster has been available since it was assigned its content.
func (t *decision) wasAvailable(cluster string) bool {
	at := bindingKey{t.key, cluster}
	b, _ := t.before.binding(at)
	return b.HasRevision() && (t.before.counted[at] == b.Assigned.Hash || t.isReady(at))
}

// currentRun returns the run that started last and is not superseded; nil if there is none.
func currentRun(runs []placement.Run) *placement.Run {
	var last *placement.Run
	for i := range runs {
		if r := &runs[i]; !r.Started.IsZero() && r.SupersededBy == "" && (last == nil || !r.Started.Before(last.Started)) {
			last = r
		}
	}
	return last
}

// run returns the record of a run before this decision; nil if there was none.
func (t *decision) runBefore(name string) *placement.Run {
	for i := range t.before.runs[t.key] {
		if r := &t.before.runs[t.key][i]; r.Name == name {
			return r
		}
	}
	return nil
}

// forgetRuns forgets what is known of runs that are not recorded any more, or begin again.
func (t *decision) forgetRuns() {
	o := &t.before.stagedRuns
	known := map[string]bool{}
	for _, r := range t.after.runs[t.key] {
		was := t.runBefore(r.Name)
		known[r.Name] = was == nil || !was.Initialized.After(r.Initialized) && !was.Initialized.Before(r.Initialized)
		if was == nil || !known[r.Name] {
			o.onFailure[runKey{t.key, r.Name}] = t.head.staged.strategies[r.Strategy].onFailure
			t.noteGates(&r)
		}
	}
	maps.DeleteFunc(o.stages, func(k stageKey, _ stageModel) bool { return k.key == t.key && !known[k.name] })
	maps.DeleteFunc(o.approved, func(k runKey, _ map[string]bool) bool { return k.key == t.key && !known[k.name] })
	maps.DeleteFunc(o.answers, func(k gateKey, _ []answered) bool { return k.key == t.key && !known[k.name] })
}

// noteApprovals records the approvals in the commit in force.
func (t *decision) noteApprovals() {
	for words := range t.head.staged.approvals {
		w := strings.Fields(words)
		add(t.before.stagedRuns.approved, runKey{t.key, w[0]}, strings.Join(w, "-"))
	}
}

// checkMembers checks that the clusters that were added to a stage match its selector.
func (t *decision) checkMembers() {
	for _, r := range t.after.runs[t.key] {
		was := t.runBefore(r.Name)
		for i, s := range r.Stages {
			for _, cluster := range s.Clusters {
				known := was != nil && i < len(was.Stages) && slices.Contains(was.Stages[i].Clusters, cluster)
				if c, declared := t.head.clusters[cluster]; !known && s.Name != api.UnmatchedStage && (!declared || c.region != s.Name) {
					t.w.violate(invariantMembers, "%s of %s adds %s, which is in %q, to stage %s", r.Name, t.key, cluster, c.region, s.Name)
				}
			}
		}
	}
}

// checkRuns checks that clusters move to the content of the run whose turn it is only, in the order of its stages.
func (t *decision) checkRuns(moved []string) {
	var active []*placement.Run
	if r := currentRun(t.after.runs[t.key]); r != nil {
		active = append(active, r)
	}
	for i := range t.after.runs[t.key] { // one that is rolled back now may still have updated a cluster that joined
		r := &t.after.runs[t.key][i]
		if was := t.runBefore(r.Name); r.RolledBack != "" && (was == nil || was.RolledBack == "") {
			active = append(active, r)
		}
	}
	for _, r := range active {
		t.followStages(r)
	}
	counts := map[stageKey]bool{}
	for _, cluster := range moved {
		i := slices.IndexFunc(active, func(r *placement.Run) bool { return t.contentOf(r) == t.assigned(cluster) })
		at := bindingKey{t.key, cluster}
		if was, _ := t.before.binding(at); i < 0 && !was.HasRevision() && t.before.stagedRuns.proven[t.key][t.assigned(cluster)] {
			continue // it joins while new content is held
		}
		if i < 0 {
			t.w.violate(invariantSuperseded, "%s of %s gets %q of %s, which is not the content of %s", cluster, t.key, t.assigned(cluster), t.after.revision(at).Commit, runNames(active))
			continue
		}
		if r := active[i]; r.Finished.IsZero() {
			t.checkStage(r, cluster)
			counts[stageKey{runKey{t.key, r.Name}, stageOf(r, cluster)}] = true
		}
	}
	for _, r := range active {
		for i := range r.Stages {
			if counts[stageKey{runKey{t.key, r.Name}, r.Stages[i].Name}] {
				t.checkConcurrency(r, &r.Stages[i])
			}
		}
	}
}

func runNames(runs []*placement.Run) (names []string) {
	for _, r := range runs {
		names = append(names, r.Name)
	}
	return names
}

// stageOf returns the name of the stage that a cluster is in; empty if it is in none.
func stageOf(r *placement.Run, cluster string) string {
	for _, s := range r.Stages {
		if slices.Contains(s.Clusters, cluster) {
			return s.Name
		}
	}
	return ""
}

// followStages brings what is known of the stages of a run up to date.
func (t *decision) followStages(r *placement.Run) {
	want, o := t.contentOf(r), t.before.stagedRuns
	for _, s := range r.Stages {
		k := stageKey{runKey{t.key, r.Name}, s.Name}
		x := o.stages[k]
		if x.done && (!x.skipped || len(s.Clusters) == 0) {
			continue
		}
		all := t.approved(r, s, true)
		for _, cluster := range s.Clusters {
			at := bindingKey{t.key, cluster}
			was, had := t.before.binding(at)
			switch {
			case !t.after.keeps(at):
			case r.Halted == "" && t.failsAndContinues(r, cluster):
			case !had || contentText(t.w.content(was.Assigned, at)) != want || !t.wasAvailable(cluster):
				all = false
			}
		}
		switch {
		case !all:
			x.since = time.Time{}
		case x.since.IsZero():
			x.since = time.Now()
		}
		over := t.w.clock.changed || time.Since(x.since) >= s.Wait()-reportDelay
		x.skipped = len(s.Clusters) == 0
		x.tasks = x.skipped || all && over && t.approved(r, s, false)
		x.done = x.skipped || x.tasks && t.gatesPassed(r, s, x.since)
		o.stages[k] = x
	}
}

// failsAndContinues reports whether nothing waits for a cluster since its update has failed. What happens then was said by the
// strategy when the run was initialised.
func (t *decision) failsAndContinues(r *placement.Run, cluster string) bool {
	at := bindingKey{t.key, cluster}
	return t.before.stagedRuns.onFailure[runKey{t.key, r.Name}] == api.OnFailureContinue && (t.isBroken(at) || t.hasFailed(at))
}

// approved reports whether a stage needs no approval before its clusters are updated, or after that, or has it.
func (t *decision) approved(r *placement.Run, s placement.RunStage, before bool) bool {
	return !s.NeedsApproval(before) || t.before.stagedRuns.approved[runKey{t.key, r.Name}][api.ApprovalName(r.Name, s.Name, before)]
}

// checkStage checks that it is the turn of a cluster in a run.
func (t *decision) checkStage(r *placement.Run, cluster string) {
	for _, s := range r.Stages {
		if slices.Contains(s.Clusters, cluster) {
			if !t.approved(r, s, true) {
				t.w.violate(invariantStages, "%s of %s gets the content of %s, and nobody has approved the beginning of stage %s", cluster, t.key, r.Name, s.Name)
			}
			return
		}
		x := t.before.stagedRuns.stages[stageKey{runKey{t.key, r.Name}, s.Name}]
		if x.tasks && !x.done {
			t.w.violate(invariantGates, "%s of %s gets the content of %s, and a gate of stage %s has not passed", cluster, t.key, r.Name, s.Name)
		} else if !x.done {
			t.w.violate(invariantStages, "%s of %s gets the content of %s, and stage %s is not done", cluster, t.key, r.Name, s.Name)
		}
	}
	t.w.violate(invariantStages, "%s of %s gets the content of %s, in which it is in no stage", cluster, t.key, r.Name)
}

// checkConcurrency checks how many clusters of a stage are updated at once.
func (t *decision) checkConcurrency(r *placement.Run, s *placement.RunStage) {
	if t.before.stagedRuns.stages[stageKey{runKey{t.key, r.Name}, s.Name}].done {
		return // what joins it gets the content at once
	}
	var updating []string
	members, limit := 0, 1
	for _, cluster := range s.Clusters {
		at := bindingKey{t.key, cluster}
		if !t.after.keeps(at) {
			continue
		}
		members++
		now, _ := t.after.binding(at)
		if now.HasRevision() && t.assigned(cluster) == t.contentOf(r) && (t.moved(cluster) || !t.wasAvailable(cluster)) && !t.failsAndContinues(r, cluster) {
			updating = append(updating, cluster)
		}
	}
	if s.MaxConcurrency != nil {
		limit = s.MaxConcurrency.IntValue()
		if share, isShare := strings.CutSuffix(s.MaxConcurrency.String(), "%"); isShare {
			percent := 0
			fmt.Sscan(share, &percent)
			limit = max(1, members*percent/100)
		}
	}
	if len(updating) > limit {
		t.w.violate(invariantConcurrency, "%s of %s updates %v of stage %s at once, and maxConcurrency is %d", r.Name, t.key, updating, s.Name, limit)
	}
}

// checkReturns checks that no automatic run begins with content that was rolled back.
func (t *decision) checkReturns() {
	o := t.before.stagedRuns
	for i := range t.after.runs[t.key] {
		r := &t.after.runs[t.key][i]
		was := t.runBefore(r.Name)
		if begins := !r.Started.IsZero() && (was == nil || was.Started.IsZero()); begins && r.Automatic && o.rolledBack[t.key][t.contentOf(r)] {
			t.w.violate(invariantReturns, "%s of %s brings %q again, which was rolled back", r.Name, t.key, t.contentOf(r))
		}
		if r.Automatic && r.RolledBack != "" && (was == nil || was.RolledBack == "") {
			add(o.rolledBack, t.key, t.contentOf(r))
		}
	}
}

// checkInFlight checks how many contents clusters are moved to at the same time. Those that are out of sight keep what they have.
func (t *decision) checkInFlight(moved, names []string) {
	contents := map[string]bool{}
	for _, cluster := range names {
		at := bindingKey{t.key, cluster}
		if t.after.keeps(at) && slices.Contains(moved, cluster) {
			contents[t.assigned(cluster)] = true
		}
	}
	if len(contents) > 2 {
		t.w.violate(invariantTwoContents, "%s moves %v to %d contents: %v", t.key, moved, len(contents), keys(contents))
	}
}

// checkHeld checks that new content comes to no cluster while it is frozen, or its windows are closed.
func (t *decision) checkHeld(moved []string) {
	for _, cluster := range moved {
		content := t.assigned(cluster)
		if t.before.stagedRuns.proven[t.key][content] {
			continue
		}
		for _, s := range t.after.suspensions {
			of := ledger.Subject{Effect: ledger.Freezes}
			if s.Subject != of {
				of.Placement = t.key
			}
			if s.Subject == of && !s.Ended(t.now) && !(s.Overrun && t.hasBegun(content, "")) {
				t.w.violate(invariantFrozen, "%s of %s gets %q, and is frozen: %s", cluster, t.key, content, s)
			}
		}
		t.checkWindows(cluster, content)
	}
}

// hasBegun reports whether a cluster of a region, or any, has had some content before this decision.
func (t *decision) hasBegun(content, region string) bool {
	for cluster := range t.before.entries[t.key] {
		at := bindingKey{t.key, cluster}
		if (region == "" || t.head.clusters[cluster].region == region) && contentText(t.w.content(t.before.revision(at), at)) == content {
			return true
		}
	}
	return false
}

// checkWindows checks that a window of a cluster is open, if there is any, or lets what has begun finish.
func (t *decision) checkWindows(cluster, content string) {
	closed := []string{}
	for _, name := range keys(t.head.staged.windows) {
		x := t.head.staged.windows[name]
		switch {
		case x.region != "" && x.region != t.head.clusters[cluster].region:
		case x.isOpen(t.now), x.isOpen(t.now.Add(-reportDelay)), !x.stops && t.hasBegun(content, x.region):
			return
		default:
			closed = append(closed, name)
		}
	}
	if len(closed) > 0 {
		t.w.violate(invariantWindow, "%s of %s gets %q, and its windows are closed: %v", cluster, t.key, content, closed)
	}
}

// checkEvictions checks that evictions leave as many clusters available as the budget asks for.
func (t *decision) checkEvictions(names []string) {
	budget, limited := t.head.staged.budgets[t.key.Name]
	available, total := 0, len(t.before.entries[t.key])
	var evicted []string
	for _, cluster := range names {
		at := bindingKey{t.key, cluster}
		was, had := t.before.binding(at)
		now, _ := t.after.binding(at)
		word, said := t.workReport(at)
		isAvailable := had && !was.Removing && said && word.available && t.before.reachable(cluster)
		if isAvailable {
			available++
		}
		if isAvailable && now.Evicted && !was.Evicted {
			evicted = append(evicted, cluster)
		}
	}
	if !limited || len(evicted) == 0 {
		return
	}
	left := available - len(evicted)
	if budget.field == "min" && left < budget.value || budget.field == "max" && total-left > budget.value {
		t.w.violate(invariantBudget, "%s is evicted from %v, which leaves %d of %d available, and its budget is %s %d", t.key, evicted, left, total, budget.field, budget.value)
	}
}

// noteProven records the content that is available on all clusters of a placement.
func (t *decision) noteProven(names []string) {
	content := ""
	for _, cluster := range names {
		at := bindingKey{t.key, cluster}
		if !t.after.keeps(at) {
			continue
		}
		has := t.assigned(cluster)
		if t.moved(cluster) || !t.wasAvailable(cluster) || content != "" && content != has {
			return
		}
		content = has
	}
	if content != "" {
		add(t.before.stagedRuns.proven, t.key, content)
	}
}
