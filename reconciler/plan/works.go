package plan

import (
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// works adds to the plan what the placement's clusters shall hold.
func (t *thinker) works(p *Placement) {
	for _, c := range p.Clusters {
		name := c.Binding.Cluster
		if w, ok := t.work(p, c); ok {
			t.plan.Works[name] = append(t.plan.Works[name], w)
		}
	}
}

// work is what one cluster shall hold; not ok if nothing was released to it.
func (t *thinker) work(p *Placement, c *OnCluster) (work.Work, bool) {
	w := work.Work{Placement: p.Key, Revision: c.Binding.Assigned, Abandon: p.Record.Abandon,
		AllowDelete: c.Binding.AllowDelete || allows(t.Head.Commit.Message, p.Key)}
	if p.Spec != nil {
		w.Strategy = strategy(p.Spec.Spec)
	}
	switch {
	case c.Binding.Removing:
		w.Remove = true
		// A cluster or content that goes is removed whatever becomes of the
		// placement: only the end of the placement itself abandons.
		w.Abandon = p.Spec == nil && p.Record.Abandon
		return w, true
	case !c.Binding.Released():
		return w, false
	case c.UpToDate() && c.Err == nil && c.Content.Hash != "":
		w.Manifests = c.Content.Manifests
		return w, true
	}
	if content, ok := t.past(p, c.Binding); ok {
		w.Manifests = content.Manifests
	} else {
		w.Keep = true
	}
	return w, true
}

func strategy(s api.PlacementSpec) api.ApplyStrategy {
	if s.Strategy.ApplyStrategy == nil {
		return api.ApplyStrategy{}
	}
	return *s.Strategy.ApplyStrategy
}

// past finds the content of a revision that is not the latest, from the commit
// it came with. What that commit gives today may be something else, if the
// cluster's labels changed and overrides look at them; that is not it.
func (t *thinker) past(p *Placement, b placement.Binding) (work.Rendered, bool) {
	commit := b.Assigned.Commit
	t.plan.Commits[commit] = true
	snapshot := t.Past[commit]
	if commit == t.Head.Commit.Hash {
		snapshot = t.Head
	}
	if snapshot == nil {
		return work.Rendered{}, false
	}
	then := t.memo.prepareAt(snapshot, p.Key)
	if then == nil || then.renderer == nil {
		return work.Rendered{}, false
	}
	content, err := then.renderer.For(t.known[b.Cluster])
	return content, err == nil && content.Hash == b.Assigned.Hash
}
