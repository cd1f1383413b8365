package status

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A line is what a report keeps of a placement on one cluster. All else that it says of the cluster is made from the plan when
// somebody asks for it.
type line struct {
	// reason is why the scheduler has selected the cluster, and selected that it has; from the others the placement is removed.
	reason string
	// transitions are the last changes of its conditions.
	transitions map[string]ledger.Transition
	statuses    statuses
	selected    bool
}

// statuses are the statuses of the conditions of summedUp, two bits for each; zero for a condition that is missing.
type statuses uint16

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
			out |= 1 << (2 * i)
		case metav1.ConditionFalse:
			out |= 2 << (2 * i)
		case metav1.ConditionUnknown:
			out |= 3 << (2 * i)
		}
	}
	return out
}

// anyUntrue reports whether a condition is false or unknown.
func (s statuses) anyUntrue() bool { return s&0xaaaa != 0 }

// isTrue reports whether the condition of a type in summedUp is true.
func (s statuses) isTrue(typ string) bool { return s>>(2*slices.Index(summedUp, typ))&3 == 1 }

// counts are the numbers of clusters by the status of a condition.
type counts struct{ yes, no, unknown int }

// tally counts the selected clusters by the status of their condition of a type in summedUp.
func tally(lines []line, typ string) counts {
	shift := 2 * slices.Index(summedUp, typ)
	var n [4]int
	for i := range lines {
		n[lines[i].statuses>>shift&3]++ // lines of clusters that are not selected have no statuses
	}
	return counts{n[1], n[2], n[3]}
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

// known returns the facts about the clusters of the plan. They are those of the earlier report if the plan for the cluster is the same.
func (l lineBuilder) known() []facts {
	b := l.b
	if b.facts != nil {
		return b.facts
	}
	b.facts = make([]facts, len(b.p.Clusters))
	for i, c := range b.p.Clusters {
		if e := b.earlier; e != nil && i < len(e.facts) && e.of.Clusters[i] == c {
			b.facts[i] = e.facts[i]
		} else {
			b.facts[i] = factsOf(b.p, c)
		}
	}
	return b.facts
}

// that returns the clusters with one of some facts.
func (l lineBuilder) that(are facts) (out []*plan.OnCluster) {
	for i, f := range l.known() {
		if f&are != 0 {
			out = append(out, l.b.p.Clusters[i])
		}
	}
	return out
}

// A statusChange is what the status of a placement says of a cluster now, and what it said before; nil if the cluster was not
// selected.
type statusChange struct {
	now api.PerClusterPlacementStatus
	was *api.PerClusterPlacementStatus
}

// A lineBuilder makes the lines of a builder.
type lineBuilder struct{ b *builder }

// follow makes the lines of the clusters, and the changes since the earlier report. A cluster about which nothing has changed
// keeps its line.
func (l lineBuilder) follow() {
	l.b.lines = make([]line, len(l.b.p.Clusters))
	known := l.known()
	var before *builder
	if l.b.old != nil && l.b.old.of.Spec != nil {
		before = l.b.old.reader()
	}
	decisions := l.b.decisions()
	for _, i := range l.changed(decisions) {
		d, at := decisions[i], -1
		if d.Selected {
			at = l.b.p.Position(d.Cluster, i)
		}
		if at < 0 {
			continue
		}
		if known[at]&isSilent != 0 {
			l.noteUnanswered(l.b.p.Clusters[at])
		}
		if same := l.earlierLine(at, d); same != nil {
			l.b.lines[at] = *same
			continue
		}
		change := statusChange{now: l.b.cluster(l.b.p.Clusters[at], d, index(l.b.p.Record.Index))}
		if before != nil {
			change.was = l.b.old.statusOn(before, d.Cluster, at)
		}
		l.b.lines[at] = line{d.Reason, l.transitionsOn(d.Cluster), statusesOf(change.now.Conditions), true}
		l.b.changes = append(l.b.changes, change)
	}
}

// changed returns the positions of the clusters whose status may differ from the earlier report, in order. The lines of all others
// are copied from that report. If the scheduling decisions are not the same, every position is returned.
func (l lineBuilder) changed(decisions []placement.Decision) []int {
	e, clusters := l.b.earlier, l.b.p.Clusters
	if e == nil || !ledger.Identical(decisions, e.of.Schedule.Decisions) || len(e.lines) != len(clusters) || len(e.unanswered) > 0 {
		all := make([]int, len(decisions))
		for i := range all {
			all[i] = i
		}
		return all
	}
	copy(l.b.lines, e.lines)
	var out []int
	l.b.stay = true
	for at, c := range clusters {
		if e.of.Clusters[at] == c && l.b.facts[at]&isSilent == 0 {
			continue
		}
		name := c.Binding.Cluster
		l.b.lines[at], l.b.stay = line{}, l.b.stay && e.of.Clusters[at].Binding.Cluster == name
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
	if seen := l.b.Ledger.Cluster(c.Binding.Cluster); seen != nil && !seen.Healthy && seen.Error != "" {
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

// earlierLine returns the line of the cluster at a position of the plan in the earlier report if its status is the same; nil
// otherwise.
func (l lineBuilder) earlierLine(at int, d placement.Decision) *line {
	if l.b.earlier == nil {
		return nil
	}
	was := l.b.earlier.of.Position(d.Cluster, at)
	if was < 0 || l.b.earlier.of.Clusters[was] != l.b.p.Clusters[at] {
		return nil
	}
	same := &l.b.earlier.lines[was]
	if !same.selected || same.reason != d.Reason || l.b.earlier.unanswered[d.Cluster] != l.b.unanswered[d.Cluster] {
		return nil
	}
	return same
}

// sameClusters reports whether the status of the placement says the same of its clusters as the earlier report, which may be nil.
func (l lineBuilder) sameClusters() bool {
	if l.b.old == nil || l.b.old.of.Spec == nil || slices.ContainsFunc(l.b.changes, statusChange.differs) {
		return false
	}
	selected := func(one line) bool { return one.selected }
	if count(l.b.lines, selected) != count(l.b.old.lines, selected) {
		return false
	}
	was := l.b.old.reader()
	list, earlier := l.b.decisions(), was.decisions()
	missing, formerly := l.b.missingClusters(list), was.missingClusters(earlier)
	return slices.EqualFunc(missing, formerly, func(a, b placement.Decision) bool { return a.Reason == b.Reason }) &&
		(len(missing) == 0 || l.b.missingSince().Equal(was.missingSince())) &&
		(ledger.Identical(list, earlier) || slices.Equal(selectedNames(list), selectedNames(earlier)))
}

func (c statusChange) differs() bool {
	if c.was == nil {
		return true
	}
	now, was := c.now, *c.was
	if !slices.Equal(now.Conditions, was.Conditions) {
		return true
	}
	now.Conditions, was.Conditions = nil, nil
	return !reflect.DeepEqual(now, was)
}

func selectedNames(all []placement.Decision) (out []string) {
	for i := range all {
		if all[i].Selected {
			out = append(out, all[i].Cluster)
		}
	}
	return out
}

func count[T any](all []T, are func(T) bool) (n int) {
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
	return &builder{Input: Input{Now: e.at, Conditions: e.conditions}, p: e.of, made: e, unanswered: e.unanswered}
}

// statusOn returns what the status says of a cluster, which is looked for at guess first; nil if it is not selected. b is a
// reader of the report.
func (e *placementEntry) statusOn(b *builder, cluster string, guess int) *api.PerClusterPlacementStatus {
	at := e.of.Position(cluster, guess)
	if at < 0 || at >= len(e.lines) || !e.lines[at].selected {
		return nil
	}
	s := b.cluster(e.of.Clusters[at], placement.Decision{Cluster: cluster, Selected: true, Reason: e.lines[at].reason}, index(e.of.Record.Index))
	return &s
}

// transitions returns the last changes of the conditions of a cluster.
func (e *placementEntry) transitions(cluster string) map[string]ledger.Transition {
	if at := e.of.Position(cluster, 0); at >= 0 && at < len(e.lines) {
		return e.lines[at].transitions
	}
	return nil
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
			statuses = b.clusters(index(e.of.Record.Index))
		}
	} else if c := e.of.On(cluster); c != nil {
		detail.Clusters = []ClusterDetail{b.clusterDetail(c)}
		if s := e.statusOn(b, cluster, 0); s != nil {
			statuses = []api.PerClusterPlacementStatus{*s}
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
	if b.made != nil {
		return b.made.missingSince
	}
	if b.record != nil {
		if was := b.record.Transitions[b.prefix()+api.Scheduled]; was.Status == string(metav1.ConditionFalse) {
			return was.Time
		}
	}
	return b.Now
}
