package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
)

// prove notes that the newest content is available on every cluster. The commit
// that is remembered is the first of which that was seen. Nobody wants to go back
// to content that is empty, or to one that removed what clusters still hold.
func (t *thinker) prove(p *Placement) {
	if !p.Rollout.Settled || len(p.Rollout.Assign) == 0 || strategy(p.Spec.Spec).Type == api.ReportDiff ||
		len(t.now.now.renderer.Manifests()) == 0 || slices.ContainsFunc(p.Clusters, (*OnCluster).holdsDeletions) {
		return
	}
	if hash := t.now.now.recipeOf(); p.Record.Proven.Hash != hash {
		p.Record.Proven = placement.Revision{Commit: t.Head.Commit.Hash, Hash: hash}
		p.Noted = true
	}
}

// holdsDeletions reports whether a cluster has what it was told to delete, and may
// not.
func (c *OnCluster) holdsDeletions() bool {
	held, _ := c.HeldDeletions()
	return len(held) > 0
}

// offerProven says what clusters that join a stopped rollout get: the last
// content that was available everywhere. It reports whether there is any. Its
// commit is read when it is needed; until then such clusters wait.
func (t *thinker) offerProven(p *Placement, bindings []rollout.Binding) bool {
	offered := false
	for i := range bindings {
		b := &bindings[i]
		if b.Released() || b.Unscheduled || b.Removing || b.Latest == (placement.Revision{}) {
			continue
		}
		proven := t.proven(p)
		if proven == nil {
			return false
		}
		cluster, _ := t.memo.fleet.cluster(b.Cluster)
		content, err := proven.renderer.For(cluster)
		if err != nil || content.Hash == "" {
			continue
		}
		b.Proven = placement.Revision{Commit: p.Record.Proven.Commit, Hash: content.Hash, Labels: proven.renderer.Labels(cluster)}
		p.On(b.Cluster).given = &content
		t.use(proven)
		offered = true
	}
	return offered
}

// proven is the last content that was available everywhere; nil if there is
// none, or if nobody knows it.
func (t *thinker) proven(p *Placement) *prepared {
	want := p.Record.Proven
	if want.Commit == "" {
		return nil
	}
	for known := range t.contents(want.Commit) {
		if known.recipeOf() == want.Hash {
			t.memo.keep(p.Key, known)
			return known
		}
	}
	t.miss(want.Commit)
	return nil
}

func (p *prepared) recipeOf() string {
	if p.recipe == "" {
		p.recipe = p.renderer.Recipe()
	}
	return p.recipe
}
