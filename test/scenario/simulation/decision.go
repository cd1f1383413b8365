package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// The invariants of decisions.
const (
	invariantUnavailable = "no more clusters are taken down than maxUnavailable allows"
	invariantSurge       = "no more clusters are added than maxSurge allows"
	invariantStopped     = "no cluster is updated while the update of another has failed"
	invariantFailed      = "a cluster that is progressing stops no rollout"
	invariantCompared    = "a comparison stops no rollout"
	invariantUnreachable = "an unreachable cluster is not changed, unless a placement is evicted from it"
	invariantKept        = "a cluster is not replaced because it is unreachable"
	invariantInvalid     = "an invalid placement keeps its clusters and its content"
)

// checkDecided compares the ledger with the previous one.
func (w *world) checkDecided(l *ledger.Ledger) {
	w.recordAdoptions(l)
	w.carryOver(l)
	w.checkSuspensions(l)
	before, after := w.decided, w.decided.after(l)
	w.decided = after
	w.noteContents(after)
	head := w.source.commits[after.head]
	if head == nil {
		return
	}
	for _, key := range slices.SortedFunc(maps.Keys(after.entries), byKey) {
		p, ok := head.placements[key.Name]
		if !ok {
			maps.DeleteFunc(before.failedUpdates, func(at bindingKey, _ map[api.ID]string) bool { return at.key == key })
			maps.DeleteFunc(before.counted, func(at bindingKey, _ string) bool { return at.key == key })
			delete(after.recordedStops, key) // if it comes back, that is another rollout
			continue                         // it is removed from all clusters at once
		}
		t := &decision{w: w, key: key, spec: p, head: head.desired, before: before, after: after, now: w.now()}
		t.check()
	}
}

// A decision is what was decided about one placement at one time. The budget is computed
// independently, as in KubeFleet.
type decision struct {
	w             *world
	key           api.PlacementKey
	spec          placementSpec
	head          *desired
	before, after *model
	now           time.Time

	wanted, excused, ready, mayBeReady int
	// toleratedUnreachable is how many more clusters may be unreachable.
	toleratedUnreachable int
	// takenDown are the clusters that were available, or about to be, and are updated or
	// removed.
	added, updated, takenDown []string
}

func (t *decision) check() {
	names := clusters(t.before, t.after, t.key)
	for _, name := range names {
		if b, has := t.after.binding(bindingKey{t.key, name}); has && !b.Unscheduled {
			t.wanted++
		}
	}
	t.toleratedUnreachable = len(names)
	if t.w.maxUnreachable != "" {
		t.toleratedUnreachable = intOrPercent(t.w.maxUnreachable, t.target())
	}
	t.noteDisturbances(names)
	for _, name := range names {
		t.count(bindingKey{t.key, name})
	}
	t.checkKept(names)
	t.checkFound(names)
	t.checkUnanswered(names)
	if t.spec.invalid {
		if len(t.added)+len(t.updated)+len(t.takenDown) > 0 {
			t.w.violate(invariantInvalid, "%s adds %v, updates %v, takes %v", t.key, t.added, t.updated, t.takenDown)
		}
		return
	}
	target := t.target()
	unavailable, surge := intOrPercent(t.spec.maxUnavailable, target), intOrPercent(t.spec.maxSurge, target)
	t.checkUntried(names, unavailable) // before the budget of the moment, whose violations are often the same
	if may := max(0, t.ready-(target-t.excused-unavailable)); len(t.takenDown) > may {
		t.w.violate(invariantUnavailable, "%s takes %v, and %d may go: %d are ready, %d wanted, %d out of reach, maxUnavailable is %d",
			t.key, t.takenDown, may, t.ready, target, t.excused, unavailable)
	}
	if may := max(0, target+surge-t.mayBeReady); len(t.added) > may {
		t.w.violate(invariantSurge, "%s adds %v, and %d may come: %d may be ready, %d wanted, maxSurge is %d",
			t.key, t.added, may, t.mayBeReady, target, surge)
	}
	t.checkStopped(names)
	t.checkProgress()
	t.checkStopEnds()
	t.checkStaged(names)
	t.updateRisked()
	t.updateCounted(names)
}

