package status

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// A line is what a report keeps of a placement on one cluster. All else that it says of the cluster is made from the plan when
// somebody asks for it.
type line struct {
	// reason is why the scheduler has selected the cluster, and selected that it has; from the others the placement is removed.
	reason string
	// transitions are the last changes of its conditions.
	transitions map[string]ledger.Transition
	statuses    statuses
	facts       facts
	selected    bool
}

// statuses are the statuses of the conditions of summedUp, two bits for each; zero for a condition that is missing.
type statuses uint16

const (
	isTrue statuses = 1 + iota
	isFalse
	isUnknown
)

// summedUp are the types of conditions that a placement sums up over its clusters.
var summedUp = []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.Applied, api.Available, api.DiffReported}

func statusesOf(conditions []metav1.Condition) (out statuses) {
	for i, typ := range summedUp {
		c := meta.FindStatusCondition(conditions, typ)
		if c == nil {
			continue
		}
		switch c.Status {
		case metav1.ConditionTrue:
			out |= isTrue << (2 * i)
		case metav1.ConditionFalse:
			out |= isFalse << (2 * i)
		case metav1.ConditionUnknown:
			out |= isUnknown << (2 * i)
		}
	}
	return out
}

// anyUntrue reports whether a condition is false or unknown.
func (s statuses) anyUntrue() bool { return s&0xaaaa != 0 }

// of returns the status of the condition of a type in summedUp; zero if it is missing.
func (s statuses) of(typ string) statuses { return s >> (2 * slices.Index(summedUp, typ)) & 3 }

// tally counts the selected clusters by the status of their condition of a type in summedUp.
func (l lineBuilder) tally(typ string) conditions.Counts {
	shift := 2 * slices.Index(summedUp, typ)
	var n [4]int
	for _, one := range l.lines().All() {
		n[one.statuses>>shift&3]++ // lines of clusters that are not selected have no statuses
	}
	return conditions.Counts{True: n[isTrue], False: n[isFalse], Unknown: n[isUnknown]}
}

// facts are what a report sums up of a placement on a cluster, beside the statuses of conditions, or finds the cluster by.
type facts uint8

const (
	isUpdated facts = 1 << iota // the placement stays there, and has applied its newest content
	isDrifted                   // there are drifts
	isHeld                      // deletions are held
	isSilent                    // the member has not reported about the assigned revision
)

// factsOf returns the facts about a cluster of a placement.
func factsOf(p *plan.Placement, c *plan.OnCluster) (out facts) {
	if !c.Binding.Unscheduled && !c.Binding.Removing && p.Lag(c).Commits == 0 {
		out |= isUpdated
	}
	if len(drifts(p, c)) > 0 {
		out |= isDrifted
	}
	if held, pending := c.HeldDeletions(); len(held) > 0 && !pending {
		out |= isHeld
	}
	if c.Seen() == nil {
		out |= isSilent
	}
	return out
}

// lines returns the lines of the clusters of the plan. At first they have the facts; if the plan for a cluster is the same as in the
// earlier report, it is the line of that report.
func (l lineBuilder) lines() *sharedlist.Editor[line] {
	if l.b.lines != nil {
		return l.b.lines
	}
	var earlier sharedlist.List[line]
	if l.b.earlier != nil {
		earlier = l.b.earlier.lines
	}
	l.b.lines = earlier.Edit(len(l.b.p.Clusters))
	for i, c := range l.b.p.Clusters {
		if i >= earlier.Len() || l.b.earlier.of.Clusters[i] != c {
			l.b.lines.Set(i, line{facts: factsOf(l.b.p, c)})
		}
	}
	return l.b.lines
}

// clear removes from a line what it says beside the facts.
func (l lineBuilder) clear(i int) {
	l.lines().Set(i, line{facts: l.lines().At(i).facts})
}

// clustersWith returns the clusters with any of some facts.
func (l lineBuilder) clustersWith(any facts) (out []*plan.OnCluster) {
	for i, one := range l.lines().All() {
		if one.facts&any != 0 {
			out = append(out, l.b.p.Clusters[i])
		}
	}
	return out
}

// A lineBuilder makes the lines of a builder.
type lineBuilder struct{ b *builder }

