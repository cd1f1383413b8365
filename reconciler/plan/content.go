package plan

import (
	"iter"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// loadPreviousContent sets the content that the cluster was assigned before this plan, or before its removal began, and
// the leftover content, since some of it may still be on the cluster.
func (pl *placementPlanner) loadPreviousContent(c *OnCluster) {
	if c.Entry == nil || !c.Entry.Binding.HasRevision() {
		return
	}
	var known bool
	c.PreviousContent, known = pl.loadContent(c, c.Entry.Binding.Assigned)
	c.notRenderable = known && c.PreviousContent == nil
	if left := c.Entry.Binding.Unusual().Leftover; left != nil {
		content, _ := pl.loadContent(c, *left)
		c.change(func(s *Circumstances) { s.leftover = content })
	}
}

// loadContent returns the content of a revision that the cluster was assigned, as findContent does, and requests its
// commit if it is not known.
func (pl *placementPlanner) loadContent(c *OnCluster, r placement.Revision) (content *work.Rendered, known bool) {
	p, content, known := pl.findContent(c.Binding.Cluster, r)
	if known {
		pl.markInUse(p)
		return content, true
	}
	if pl.planner.stateOf(r.Commit) == commitLoading {
		c.change(func(s *Circumstances) { s.loading = r.Commit })
	}
	pl.recordMissing(r.Commit)
	return nil, false
}

// findContent finds the content of a revision for a cluster. It renders the placement for the cluster at each known
// commit, with the current labels and with those recorded in the revision, until the hash matches. The content is nil
// if the revision is known and cannot be rendered.
func (pl *placementPlanner) findContent(name string, r placement.Revision) (from *prepared, content *work.Rendered, known bool) {
	cluster, _ := pl.planner.memo.members.Cluster(name)
	for p := range pl.knownContents(r.Commit) {
		if content, known := p.renderedWithHash(cluster, r); known {
			pl.planner.memo.keepContent(pl.current.placement.Key, p)
			return p, content, true
		}
	}
	return nil, nil, false
}

// contentOf returns the content with a fingerprint; nil if it is not known. Then its commit is loaded.
func (pl *placementPlanner) contentOf(p *Placement, want placement.Revision) *prepared {
	if want.Commit == "" {
		return nil
	}
	for known := range pl.knownContents(want.Commit) {
		if known.fingerprintOf() == want.Hash {
			pl.planner.memo.keepContent(p.Key, known)
			return known
		}
	}
	pl.recordMissing(want.Commit)
	return nil
}

// knownContents iterates over the known contents of the placement, under its key and its earlier keys: first those in
// memory, then those of the loaded commits, beginning with the given commit.
func (pl *placementPlanner) knownContents(commit string) iter.Seq[*prepared] {
	keys := append([]api.PlacementKey{pl.current.placement.Key}, pl.current.placement.Record.Formerly...)
	return func(yield func(*prepared) bool) {
		for _, key := range keys {
			for _, p := range pl.planner.memo.contents[key] {
				if !yield(p) {
					return
				}
			}
		}
		for i, hash := range append([]string{commit}, slices.Sorted(maps.Keys(pl.planner.Past))...) {
			s := pl.planner.Past[hash]
			if s == nil || i > 0 && (hash == commit || hash == pl.planner.InForce.Commit.Hash) {
				continue
			}
			for _, key := range keys {
				if p := pl.planner.memo.prepare(s, key); p != nil && p.renderer != nil && !yield(p) {
					return
				}
			}
		}
	}
}
