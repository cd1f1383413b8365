package plan

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// works notes what the placement's clusters shall hold.
func (t *thinker) works(p *Placement) {
	t.now.works = make([]assigned, 0, len(p.Clusters))
	for _, c := range p.Clusters {
		if w, ok := t.work(p, c); ok {
			t.now.works = append(t.now.works, assigned{c.Binding.Cluster, w})
		}
	}
}

// work is what one cluster shall hold; not ok if nothing was released to it.
func (t *thinker) work(p *Placement, c *OnCluster) (work.Work, bool) {
	w := work.Work{Placement: p.Key, Revision: c.Binding.Assigned, Abandon: p.Record.Abandon,
		AllowDelete: c.Binding.AllowDelete || t.now.allowed,
		Suspended:   c.Suspended, Spared: c.spared}
	if p.Spec != nil {
		w.Strategy = strategy(p.Spec.Spec)
	}
	paused := t.paused[c.Binding.Cluster] != ""
	switch {
	case paused && c.Binding.Removing:
	case c.Binding.Removing:
		w.Remove = true
		// A cluster or content that goes is removed whatever becomes of the
		// placement: only the end of the placement itself abandons. Where nothing
		// is to be written nothing is deleted, and what is there is given up.
		w.Abandon = p.Spec == nil && p.Record.Abandon
		if w.Strategy.Type == api.ReportDiff {
			w.Abandon, w.Strategy = true, api.ApplyStrategy{}
		}
	case !c.Binding.Released():
		return w, false
	case c.UpToDate() && c.Err == nil && c.Content.Hash != "":
		w.Manifests = c.Content.Manifests
	case c.given != nil && c.given.Hash == c.Binding.Assigned.Hash:
		w.Manifests = c.given.Manifests
	case c.had != nil && c.had.Hash == c.Binding.Assigned.Hash:
		w.Manifests = c.had.Manifests
	default:
		w.Keep = true
	}
	w.Keep = w.Keep || paused
	return w, true
}

func strategy(s api.PlacementSpec) api.ApplyStrategy {
	if s.Strategy.ApplyStrategy == nil {
		return api.ApplyStrategy{}
	}
	return *s.Strategy.ApplyStrategy
}
