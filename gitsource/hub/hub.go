// Package hub loads the files of one commit.
//
// Load reads a tree of manifests and kustomizations into a Snapshot: the desired state of the
// fleet, decoded strictly, with the defaults and validation of an API server. A tree either
// loads as a whole or is refused with all its problems. A Loader keeps what did not change.
package hub

import (
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Commit is the commit of a snapshot.
type Commit struct {
	Hash    string
	Author  string
	Subject string
	Time    time.Time
	// Message is the whole message, with trailers.
	Message string
}

// A Snapshot is the hub at one commit. It is immutable and may be used concurrently.
type Snapshot struct {
	Commit Commit
	// Objects are the objects that may be placed, sorted by ID and unique.
	Objects []*api.Object
	// Placements are of both kinds, sorted by key.
	Placements []*Placement
	// Clusters are sorted by name.
	Clusters []*Cluster
	// ClusterOverrides and Overrides are sorted by namespace and name.
	ClusterOverrides []*ClusterOverride
	Overrides        []*Override
	// Namespaced says whether the kinds that the commit's custom resource definitions declare
	// are namespaced.
	Namespaced map[api.GroupKind]bool
	// Sources are the files of each built kustomization, sorted, by its file.
	Sources map[string][]string
	// Warnings do not refuse the commit; some of them are Failures.
	Warnings problem.List
}

// A Placement is a ClusterResourcePlacement or a ResourcePlacement with defaults.
type Placement struct {
	Key         api.PlacementKey
	Labels      map[string]string
	Annotations map[string]string
	Spec        api.PlacementSpec
	Origin      api.Origin
	// SpecHash identifies the canonical spec; it determines the generation.
	SpecHash string
}

// A Cluster is a declared member cluster.
type Cluster struct {
	*api.MemberCluster
	Origin api.Origin
	Hashes
}

// Hashes identify what is declared: Hash everything, SpecHash the spec.
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
