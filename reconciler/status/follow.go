package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

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
		change := statusChange{now: l.b.cluster(at, d, index), cluster: l.b.p.Clusters[at]}
		if before != nil {
			change.was, _ = l.b.old.statusOn(before, d.Cluster, at)
		}
		l.lines().Set(at, line{d.Reason, l.transitionsOn(d.Cluster), statusesOf(change.now.Conditions), of, true})
		l.b.differs = l.b.differs || change.differs()
		change.addEvents(l.b, at)
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

// statusOn returns what the status says of a cluster, which is looked for at guess first, and whether it is selected. b is a
// reader of the report.
func (e *placementEntry) statusOn(b *builder, cluster string, guess int) (s api.PerClusterPlacementStatus, selected bool) {
	at := e.of.Position(cluster, guess)
	if at < 0 || at >= e.lines.Len() || !e.lines.At(at).selected {
		return s, false
	}
	return b.cluster(at, placement.Decision{Cluster: cluster, Selected: true, Reason: e.lines.At(at).reason}, metadata.SnapshotIndex(e.of.Record.Index)), true
}
