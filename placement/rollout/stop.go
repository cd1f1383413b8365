package rollout

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
)

// A Stop is a failed update that keeps the other clusters from being updated.
type Stop struct {
	placement.Stop
	// Latest is the hash of what the cluster would get now, whether or not it is
	// still wanted; empty if nobody can tell.
	Latest string
}

// stops returns the failed updates that stop the rollout, by cluster: those that
// did until now and are not over, and new ones. A stop ends when its cluster
// recovers or would get other content; the caller drops it when a person says to
// go on. Nothing else ends it: neither a suspension, nor a cluster that stops
// answering or is no longer wanted, nor ReportDiff, under which nobody sees whether a
// cluster recovers. What ReportDiff moves is applied everywhere at once when the
// strategy changes back, so the others wait.
func (in *Input) stops() []placement.Stop {
	if !in.StopOnFailure {
		return nil
	}
	var all []placement.Stop
	for _, s := range in.Stops {
		changed := s.Latest != "" && s.Latest != s.Failed.Hash
		if b := in.binding(s.Cluster); !changed && (b == nil || !b.recovered(in, s.Failed)) {
			all = append(all, s.Stop)
		}
	}
	for i := range in.Bindings {
		b := &in.Bindings[i]
		known := slices.ContainsFunc(all, func(s placement.Stop) bool { return s.Cluster == b.Cluster })
		if !known && b.broken(in) {
			all = append(all, placement.Stop{Cluster: b.Cluster, Failed: b.Assigned})
		}
	}
	slices.SortFunc(all, func(a, b placement.Stop) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all
}

// broken reports whether the update to what is still the latest failed on a cluster
// that was available until then, and no person has resumed the rollout since. A
// resumed rollout may update others in that same moment. A comparison that fails has
// changed nothing on the cluster.
func (b *Binding) broken(in *Input) bool {
	_, failed := b.failure(in)
	return failed && !in.reportsOnly() && b.Risked && b.latest() && !b.Unscheduled && !b.Removing && !b.excused(in)
}

// excused reports whether a person has resumed the rollout since the cluster was
// updated: that update stops nobody any more.
func (b *Binding) excused(in *Input) bool { return b.AssignedAt.Before(in.Resumed) }

// recovered reports whether the cluster is available with the content that had
// failed there.
func (b *Binding) recovered(in *Input, failed placement.Revision) bool {
	return !b.Removing && b.Assigned.Hash == failed.Hash && b.proves(in)
}

// proves reports whether the cluster was seen to be available with all of its
// content: a comparison alone, or objects that a person has suspended, prove
// nothing.
func (b *Binding) proves(in *Input) bool {
	return b.ready(in) && b.health() != DiffReported && !b.Seen.Partial
}

// binding returns the binding of a cluster; nil if there is none.
func (in *Input) binding(cluster string) *Binding {
	i, found := slices.BinarySearchFunc(in.Bindings, cluster, func(b Binding, name string) int { return strings.Compare(b.Cluster, name) })
	if !found {
		return nil
	}
	return &in.Bindings[i]
}

// stopper describes the first cluster that stops the rollout.
func (in *Input) stopper(p *Plan) string {
	text := "cluster " + p.Stopped + ", which was available before its update and is not now"
	switch b := in.binding(p.Stopped); {
	case b == nil || b.Unscheduled || b.Removing:
		return text + " (it is no longer chosen)"
	case b.Suspended != "":
		return text + " (it is suspended)"
	case b.Unreachable:
		return text + " (" + cmp.Or(b.UnusableWhy, "it is unreachable") + ")"
	case in.reportsOnly():
		return text + " (ReportDiff does not see whether it recovers)"
	}
	return text
}
