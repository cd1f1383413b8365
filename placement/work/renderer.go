package work

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/variable"
)

// A Scope returns whether a kind is namespaced, and whether that is known.
type Scope = func(api.GroupKind) (namespaced, known bool)

// Rendered is the content for one cluster. Its slices are shared between clusters and must not
// be changed.
type Rendered struct {
	// Manifests are in canonical order, and every ID occurs once.
	Manifests []*Manifest
	// Refused are objects that cannot be applied anywhere, in canonical order.
	Refused []Refused
	// Hash is the hash of the content: kinds, versions, names, envelopes and the hashes of the
	// objects. It does not depend on the commit.
	Hash string
	// ClusterOverrides and Overrides are the overrides that apply to the cluster, in the order
	// of application.
	ClusterOverrides []string
	Overrides        []api.NamespacedName
}

// A Renderer renders the content of a placement at one commit. It caches what it has rendered,
// and must not be used concurrently.
type Renderer struct {
	key      api.PlacementKey
	selected []*api.Object
	cros     []*api.ClusterResourceOverride
	ros      []*api.ResourceOverride
	scope    Scope
	// overlays are those of selected.
	overlays []*api.Object
	// whole has the objects that any cluster may get.
	whole *variant
	// variants are the contents that overlays lead to, by what they have for a cluster.
	variants map[string]*variant
	warnings []string
	// substitution replaces variables in manifests; nil if there are none.
	substitution *substitution
	// labelKeys are the keys of the labels that affect the content.
	labelKeys []string
}

// A variant is the content of the clusters for which all overlays of the placement have the same.
type variant struct {
	base       Rendered
	err        error // why none of the clusters gets any content
	candidates []candidate
	// rendered caches contents by the rules applied.
	rendered map[string]*Rendered
}

// A substitution replaces the variables in the manifests of a placement. Nil replaces none.
type substitution struct {
	// all says that the placement asks for it, so that all objects have variables.
	all  bool
	vars *api.Variables
	// used are the variables in any manifest, by their text.
	used map[string]variable.Variable
	// clusterVars are the values of the ClusterVars.
	clusterVars *variable.Values
}
