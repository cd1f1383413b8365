package hub

import (
	"github.com/gitfleet/gitfleet/placement/api"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// An item is one object of the commit. Of object, placement, cluster, clusterOverride and
// override one is set; none, if the item is only a definition.
type item struct {
	id     api.ID
	origin api.Origin
	// top is the object's position in its document: nil, or an item of a list.
	top *document.FieldPath

	object          *api.Object
	placement       *Placement
	cluster         *Cluster
	clusterOverride *ClusterOverride
	override        *Override

	// wrapped are the objects of an envelope whose kinds the commit may define.
	wrapped []wrapped
	// scope is what a custom resource definition declares.
	scope *declaredScope
	// custom says that the object's kind is not built in.
	custom bool
	// lines are the lines of fields that are compared with other objects.
	lines map[string]int

	// customResult is the result of comparing a custom object with its definition; nil if not
	// compared.
	customResult *customResult
	// unnamespaced is the item without its namespace, once that was needed.
	unnamespaced *item
	// seen is the number of the last load that used the item.
	seen int
}

type declaredScope struct {
	kind       api.GroupKind
	namespaced bool
}

// at is the position of a field, if it was recorded.
func (it *item) at(field string) api.Origin {
	origin := it.origin
	if line, ok := it.lines[field]; ok {
		origin.Line = line
	}
	return origin
}

// built reports whether the item is from kustomize, which sets a namespace on kinds that it
// does not know.
func (it *item) built() bool { return it.origin.Kustomization != "" }

func (it *item) isConfiguration() bool {
	return it.placement != nil || it.cluster != nil || it.clusterOverride != nil || it.override != nil
}
