// Package hub understands the files of one commit.
//
// Load reads a tree of manifests and kustomizations into a Snapshot: the
// desired state of the fleet, decoded strictly, with the defaults filled in
// and the rules enforced that an API server would have. A tree either loads
// or answers with all its problems; nothing in between is ever acted upon.
package hub

import (
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Commit is what a snapshot says of the commit it was made of.
type Commit struct {
	Hash    string
	Author  string
	Subject string
	Time    time.Time
	// Message is whole, with its trailers.
	Message string
}

// A Snapshot is the hub at one commit. It is never changed once made; whoever
// holds it may read it from any goroutine.
type Snapshot struct {
	Commit Commit
	// Objects are what may be placed, sorted by ID; no ID occurs twice.
	Objects []*api.Object
	// Placements are of both kinds, sorted by key.
	Placements []*Placement
	// Clusters are sorted by name.
	Clusters []*Cluster
	// ClusterOverrides and Overrides are sorted by namespace and name.
	ClusterOverrides []*ClusterOverride
	Overrides        []*Override
	// Namespaced says of the kinds that custom resource definitions in the
	// commit declare whether they are namespaced.
	Namespaced map[api.GroupKind]bool
	// Sources are, by the file of each kustomization that was built, the files it
	// was built of, sorted.
	Sources map[string][]string
	// Warnings do not keep a commit from being used; some of them are Failures.
	Warnings Problems
}

// A Placement is a ClusterResourcePlacement or a ResourcePlacement with its
// defaults filled in.
type Placement struct {
	Key         api.PlacementKey
	Labels      map[string]string
	Annotations map[string]string
	Spec        api.PlacementSpec
	Origin      api.Origin
	// SpecHash changes when the canonical spec does: the base of a generation.
	SpecHash string
}

// A Cluster is a declared member.
type Cluster struct {
	*api.MemberCluster
	Origin api.Origin
	Hashes
}

// Hashes change with what is declared: Hash with anything of it, SpecHash with
// the spec.
type Hashes struct{ Hash, SpecHash string }

// A ClusterOverride is a declared ClusterResourceOverride.
type ClusterOverride struct {
	*api.ClusterResourceOverride
	Origin api.Origin
	Hashes
}

// An Override is a declared ResourceOverride.
type Override struct {
	*api.ResourceOverride
	Origin api.Origin
	Hashes
}
