package reconciler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// gateQuestions are the gates of all runs that have to be asked now.
func gateQuestions(l *ledger.Ledger, p *plan.Plan) (out []placement.GateQuestion) {
	for pl := range p.Placements.Values() {
		record := l.Placement(pl.Key)
		if record == nil || record.Deleted {
			continue
		}
		for i := range record.Runs {
			run := &record.Runs[i]
			for _, q := range run.Questions(pl.Key) {
				stage := &run.Stages[run.Turn()]
				clusters := awaitedClusters(pl, run, stage)
				switch {
				case q.Spec.Objects != nil:
					q.Targets = gateTargets(p, pl, clusters, q.Spec.Objects)
				case q.Spec.Job != nil:
					q.Fleet, q.Targets = l.Fleet().ID, jobTargets(l, pl, stage, clusters, &q)
				}
				out = append(out, q)
			}
		}
	}
	return out
}

// awaitedClusters are the clusters of the stage whose turn it is, without those that it does not wait for.
func awaitedClusters(pl *plan.Placement, run *placement.Run, stage *placement.RunStage) []string {
	inForce, progress := pl.Rollout.Run, pl.Rollout.Progress
	if inForce == nil || inForce.Name != run.Name || progress == nil || len(progress.NotAwaited) == 0 {
		return stage.Clusters
	}
	return slices.DeleteFunc(slices.Clone(stage.Clusters), func(name string) bool { return slices.Contains(progress.NotAwaited, name) })
}

// gateTargets are the clusters of a stage that the placement still selects, with the objects that a gate reads there.
func gateTargets(p *plan.Plan, pl *plan.Placement, clusters []string, g *api.ObjectsGate) (out []placement.GateTarget) {
	for _, on := range pl.Clusters {
		if on.Binding.Unscheduled || on.Binding.Removing || !slices.Contains(clusters, on.Binding.Cluster) {
			continue
		}
		target := placement.GateTarget{Cluster: on.Binding.Cluster}
		if i, found := slices.BinarySearchFunc(p.Members, target.Cluster, func(c *hub.Cluster, name string) int { return strings.Compare(c.Name, name) }); found {
			target.Context = p.Members[i].Annotations[api.ContextAnnotation]
		}
		w := work.Find(p.Works[target.Cluster], pl.Key)
		if w == nil || w.Keep {
			target.Unknown = "its content is not known"
			out = append(out, target)
			continue
		}
		for _, m := range w.Manifests {
			if !g.Has(m.ID) {
				continue
			}
			if target.Objects = append(target.Objects, m.Object); target.Unknown == "" {
				target.Unknown = unknownReason(on, w, m)
			}
		}
		out = append(out, target)
	}
	return out
}

// jobTargets returns the clusters of a stage on which the Job of a gate is to run, in the order in which they are updated.
func jobTargets(l *ledger.Ledger, pl *plan.Placement, stage *placement.RunStage, clusters []string, q *placement.GateQuestion) (out []placement.GateTarget) {
	gate := &stage.Gates[slices.IndexFunc(stage.Gates, func(g placement.RunGate) bool { return g.Name == q.Gate })]
	for _, name := range clusters {
		on := pl.On(name)
		if on == nil || on.Binding.Unscheduled || on.Binding.Removing {
			continue
		}
		target := placement.GateTarget{Cluster: name, Job: gate.JobOn(name)}
		switch seen := l.Cluster(name); {
		case on.Unusual().Refusal != "":
			target.Unknown = on.Unusual().Refusal
		case on.Unusual().Suspended != "":
			target.Unknown = "it is " + on.Unusual().Suspended
		case seen == nil || !seen.Healthy:
			target.Unknown = "it is not reachable"
		}
		if out = append(out, target); len(out) == q.Spec.Job.Clusters {
			break
		}
	}
	return out
}

// unknownReason says why an object may differ on a cluster from what Git has, so that its state proves nothing; empty if nothing speaks for that.
func unknownReason(on *plan.OnCluster, w *work.Work, m *work.Manifest) string {
	if m.Encrypted != nil {
		return m.ID.String() + " is encrypted and is not applied"
	}
	if why := w.SuspendedReason(m.ID); why != "" {
		return m.ID.String() + " is suspended"
	}
	if on.Entry == nil {
		return ""
	}
	for _, d := range on.Entry.Seen.Unusual().Drifts {
		if d.ID == m.ID && d.State.Present() && d.State != api.DriftAltered && !d.Addition {
			return fmt.Sprintf("%s has been changed on the cluster (%s)", m.ID, d.State)
		}
	}
	return ""
}

// foldGateAnswers records answers to gates in the runs that have asked for them, and reports whether anything has changed. What was
// asked about another content, or about clusters that have changed since, is dropped.
func foldGateAnswers(l *ledger.Ledger, answers []placement.GateAnswer) (changed bool) {
	for _, a := range answers {
		record := l.Placement(a.Placement)
		if record == nil || record.Deleted {
			continue
		}
		i := slices.IndexFunc(record.Runs, func(r placement.Run) bool { return r.Name == a.Run && r.Content.Hash == a.Content })
		if i < 0 {
			continue
		}
		run := record.Runs[i].Clone()
		if !run.RecordAnswer(a.Placement, a) {
			continue
		}
		next := *record
		next.Runs = slices.Clone(record.Runs)
		next.Runs[i] = run
		l.SetPlacement(a.Placement, next)
		changed = true
	}
	return changed
}
