package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// reuseClusters replaces the clusters for which the plan is as in an older plan of the placement
// by those, so that others can compare pointers.
func (p *Placement) reuseClusters(old *Placement) {
	for i, c := range p.Clusters {
		if last := old.On(c.Binding.Cluster); last != nil && c.equal(last) {
			p.Clusters[i] = last
		}
	}
}

// equal reports whether two plans for a cluster are equal and share their contents.
func (c *OnCluster) equal(o *OnCluster) bool {
	return c.Entry == o.Entry && sameBinding(c.Binding, o.Binding) && c.Latest == o.Latest && c.Err == o.Err &&
		c.Waits == o.Waits && c.Failure == o.Failure && c.TimedOut == o.TimedOut && c.Suspended == o.Suspended && c.Foreign == o.Foreign &&
		c.DeleteAllowed == o.DeleteAllowed && c.driftRule == o.driftRule &&
		c.contentLoading == o.contentLoading && c.notRenderable == o.notRenderable &&
		sameContents(&c.Content, &o.Content) && sameContents(c.provenContent, o.provenContent) && sameContents(c.previousContent, o.previousContent) &&
		slices.Equal(c.suspendedObjects, o.suspendedObjects) && c.Claims.Equal(o.Claims) && slices.Equal(c.Yielded, o.Yielded) &&
		sameWork(c.work, o.work)
}

// sameContents reports whether two contents are the same, with the same overrides.
func sameContents(a, b *work.Rendered) bool {
	return a == b || a != nil && b != nil && a.Hash == b.Hash && ledger.Identical(a.Manifests, b.Manifests) && ledger.Identical(a.Refused, b.Refused) &&
		slices.Equal(a.ClusterOverrides, b.ClusterOverrides) && slices.Equal(a.Overrides, b.Overrides)
}
