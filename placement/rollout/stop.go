package rollout

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
)

// stops returns the failed updates that stop the rollout, by cluster: earlier ones that have
// not ended, and new ones. A stop ends when its cluster recovers or would get other content;
// the caller drops it when a user resumes the rollout. Nothing else ends it: neither a
// suspension, nor that the cluster becomes unreachable or is no longer selected, nor
// ReportDiff, under which no recovery can be observed. Content assigned under ReportDiff is
// applied everywhere at once when the strategy changes back, so that the other clusters wait.
func (in *Input) stops() []placement.Stop {
	if !in.StopOnFailure {
		return nil
	}
	var all []placement.Stop
	for _, s := range in.Stops {
		changed := s.Latest != "" && s.Latest != s.Failed.Hash
		if b := in.target(s.Cluster); !changed && (b == nil || !b.recovered(in, s.Failed)) {
			all = append(all, s.Stop)
		}
	}
	for i := range in.Targets {
		b := &in.Targets[i]
		known := slices.ContainsFunc(all, func(s placement.Stop) bool { return s.Cluster == b.Cluster })
		if !known && b.updateFailed(in) {
			all = append(all, placement.Stop{Cluster: b.Cluster, Failed: b.Assigned})
		}
	}
	slices.SortFunc(all, func(a, b placement.Stop) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all
}

// updateFailed reports whether the update to the latest revision failed on a cluster that was
// available before, and the rollout was not resumed since. A rollout that is resumed may update
// other clusters at the same time. A failed comparison changes nothing on the cluster.
func (b *Target) updateFailed(in *Input) bool {
	_, failed := b.failure(in)
	return failed && !in.Strategy.ReportsDiff() && b.Risked && b.latest() && !b.Unscheduled && !b.resumedSince(in)
}

// resumedSince reports whether the rollout was resumed since the cluster was updated.
func (b *Target) resumedSince(in *Input) bool { return b.AssignedAt.Before(in.Resumed) }

// recovered reports whether the cluster is available with the content that had
// failed there.
func (b *Target) recovered(in *Input, failed placement.Revision) bool {
	return !b.Removing && b.Assigned.Hash == failed.Hash && b.fullyAvailable(in)
}

// fullyAvailable reports whether all of the content was seen to be available: neither a
// comparison nor a report without the suspended objects counts.
func (b *Target) fullyAvailable(in *Input) bool {
	return b.ready(in) && b.health() != DiffReported && !b.Seen.Partial
}

// target returns the target for a cluster; nil if there is none.
func (in *Input) target(cluster string) *Target {
	i, found := slices.BinarySearchFunc(in.Targets, cluster, func(b Target, name string) int { return strings.Compare(b.Cluster, name) })
	if !found {
		return nil
	}
	return &in.Targets[i]
}

// stopMessage describes the first cluster that stops the rollout.
func (in *Input) stopMessage(p *Plan) string {
	text := "cluster " + p.Stopped + ", which was available before its update and is not now"
	switch b := in.target(p.Stopped); {
	case b == nil || b.Unscheduled:
		return text + " (it is no longer selected)"
	case b.Suspended != "":
		return text + " (it is suspended)"
	case b.Unreachable:
		return text + " (" + cmp.Or(b.UnusableWhy, "it is unreachable") + ")"
	case in.Strategy.ReportsDiff():
		return text + " (ReportDiff does not see whether it recovers)"
	}
	return text
}
