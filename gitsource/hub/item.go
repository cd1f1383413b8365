package hub

import "github.com/gitfleet/gitfleet/placement/api"

// An item is one object of the commit. Of object, placement, cluster,
// clusterOverride and override one is set; none, if the item only stands for a
// definition.
type item struct {
	id     api.ID
	origin api.Origin
	// top is where in its document the object stands: nil, or an item of a list.
	top *fieldPath

	object          *api.Object
	placement       *Placement
	cluster         *Cluster
	clusterOverride *ClusterOverride
	override        *Override

	// wrapped are the objects of an envelope whose kinds the commit may define.
	wrapped []wrapped
	// scope is what a custom resource definition declares.
	scope *declaredScope
	// custom says that the object's kind is not one that every cluster has.
	custom bool
	// lines are those of fields that are compared with other objects.
	lines map[string]int

	// judged is what its definition says of a custom object; nil if not asked.
	judged *customJudgement
	// variant is the item without its namespace, once that was needed.
	variant *item
	// seen is the load that last used the item.
	seen int
}

type declaredScope struct {
	kind       api.GroupKind
	namespaced bool
}

// note remembers the line of a field.
func (it *item) note(r *report, p *fieldPath) {
	if it.lines == nil {
		it.lines = map[string]int{}
	}
	it.lines[p.String()] = r.lineOf(p)
}

// at is the origin of a field, as far as it was noted.
func (it *item) at(field string) api.Origin {
	origin := it.origin
	if line, ok := it.lines[field]; ok {
		origin.Line = line
	}
	return origin
}

// built reports whether kustomize made the item: it sets a namespace on kinds
// that it does not know, and nobody can help that.
func (it *item) built() bool { return it.origin.Kustomization != "" }

func (it *item) isConfiguration() bool {
	return it.placement != nil || it.cluster != nil || it.clusterOverride != nil || it.override != nil
}