// count counts one cluster.
func (t *decision) count(at bindingKey) {
	b, had := t.before.binding(at)
	now, has := t.after.binding(at)
	reachable, suspended := t.before.reachable(at.cluster), t.after.suspended(at, t.now)
	keepsPlace := t.keepsPlace(at)
	pardoned := suspended && !keepsPlace
	if has && !suspended && !reachable && !keepsPlace && t.toleratedUnreachable > 0 {
		t.toleratedUnreachable--
		pardoned = true
	}
	if has && !now.Unscheduled && pardoned {
		t.excused++
	}
	anew := had && b.Removing && has && !now.Removing
	if anew {
		delete(t.before.risked, at)
	}
	ready, down := t.isReady(at), t.isOutsideBudget(at)
	_, declared := t.head.clusters[at.cluster]
	gone := b.Removing && t.before.reports[at].removed
	if !pardoned && had && declared && !gone {
		if ready && !b.Removing {
			t.ready++
		}
		if b.HasRevision() && !t.hasFailed(at) && !t.spec.reportDiff {
			t.mayBeReady++
		}
	}
	if !has {
		return
	}
	moved := true
	switch {
	case now.Removing && (b.Removing || !b.HasRevision()):
		moved = false // as far as is known, nothing was there
	case now.Removing:
		if !down {
			t.takenDown = append(t.takenDown, at.cluster)
		}
	case anew && now.Assigned.Hash == b.Assigned.Hash:
		moved = false // as if it had never been removed
	case !b.HasRevision() && now.HasRevision() && now.Assigned.Hash == t.before.leftover[at]:
		moved = false // it keeps what a placement has there that had this name and is being removed
	case !b.HasRevision() && now.HasRevision():
		t.added = append(t.added, at.cluster)
	case anew && !now.HasRevision():
		moved = false
	case b.HasRevision() && b.Assigned.Hash != now.Assigned.Hash:
		t.updated = append(t.updated, at.cluster)
		if !down {
			t.takenDown = append(t.takenDown, at.cluster)
		}
	default:
		moved = false
	}
	if moved && suspended {
		t.w.violate(invariantSuspended, "%s of %s goes from %+v to %+v, and is suspended", at.cluster, t.key, b, now)
	}
	if moved && t.before.foreign[at.cluster] {
		t.w.violate(invariantForeign, "%s of %s goes from %+v to %+v", at.cluster, t.key, b, now)
	}
	if evicted := now.Removing && now.Evicted; moved && !reachable && !evicted {
		t.w.violate(invariantUnreachable, "%s of %s goes from %+v to %+v", at.cluster, t.key, b, now)
	}
}

// workReport returns what was reported of the assigned content of a cluster; not ok if nothing
// was.
func (t *decision) workReport(at bindingKey) (workReport, bool) {
	b, _ := t.before.binding(at)
	word, ok := t.before.reports[at]
	return word, ok && word.done && (t.spec.reportDiff || !word.compared) && b.HasRevision() && word.hash == b.Assigned.Hash && !word.at.Before(b.AssignedAt)
}

func (t *decision) isReady(at bindingKey) bool {
	word, ok := t.workReport(at)
	if !ok || !t.before.reachable(at.cluster) || t.after.suspended(at, t.now) {
		return false
	}
	switch {
	case t.leavesObjects(at), t.spec.reportDiff && len(t.yields(at)) > 0, t.leavesOutResumed(at, word):
		return false
	case t.spec.reportDiff:
		return word.applied
	case !word.available:
		return false
	}
	period := time.Duration(t.spec.unavailablePeriod) * time.Second
	return !word.untrackable || !word.availableSince.Add(period).After(t.now)
}

func (t *decision) isDown(at bindingKey) bool {
	word, ok := t.workReport(at)
	return ok && (t.leavesObjects(at) || t.spec.reportDiff && len(t.yields(at)) > 0 || !word.applied || !word.available && !t.spec.reportDiff)
}

// isBroken reports whether the content of a cluster will not become available without a change.
func (t *decision) isBroken(at bindingKey) bool {
	word, ok := t.workReport(at)
	return ok && (t.leavesObjects(at) || word.failed)
}

func (t *decision) hasFailed(at bindingKey) bool {
	word, ok := t.workReport(at)
	return ok && (t.leavesObjects(at) || !word.applied)
}

// leavesObjects reports whether the cluster leaves an object to a placement that keeps it.
func (t *decision) leavesObjects(at bindingKey) bool {
	return slices.ContainsFunc(t.yields(at), func(y ledger.Yield) bool { return !y.Passing })
}

// yields returns the objects that the cluster leaves to other placements.
func (t *decision) yields(at bindingKey) []ledger.Yield {
	if e := t.before.entries[at.key][at.cluster]; e != nil {
		return e.Unusual().Yields
	}
	return nil
}

func (t *decision) target() int {
	switch {
	case len(t.spec.clusterNames) > 0:
		return len(t.spec.clusterNames)
	case t.spec.numberOfClusters >= 0:
		return t.spec.numberOfClusters
	}
	return t.wanted
}

// intOrPercent returns a number, or a percentage rounded up; a quarter if it is not set.
func intOrPercent(text string, of int) int {
	n, percent := 0, 0
	if text == "" {
		text = "25%"
	}
	if strings.HasSuffix(text, "%") {
		fmt.Sscanf(text, "%d%%", &percent)
		return (percent*of + 99) / 100
	}
	fmt.Sscanf(text, "%d", &n)
	return n
}