// follow completes the lines of the clusters, and finds the changes since the earlier report. A cluster about which nothing has
// changed keeps its line.
func (l lineBuilder) follow() {
	var before *builder
	if l.b.old != nil && l.b.old.of.Spec != nil {
		before = l.b.old.reader()
		before.scratch = make([]metav1.Condition, 0, usualConditions)
	}
	l.b.scratch = make([]metav1.Condition, 0, usualConditions)
	decisions, index := l.b.decisions(), metadata.SnapshotIndex(l.b.p.Record.Index)
	for _, i := range l.changed(decisions) {
		d, at := decisions[i], -1
		if d.Selected {
			at = l.b.p.Position(d.Cluster, i)
		}
		if at < 0 {
			continue
		}
		of := l.lines().At(at).facts
		if of&isSilent != 0 {
			l.noteUnanswered(l.b.p.Clusters[at])
		}
		if same, found := l.earlierLine(at, d); found {
			l.lines().Set(at, same)
			continue
		}
		change := statusChange{now: l.b.cluster(at, d, index), held: l.b.p.Clusters[at]}
		if before != nil {
			change.was, _ = l.b.old.statusOn(before, d.Cluster, at)
		}
		l.lines().Set(at, line{d.Reason, l.transitionsOn(d.Cluster), statusesOf(change.now.Conditions), of, true})
		l.b.differs = l.b.differs || change.differs()
		l.b.onClusters.add(l.b, &change, at)
	}
	l.b.scratch = nil
}

