package conditions

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// External reports whether only staged update runs update the clusters of a placement. Then each cluster is
// reported with the content that it has, and not with the newest.
func External(p *plan.Placement) bool {
	return p.Spec.Spec.Strategy.Type == api.External
}

// assigned returns a cluster with the content that it holds as its latest.
func assigned(c *plan.OnCluster) *plan.OnCluster {
	if !c.Binding.HasRevision() || c.UpToDate() {
		return c
	}
	pinned := *c
	pinned.Content, pinned.Err = &work.Rendered{}, nil
	if c.PreviousContent != nil {
		pinned.Content = c.PreviousContent
	}
	return &pinned
}

// IndexOn returns the index of the content that a cluster holds; empty if it holds none.
func IndexOn(p *plan.Placement, c *plan.OnCluster) string {
	switch {
	case !c.Binding.HasRevision():
		return ""
	case c.UpToDate():
		return metadata.SnapshotIndex(p.Record.Index)
	}
	return metadata.SnapshotIndex(int(c.Binding.Index))
}
