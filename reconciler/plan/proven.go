package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/rollout"
)

// recordProven records that the newest content is available on every cluster, with the first commit that had it. Empty
// content and content with held deletions do not count, since nobody wants to roll back to them.
func (pl *placementPlanner) recordProven(p *Placement) {
	if !pl.settled(p) || len(p.Rollout.Assign) == 0 || p.Spec.Spec.Strategy.ReportsDiff() ||
		len(pl.current.prepared.renderer.Manifests()) == 0 || slices.ContainsFunc(p.Clusters, func(c *OnCluster) bool { return c.holdsDeletions() || c.Unbuilt() }) {
		return
	}
	if hash := pl.current.prepared.fingerprintOf(); p.Record.Proven.Hash != hash {
		if before := p.Record.Proven.Hash; before != "" {
			earlier := slices.DeleteFunc(slices.Clone(p.Record.ProvenBefore), func(h string) bool { return h == before || h == hash })
			p.Record.ProvenBefore = append(earlier[max(0, len(earlier)+1-maxRevisions):], before)
		}
		p.Record.Proven = placement.Revision{Commit: pl.InForce.Commit.Hash, Hash: hash}
	}
}

func (c *OnCluster) holdsDeletions() bool {
	held, _ := c.HeldDeletions()
	return len(held) > 0
}

// assignProven assigns the proven content, which was the last to be available on every cluster, to clusters that join a
// stopped rollout. It reports whether any cluster can get it. If its commit has to be loaded, such clusters wait.
func (pl *placementPlanner) assignProven(p *Placement, bindings []rollout.Binding) bool {
	assigned := false
	for i := range bindings {
		b := &bindings[i]
		if b.HasRevision() || b.Unscheduled || b.Removing || b.Latest == (placement.Revision{}) {
			continue
		}
		proven := pl.contentOf(p, p.Record.Proven)
		if proven == nil {
			return false
		}
		cluster, _ := pl.memo.fleet.cluster(b.Cluster)
		content, err := proven.renderer.For(cluster)
		if err != nil || content.Hash == "" {
			continue
		}
		b.Proven = placement.Revision{Commit: p.Record.Proven.Commit, Hash: content.Hash, Labels: proven.renderer.Labels(cluster)}
		p.On(b.Cluster).provenContent = content
		pl.markInUse(proven)
		assigned = true
	}
	return assigned
}

// contentOf returns the content with a fingerprint; nil if it is not known. Then its commit is loaded.
func (pl *placementPlanner) contentOf(p *Placement, want placement.Revision) *prepared {
	if want.Commit == "" {
		return nil
	}
	for known := range pl.knownContents(want.Commit) {
		if known.fingerprintOf() == want.Hash {
			pl.memo.keepContent(p.Key, known)
			return known
		}
	}
	pl.recordMissing(want.Commit)
	return nil
}

func (p *prepared) fingerprintOf() string {
	if p.fingerprint == "" {
		p.fingerprint = p.renderer.Fingerprint()
	}
	return p.fingerprint
}