// changed returns the positions of the clusters whose status may differ from the earlier report, in order. All others keep the lines
// of that report. If the scheduling decisions are not the same, every position is returned.
func (l lineBuilder) changed(decisions []placement.Decision) []int {
	e, clusters := l.b.earlier, l.b.p.Clusters
	if e == nil || !ledger.Identical(decisions, e.of.Schedule.Decisions) || e.lines.Len() != len(clusters) || len(e.unanswered) > 0 {
		for i := range clusters {
			l.clear(i)
		}
		all := make([]int, len(decisions))
		for i := range all {
			all[i] = i
		}
		return all
	}
	var out []int
	l.b.stay = true
	for at, c := range clusters {
		if e.of.Clusters[at] == c && l.lines().At(at).facts&isSilent == 0 {
			continue
		}
		name := c.Binding.Cluster
		l.b.stay = l.b.stay && e.of.Clusters[at].Binding.Cluster == name
		l.clear(at)
		i := at
		if i >= len(decisions) || decisions[i].Cluster != name {
			i = slices.IndexFunc(decisions, func(d placement.Decision) bool { return d.Cluster == name })
		}
		if i >= 0 {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// noteUnanswered notes why a cluster that has not reported yet does not answer, which its status says.
func (l lineBuilder) noteUnanswered(c *plan.OnCluster) {
	if seen := l.b.in.Ledger.Cluster(c.Binding.Cluster); seen != nil && !seen.Healthy && seen.Error != "" {
		if l.b.unanswered == nil {
			l.b.unanswered = map[string]string{}
		}
		l.b.unanswered[c.Binding.Cluster] = seen.Error
	}
}

// transitionsOn returns the last changes of the conditions of a cluster whose status was just made.
func (l lineBuilder) transitionsOn(cluster string) map[string]ledger.Transition {
	if n := len(l.b.transitions); n > 0 && l.b.transitions[n-1].Cluster == cluster {
		return l.b.transitions[n-1].To
	}
	if l.b.record == nil || l.b.record.Entry(cluster) == nil {
		return nil
	}
	return l.b.record.Entry(cluster).Transitions
}

// earlierLine returns the line of the cluster at a position of the plan in the earlier report. It is not found if its status may
// not be the same.
func (l lineBuilder) earlierLine(at int, d placement.Decision) (of line, found bool) {
	if l.b.earlier == nil {
		return line{}, false
	}
	was := l.b.earlier.of.Position(d.Cluster, at)
	if was < 0 || l.b.earlier.of.Clusters[was] != l.b.p.Clusters[at] {
		return line{}, false
	}
	of = l.b.earlier.lines.At(was)
	return of, of.selected && of.reason == d.Reason && l.b.earlier.unanswered[d.Cluster] == l.b.unanswered[d.Cluster]
}

// sameClusters reports whether the status of the placement says the same of its clusters as the earlier report, which may be nil.
func (l lineBuilder) sameClusters() bool {
	if l.b.old == nil || l.b.old.of.Spec == nil || l.b.differs {
		return false
	}
	selected := func(of line) bool { return of.selected }
	if count(l.lines().All(), selected) != count(l.b.old.lines.All(), selected) {
		return false
	}
	was := l.b.old.reader()
	list, earlier := l.b.decisions(), was.decisions()
	missing, formerly := l.b.missingClusters(list), was.missingClusters(earlier)
	return slices.EqualFunc(missing, formerly, func(a, b placement.Decision) bool { return a.Reason == b.Reason }) &&
		(len(missing) == 0 || l.b.missingSince().Equal(was.missingSince())) &&
		(ledger.Identical(list, earlier) || slices.Equal(selectedNames(list), selectedNames(earlier)))
}

func selectedNames(all []placement.Decision) (out []string) {
	for i := range all {
		if all[i].Selected {
			out = append(out, all[i].Cluster)
		}
	}
	return out
}

func count(all iter.Seq2[int, line], are func(line) bool) (n int) {
	for _, one := range all {
		if are(one) {
			n++
		}
	}
	return n
}

// comparable returns the report, which may be nil, if what it says of a cluster depends on nothing else of the placement
// than the plan p does, so that a cluster whose plan is the same is reported as there; nil otherwise.
func (e *placementEntry) comparable(p *plan.Placement) *placementEntry {
	plain := func(p *plan.Placement) bool {
		return p.Spec != nil && !p.Pending && p.InternalError == "" && p.Selection.Invalid == "" && p.Spec.Spec.Strategy.Type != api.External
	}
	if e == nil || !plain(e.of) || !plain(p) {
		return nil
	}
	was, is := &e.of.Record, &p.Record
	if e.of.Spec != p.Spec || was.Generation != is.Generation || was.Index != is.Index || !ledger.Identical(was.Revisions, is.Revisions) {
		return nil
	}
	return e
}

// reader returns a builder that makes what the report says of clusters. It does not read the ledger, and any goroutine may use
// it.
func (e *placementEntry) reader() *builder {
	return &builder{in: Input{Now: e.at, Conditions: e.conditions}, p: e.of, existing: e, unanswered: e.unanswered}
}

// statusOn returns what the status says of a cluster, which is looked for at guess first, and whether it is selected. b is a
// reader of the report.
func (e *placementEntry) statusOn(b *builder, cluster string, guess int) (s api.PerClusterPlacementStatus, selected bool) {
	at := e.of.Position(cluster, guess)
	if at < 0 || at >= e.lines.Len() || !e.lines.At(at).selected {
		return s, false
	}
	return b.cluster(at, placement.Decision{Cluster: cluster, Selected: true, Reason: e.lines.At(at).reason}, metadata.SnapshotIndex(e.of.Record.Index)), true
}

// whole returns the report of the placement with everything that is only made when it is asked for: for one cluster or, if the
// name is empty, for all.
func (e *placementEntry) whole(cluster string) *placementEntry {
	out, detail, b := *e, *e.detail, e.reader()
	out.detail = &detail
	var statuses []api.PerClusterPlacementStatus
	if cluster == "" {
		for _, c := range e.of.Clusters {
			detail.Clusters = append(detail.Clusters, b.clusterDetail(c))
		}
		if e.of.Spec != nil {
			statuses = b.clusters(metadata.SnapshotIndex(e.of.Record.Index), nil)
		}
	} else if c := e.of.On(cluster); c != nil {
		detail.Clusters = []ClusterDetail{b.clusterDetail(c)}
		if s, selected := e.statusOn(b, cluster, 0); selected {
			statuses = []api.PerClusterPlacementStatus{s}
		}
	}
	if len(statuses) == 0 {
		return &out
	}
	if e.cluster != nil {
		o := *e.cluster
		o.Status.PlacementStatuses, out.cluster = statuses, &o
	}
	if e.namespaced != nil {
		o := *e.namespaced
		o.Status.PlacementStatuses, out.namespaced = statuses, &o
	}
	if e.mirror != nil {
		o := *e.mirror
		o.SourceStatus.PlacementStatuses, out.mirror = statuses, &o
	}
	return &out
}

// missingSince returns the transition time of the condition Scheduled=False, which clusters that are not found have as well.
func (b *builder) missingSince() time.Time {
	if b.existing != nil {
		return b.existing.missingSince
	}
	if b.record != nil {
		if was := b.record.Transitions[b.prefix()+api.Scheduled]; was.Status == string(metav1.ConditionFalse) {
			return was.Time
		}
	}
	return b.in.Now
}