// checkKept checks that a placement keeps its clusters: under the same policy, it leaves one
// only if fewer are wanted, or if the cluster leaves the fleet.
func (t *decision) checkKept(names []string) {
	then := t.w.source.commits[t.before.specified[t.key]]
	if then == nil || !t.before.known[t.key] {
		return // one that is not known was renamed just now: its clusters were chosen by another policy
	}
	was, ok := then.placements[t.key.Name]
	if !ok || was.invalid || was.policy() != t.spec.policy() || t.spec.numberOfClusters < was.numberOfClusters {
		return
	}
	for _, name := range names {
		at := bindingKey{t.key, name}
		b, _ := t.before.binding(at)
		_, declared := t.head.clusters[name]
		if declared && t.before.keeps(at) && b.Policy != "" && !t.after.keeps(at) {
			t.w.violate(invariantKept, "%s lets %s go (it answers: %t)", t.key, name, t.before.healthy[name])
		}
	}
}

// checkFound checks that clusters found in inventories after a lost ledger are kept.
func (t *decision) checkFound(names []string) {
	held := 0
	for _, name := range names {
		if t.after.keeps(bindingKey{t.key, name}) {
			held++
		}
	}
	for _, name := range names {
		at := bindingKey{t.key, name}
		b, _ := t.before.binding(at)
		_, declared := t.head.clusters[name]
		if !declared || !t.before.keeps(at) || b.Policy != "" || t.after.keeps(at) {
			continue
		}
		if wanted := len(t.spec.clusterNames) == 0 || slices.Contains(t.spec.clusterNames, name); wanted && (t.spec.numberOfClusters < 0 || held < t.spec.numberOfClusters) {
			t.w.violate(invariantKept, "%s lets %s go, which was found again", t.key, name)
		}
	}
}

// policy returns the parts of a placement that select clusters, except their number.
func (p placementSpec) policy() string {
	return fmt.Sprint(p.clusterNames, p.numberOfClusters >= 0, p.region)
}

// checkStopped checks that nothing is updated while a failed update stops the rollout.
func (t *decision) checkStopped(names []string) {
	t.updateStops(names)
	if len(t.updated) == 0 {
		return
	}
	for at := range t.before.failedUpdates {
		if at.key == t.key {
			t.w.violate(invariantStopped, "%s updates %v, and the update of %s failed", t.key, t.updated, at.cluster)
		}
	}
}

// checkProgress checks that no stop begins on a cluster where nothing has failed.
func (t *decision) checkProgress() {
	for _, s := range t.after.recordedStops[t.key] {
		at := bindingKey{t.key, s.Cluster}
		_, said := t.workReport(at)
		switch {
		case slices.Contains(t.before.recordedStops[t.key], s):
		case t.spec.reportDiff:
			t.w.violate(invariantCompared, "%s is stopped by %s, where nothing is written", t.key, s.Cluster)
		case said && !t.isBroken(at):
			t.w.violate(invariantFailed, "%s is stopped by %s, where nothing has failed", t.key, s.Cluster)
		}
	}
}

// updateStops brings the failed updates that stop the rollout up to date. One stops it until
// its cluster recovers, until a commit changes what the cluster gets, or until a user resumes
// the rollout, whatever else happens to the cluster.
func (t *decision) updateStops(names []string) {
	maps.DeleteFunc(t.before.failedUpdates, func(at bindingKey, content map[api.ID]string) bool {
		return at.key == t.key && (t.spec.continueOnFailure || t.recovered(at) || !sameContent(content, t.head.content(t.key.Name, at.cluster)))
	})
	for _, name := range names {
		at := bindingKey{t.key, name}
		if !t.spec.continueOnFailure && !t.spec.reportDiff && t.w.saved.risked[at] && t.isBroken(at) && t.before.reachable(name) && !t.after.suspended(at, t.now) && t.before.keeps(at) && t.after.keeps(at) && t.newest(at) {
			t.before.failedUpdates[at] = t.head.content(t.key.Name, name)
		}
	}
}

// recovered reports whether a cluster is available with the content that a stop is about. A
// comparison does not count.
func (t *decision) recovered(at bindingKey) bool {
	return t.isReady(at) && t.newest(at) && !t.spec.reportDiff
}

// newest reports whether a cluster is assigned the content that it would get now.
func (t *decision) newest(at bindingKey) bool {
	b, _ := t.before.binding(at)
	then := t.w.source.commits[b.Assigned.Commit]
	return then != nil && sameContent(t.w.content(b.Assigned, at), t.head.content(t.key.Name, at.cluster))
}

func sameContent(a, b map[api.ID]string) bool { return maps.Equal(a, b) }

// updateRisked records the updates of clusters that were available.
func (t *decision) updateRisked() {
	for _, name := range clusters(t.before, t.after, t.key) {
		if at := (bindingKey{t.key, name}); t.isReady(at) && !t.spec.reportDiff {
			delete(t.before.risked, at)
		}
	}
	for _, name := range t.updated {
		at := bindingKey{t.key, name}
		t.before.risked[at] = (t.isReady(at) || t.isDown(at) && !t.isOutsideBudget(at)) && !t.spec.reportDiff || t.before.risked[at] && (t.spec.reportDiff || !t.isBroken(at))
	}
	for _, name := range t.added {
		delete(t.before.risked, bindingKey{t.key, name})
	}
	for _, name := range slices.Concat(t.added, t.updated) {
		delete(t.before.excused, bindingKey{t.key, name})
	}
}
