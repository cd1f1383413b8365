package status

import (
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// comparable returns the report, which may be nil, if what it says of a cluster depends on nothing else of the placement
// than the plan p does, so that a cluster whose plan is the same is reported as there; nil otherwise.
func (e *placementEntry) comparable(p *plan.Placement) *placementEntry {
	plain := func(p *plan.Placement) bool {
		return p.Spec != nil && !p.Pending && p.InternalError == "" && p.Selection.Invalid == "" && p.Spec.Spec.Strategy.Type != api.External
	}
	if e == nil || !plain(e.of) || !plain(p) {
		return nil
	}
	was, is := &e.of.Record, &p.Record
	if e.of.Spec != p.Spec || was.Generation != is.Generation || was.Index != is.Index || !ledger.Identical(was.Revisions, is.Revisions) {
		return nil
	}
	return e
}

// unchanged reports whether the plan for the i-th cluster is that of the earlier report.
func (b *builder) unchanged(i int) bool {
	return b.earlier != nil && i < len(b.earlier.of.Clusters) && b.earlier.of.Clusters[i] == b.p.Clusters[i]
}

// earlierClusters are the statuses of clusters in the earlier report, in the order of its decisions.
type earlierClusters struct {
	b    *builder
	list []api.PerClusterPlacementStatus // from next on
	next int
}

func (b *builder) earlierClusters() *earlierClusters {
	if b.earlier == nil {
		return &earlierClusters{b: b}
	}
	return &earlierClusters{b: b, list: b.earlier.status().PlacementStatuses}
}

// of returns the earlier status of the cluster at a position of the plan, if it would be built again as it is; nil
// otherwise, and for most clusters whose order has changed. What is not reported yet may depend on why the cluster does not
// answer.
func (e *earlierClusters) of(d placement.Decision, at int, index string) *api.PerClusterPlacementStatus {
	for e.next < len(e.list) && e.list[e.next].ClusterName < d.Cluster {
		e.next++
	}
	if e.next == len(e.list) || e.list[e.next].ClusterName != d.Cluster {
		return nil
	}
	was := &e.list[e.next]
	e.next++
	if !e.b.unchanged(at) || e.b.p.Clusters[at].Seen() == nil || was.ObservedResourceIndex != index || was.Conditions[0].Message != d.Reason {
		return nil
	}
	return was
}
